# One job per pending run. The launcher writes record.json last, or failure.json with the cause.


rule run:
    input:
        # Growing a data set touches its marker but changes no file a run has read.
        data=lambda wildcards: ancient(JOBS.staged(wildcards.run_id)),
    output:
        # Not the record: Snakemake removes what a failed job has made, and a launcher that is
        # killed in its last milliseconds has written a record that is whole.
        marker=f"{RUNS}/{SWEEP.markers_of_call}/{{run_id}}",
    log:
        f"{RUNS}/{{run_id}}/launcher.log",
    wildcard_constraints:
        run_id="[^/]+",
    priority: lambda wildcards: JOBS.priority(wildcards.run_id)
    # The most there may be; after a failure the executor of profiles/slurm decides by its cause.
    retries: JOBS.retries
    # Threads are the share of the machine that a run has to itself: with
    # concurrent_runs: 1 every core, so that nothing else runs during a measurement.
    threads: lambda wildcards: JOBS.threads_of(wildcards.run_id, workflow.cores)
    resources:
        **JOBS.run_resources(),
    params:
        script=f"{SCRIPT} launch",
        order=lambda wildcards: JOBS.run_order(wildcards.run_id),
        step=lambda wildcards: JOBS.step(wildcards.run_id, workflow.dryrun),
    message:
        "{params.step}"
    shell:
        # What went well is in the log alone.
        ": > {log:q} && {params.script} --order {params.order:q} --marker {output.marker:q}"
        " --forgive >> {log:q} 2> >(tee -a {log:q} >&2)"
