# One job per pending run. The launcher writes record.json last, or failure.json with the cause.
from scalesweep.smk.scheduler import but_records, in_turn, look_again, next_jobs
from snakemake.jobs import Job as SnakemakeJob

SnakemakeJob.cleanup = but_records(SnakemakeJob.cleanup)

if workflow.is_main_process:
    from snakemake.scheduling.job_scheduler import JobScheduler

    JobScheduler.open_jobs = property(next_jobs)
    JobScheduler.run = in_turn(JobScheduler.run)
    JobScheduler._schedule_reevalutation = look_again
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
    priority: lambda wildcards: SWEEP.priority(wildcards.run_id)
    # Threads stand for the share of the machine that a run has to itself: with
    # concurrent_runs: 1 every core, so that nothing else runs during a measurement.
    threads: SWEEP.threads_per_run(workflow.cores)
    resources:
        **SWEEP.run_resources(),
    params:
        script=f"{SCRIPT}/launch.py",
        order=lambda wildcards: SWEEP.run_order(wildcards.runs, wildcards.run_id),
        turn=lambda wildcards: SWEEP.turn(wildcards.run_id),
    message:
        "Running {wildcards.run_id}{params.turn}"
    shell:
        "{params.script} --order {params.order:q} > >(tee {log:q}) 2>&1"
