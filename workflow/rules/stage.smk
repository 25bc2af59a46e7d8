# Data sets: made once, file by file; a larger campaign adds files to what is there.


rule stage:
    output:
        touch("{folder}/staged-{files}"),
    log:
        "{folder}/logs/staged-{files}.log",
    wildcard_constraints:
        files=r"[a-z0-9-]+",
    # All cores, for the same reason as in run.smk: no staging beside a measurement.
    threads: workflow.cores
    params:
        command=lambda wildcards, threads: SWEEP.stage_command(
            wildcards.folder,
            f"staged-{wildcards.files}",
            min(threads, SWEEP.campaign.site.stage_workers),
        ),
    message:
        "Staging {wildcards.folder}"
    shell:
        "{params.command} 2>&1 | tee {log:q}"
