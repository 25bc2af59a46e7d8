# Patterns of a benchmark.yaml that have changed: logs are read again, nothing is run.


localrules:
    reread,


rule reread:
    output:
        touch(f"{RESULTS}/.reread/{{patterns}}"),
    log:
        f"{RESULTS}/logs/reread-{{patterns}}.log",
    params:
        script=f"{SCRIPT}/reread.py",
        campaign=SWEEP.campaign_arguments(),
    message:
        f"Re-reading the logs of {len(SWEEP.rereads)} run(s): how they are read has changed"
    shell:
        "{params.script} {params.campaign} > >(tee {log:q}) 2>&1"
