# One job per pending run. The launcher writes record.json last, or failure.json with the cause.


rule run:
    input:
        # Growing a data set touches its marker but changes no file a run has read.
        data=lambda wildcards: ancient(SWEEP.staged(wildcards.run_id)),
    output:
        f"{RUNS}/{{run_id}}/record.json",
    log:
        f"{RUNS}/{{run_id}}/launcher.log",
    # Threads stand for the share of the machine that a run has to itself: with
    # concurrent_runs: 1 every core, so that nothing else runs beside a measurement.
    threads: SWEEP.threads_per_run(workflow.cores)
    params:
        script=f"{SCRIPT}/launch.py",
        spec=lambda wildcards: json.dumps(SWEEP.spec(wildcards.run_id)),
    message:
        "Running {wildcards.run_id}"
    shell:
        "{params.script} --spec {params.spec:q} 2>&1 | tee {log:q}"
