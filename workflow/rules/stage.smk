# Data sets: made once, file by file; a larger campaign adds files to what is there.


rule stage:
    output:
        touch("{folder}/staged-{files}"),
    log:
        "{folder}/logs/staged-{files}.log",
    wildcard_constraints:
        files=r"[a-z0-9-]+",
    # All cores, for the same reason as in run.smk: no staging during a measurement.
    threads: 1 if SWEEP.away else workflow.cores or 1
    params:
        command=lambda wildcards, threads: JOBS.stage_command(
            wildcards.folder, wildcards.files, threads
        ),
    message:
        "Staging {wildcards.folder}"
    shell:
        "{params.command} 2>&1 | tee {log:q}"
