# Jobs that an earlier Snakemake left in the queue: this call waits for them instead of submitting them twice.


localrules:
    adopt,


rule adopt:
    output:
        touch(f"{RESULTS}/.state/adopted-{{jobs}}"),
    log:
        f"{RESULTS}/logs/adopt-{{jobs}}.log",
    params:
        script=f"{SCRIPT}/adopt.py",
        campaign=SWEEP.campaign_arguments(),
        jobs=SWEEP.adopted_jobs,
    message:
        "Waiting for jobs of an earlier Snakemake"
    shell:
        "{params.script} {params.campaign} --jobs {params.jobs} > >(tee {log:q}) 2>&1"
