# One job per pending run. The launcher writes record.json last, or failure.json with the cause.
if workflow.is_main_process:
    from snakemake.jobs import Job as SnakemakeJob

    if SWEEP.submission:
        # Snakemake restarts whatever fails; here the cause of the failure decides.
        SnakemakeJob.restart_times = property(
            lambda job: SWEEP.restarts(
                job.rule.name, job.wildcards_dict.get("run_id", ""), job.attempt
            )
        )


rule run:
    input:
        # Growing a data set touches its marker but changes no file a run has read.
        data=lambda wildcards: ancient(SWEEP.staged(wildcards.run_id)),
    output:
        "{runs}/{run_id}/record.json",
    log:
        "{runs}/{run_id}/launcher.log",
    wildcard_constraints:
        runs=SWEEP.runs_pattern,
    # Threads stand for the share of the machine that a run has to itself: with
    # concurrent_runs: 1 every core, so that nothing else runs beside a measurement.
    threads: SWEEP.threads_per_run(workflow.cores)
    resources:
        **SWEEP.run_resources(),
    params:
        script=f"{SCRIPT}/launch.py",
        order=lambda wildcards: SWEEP.run_order(wildcards.runs, wildcards.run_id),
    message:
        "Running {wildcards.run_id}"
    shell:
        "{params.script} --order {params.order:q} 2>&1 | tee {log:q}"
