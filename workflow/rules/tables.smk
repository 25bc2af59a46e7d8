# Tables of an experiment (docs/reference/files.md lists them); CSV and Parquet.

from scalesweep.aspects.registry import shown_tables


localrules:
    tables,
    experiment_tables,


# All of them: `snakemake tables`.
rule tables:
    input:
        lambda wildcards: SWEEP.parts("tables", checkpoints.summarise.get()),


rule experiment_tables:
    input:
        # It changes with what the tables are made of; plan and summary are there by then.
        f"{RESULTS}/plan/{{experiment}}.json",
    output:
        report(
            directory(f"{RESULTS}/tables/{{experiment}}"),
            # Those that people read; the others have a row per run, rank, epoch or sample.
            patterns=[f"{{table,{'|'.join(shown_tables())}}}.{{format,csv|tex}}"],
            caption="../report/table.rst",
            category="Tables",
            subcategory="{experiment}",
            labels={"table": "{table}", "format": "{format}"},
        ),
    log:
        f"{RESULTS}/logs/tables-{{experiment}}.log",
    wildcard_constraints:
        experiment="[^/]+",
    params:
        script=f"{SCRIPT}/tables.py",
        results=lambda wildcards: RESULTS,
        runs=RUNS,
        captions=shown_tables(),
    message:
        "Making tables of {wildcards.experiment}"
    shell:
        "{params.script} --plan {params.results:q}/plan.json"
        " --summary {params.results:q}/summary.parquet --runs {params.runs:q}"
        " --out {params.results:q}/tables --experiment {wildcards.experiment:q} > {log:q} 2>&1"
