from scalesweep.slurm.commands import first_submission

# Slurm jobs of the runs: what each requested and used, from Slurm's accounting.


localrules:
    accounting,


rule accounting:
    input:
        plan=f"{RESULTS}/plan.json",
        # After it: the records tell how long each program ran inside its job.
        summary=f"{RESULTS}/summary.parquet",
    output:
        report(
            f"{RESULTS}/jobs.csv",
            caption="../report/jobs.rst",
            category="Tables",
            subcategory="the campaign",
            labels={"table": "jobs", "format": "csv"},
        ),
    log:
        f"{RESULTS}/logs/accounting.log",
    params:
        script=f"{SCRIPT} accounting",
        results=lambda wildcards: RESULTS,
        runs=RUNS,
    message:
        (
            "Collecting Slurm accounting of jobs"
            if SWEEP.submission or first_submission(SWEEP.campaign.runs_folder)
            else "Writing {output}: no Slurm job yet"
        )
    shell:
        "{params.script} --results {params.results:q} --runs {params.runs:q} > {log:q} 2>&1"
