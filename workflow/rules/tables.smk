# Tables and figures of an experiment (docs/reference/files.md lists them), by one process.

from scalesweep.aspects.registry import shown_tables


localrules:
    tables,
    experiment,


# `snakemake tables` makes those of all experiments once their runs are over, and draws nothing.
rule tables:
    input:
        SWEEP.markers(SWEEP.pending),
        f"{RESULTS}/summary.parquet",
    log:
        f"{RESULTS}/logs/tables.log",
    threads: 4
    params:
        script=f"{SCRIPT} tables",
        results=lambda wildcards: RESULTS,
        runs=lambda wildcards: RUNS,
    message:
        "Making the tables"
    shell:
        "{params.script} --results {params.results:q} --runs {params.runs:q}"
        " --processes {threads} > {log:q} 2>&1"


rule experiment:
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
        report(
            directory(f"{RESULTS}/figures/{{experiment}}"),
            # One format is enough there. (An SVG without a size of its own is not shown.)
            patterns=["{figure,[A-Za-z0-9_-]+}.png"],
            caption="../report/figure.rst",
            category="Figures",
            subcategory="{experiment}",
            labels={"figure": "{figure}"},
        ),
    log:
        f"{RESULTS}/logs/experiment-{{experiment}}.log",
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
        "Making tables and figures of {params.experiments}"
    shell:
        "{params.script} --results {params.results:q} --runs {params.runs:q}"
        " --processes {threads} --draw --experiments {params.experiments:q} > {log:q} 2>&1"


# To start a process takes longer than the tables of most experiments.
if SWEEP.together:

    localrules:
        experiments_together,

    ruleorder: experiments_together > experiment

    use rule experiment as experiments_together with:
        input:
            expand(f"{RESULTS}/plan/{{name}}.json", name=SWEEP.together),
        output:
            directory(expand(f"{RESULTS}/tables/{{name}}", name=SWEEP.together)),
            directory(expand(f"{RESULTS}/figures/{{name}}", name=SWEEP.together)),
        log:
            f"{RESULTS}/logs/experiments.log",
        params:
            script=f"{SCRIPT} tables",
            results=lambda wildcards: RESULTS,
            runs=RUNS,
            experiments=SWEEP.together,
        message:
            f"Making tables and figures of {len(SWEEP.together)} experiments"
