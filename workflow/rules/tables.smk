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
    threads: 4
    params:
        script=f"{SCRIPT} tables",
        results=lambda wildcards: RESULTS,
        runs=RUNS,
        captions=shown_tables(),
        experiments=lambda wildcards: wildcards.experiment,
    message:
        "Making tables of {params.experiments}"
    shell:
        "{params.script} --plan {params.results:q}/plan.json"
        " --summary {params.results:q}/summary.parquet --runs {params.runs:q}"
        " --out {params.results:q}/tables --processes {threads}"
        " --experiments {params.experiments:q} > {log:q} 2>&1"


# To start a process takes longer than the tables of most experiments.
if SWEEP.together:

    localrules:
        tables_together,

    ruleorder: tables_together > experiment_tables

    use rule experiment_tables as tables_together with:
        input:
            expand(f"{RESULTS}/plan/{{name}}.json", name=SWEEP.together),
        output:
            directory(expand(f"{RESULTS}/tables/{{name}}", name=SWEEP.together)),
        log:
            f"{RESULTS}/logs/tables.log",
        params:
            script=f"{SCRIPT} tables",
            results=lambda wildcards: RESULTS,
            runs=RUNS,
            experiments=SWEEP.together,
        message:
            f"Making tables of {len(SWEEP.together)} experiments"
