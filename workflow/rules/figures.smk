# Figures of an experiment: SVG for the report, PDF and PNG for papers and slides.


localrules:
    experiment_figures,


rule experiment_figures:
    input:
        plan=f"{RESULTS}/plan/{{experiment}}.json",
        tables=f"{RESULTS}/tables/{{experiment}}",
    output:
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
        f"{RESULTS}/logs/figures-{{experiment}}.log",
    wildcard_constraints:
        experiment="[^/]+",
    threads: 4
    params:
        script=f"{SCRIPT} figures",
        results=lambda wildcards: RESULTS,
        experiments=lambda wildcards: wildcards.experiment,
    message:
        "Drawing figures of {params.experiments}"
    shell:
        "{params.script} --plan {params.results:q}/plan.json --tables {params.results:q}/tables"
        " --out {params.results:q}/figures --processes {threads}"
        " --experiments {params.experiments:q} > {log:q} 2>&1"


if SWEEP.together:

    localrules:
        figures_together,

    ruleorder: figures_together > experiment_figures

    use rule experiment_figures as figures_together with:
        input:
            expand(f"{RESULTS}/plan/{{name}}.json", name=SWEEP.together),
            expand(f"{RESULTS}/tables/{{name}}", name=SWEEP.together),
        output:
            directory(expand(f"{RESULTS}/figures/{{name}}", name=SWEEP.together)),
        log:
            f"{RESULTS}/logs/figures.log",
        params:
            script=f"{SCRIPT} figures",
            results=lambda wildcards: RESULTS,
            experiments=SWEEP.together,
        message:
            f"Drawing figures of {len(SWEEP.together)} experiments"
