# Tables of every experiment (docs/formats.md lists them); CSV and Parquet.


localrules:
    tables,


rule tables:
    input:
        plan=f"{RESULTS}/plan.json",
        summary=f"{RESULTS}/summary.parquet",
    output:
        report(
            directory(f"{RESULTS}/tables"),
            # Those that people read; the others have a row per run, rank, epoch or sample.
            patterns=[
                "{experiment,[A-Za-z][A-Za-z0-9_-]*}/"
                "{table,points|scaling|threads|comparisons|best|sites|accuracy|phases|score|efficiency|timeline|parts|roofline|ceilings|network|canary|reading|prediction|forecasts}"
                ".{format,csv|tex}"
            ],
            caption="../report/table.rst",
            category="Tables",
            subcategory="{experiment}",
            labels={"table": "{table}", "format": "{format}"},
        ),
    log:
        f"{RESULTS}/logs/tables.log",
    threads: 4
    params:
        script=f"{SCRIPT}/tables.py",
        runs=RUNS,
    message:
        "Making tables"
    shell:
        "{params.script} --plan {input.plan:q} --summary {input.summary:q}"
        " --runs {params.runs:q} --out {output:q} --processes {threads}"
        " > {log:q} 2>&1"
