# Jobs that an earlier Snakemake left in the queue: this call waits for them instead of submitting them twice.


localrules:
    adopt,


rule adopt:
    output:
        touch(f"{RESULTS}/.state/adopted-{{sessions}}"),
    log:
        f"{RESULTS}/logs/adopt-{{sessions}}.log",
    params:
        script=f"{SCRIPT}/adopt.py",
        campaign=SWEEP.campaign_arguments(),
        sessions=SWEEP.sessions,
    message:
        "Waiting for jobs of an earlier Snakemake"
    shell:
        "{params.script} {params.campaign} --sessions {params.sessions:q} > >(tee {log:q}) 2>&1"
