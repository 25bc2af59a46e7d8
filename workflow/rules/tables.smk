# Tables of every experiment (docs/architecture.md lists them); CSV and Parquet.


localrules:
    tables,


rule tables:
    input:
        plan=f"{RESULTS}/plan.json",
        summary=f"{RESULTS}/summary.parquet",
    output:
        directory(f"{RESULTS}/tables"),
    log:
        f"{RESULTS}/logs/tables.log",
    params:
        script=f"{SCRIPT}/tables.py",
        runs=RUNS,
    message:
        "Making tables"
    shell:
        "{params.script} --plan {input.plan:q} --summary {input.summary:q}"
        " --runs {params.runs:q} --out {output:q}"
        " > {log:q} 2>&1"
