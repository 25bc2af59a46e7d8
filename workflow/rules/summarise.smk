# One row per finished run; runs that have not changed are not read again.


localrules:
    summarise,


# A checkpoint: it writes plan/<experiment>.json of the experiments of which that changes.
checkpoint summarise:
    input:
        plan=f"{RESULTS}/plan.json",
    output:
        f"{RESULTS}/summary.parquet",
    log:
        f"{RESULTS}/logs/summarise.log",
    threads: 4
    params:
        script=f"{SCRIPT} summarise",
        results=lambda wildcards: RESULTS,
        runs=RUNS,
    message:
        "Summarising finished runs"
    shell:
        "{params.script} --results {params.results:q} --runs {params.runs:q}"
        " --processes {threads} > {log:q} 2>&1"
