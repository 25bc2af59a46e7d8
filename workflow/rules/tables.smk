# Tables of every experiment (docs/reference/files.md lists them); CSV and Parquet.

from scalesweep.aspects.registry import shown_tables


localrules:
    tables,


rule tables:
    input:
        plan=f"{RESULTS}/plan.json",
        summary=f"{RESULTS}/summary.parquet",
    output:
        report(
            # Further names of the tables: Snakemake removes an output before it is made again, and
            # a user's files may lie beside the tables themselves.
            directory(f"{RESULTS}/{OUTPUTS}/tables"),
            # Those that people read; the others have a row per run, rank, epoch or sample.
            patterns=[
                f"{{experiment,[A-Za-z][A-Za-z0-9_-]*}}/{{table,{'|'.join(shown_tables())}}}.{{format,csv|tex}}"
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
        tables=f"{RESULTS}/tables",
        captions=shown_tables(),
    message:
        "Making tables"
    shell:
        "{params.script} --plan {input.plan:q} --summary {input.summary:q}"
        " --runs {params.runs:q} --out {params.tables:q} --links {output:q} --processes {threads}"
        " > {log:q} 2>&1"
