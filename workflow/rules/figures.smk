# Figures of every experiment: SVG for the report, PDF and PNG for papers and slides.
from scalesweep.smk.report_labels import FigureTexts


localrules:
    figures,


rule figures:
    input:
        plan=f"{RESULTS}/plan.json",
        tables=f"{RESULTS}/{OUTPUTS}/tables",
    output:
        report(
            directory(f"{RESULTS}/{OUTPUTS}/figures"),
            # One format is enough there. (An SVG without a size of its own is not shown.)
            patterns=[
                "{experiment,[A-Za-z][A-Za-z0-9_-]*}/{figure,[A-Za-z0-9_-]+}.png"
            ],
            caption="../report/figure.rst",
            category="Figures",
            subcategory="{experiment}",
            labels=lambda wildcards, params: {
                "figure": params.texts.label(wildcards.experiment, wildcards.figure)
            },
        ),
    log:
        f"{RESULTS}/logs/figures.log",
    threads: 4
    params:
        script=f"{SCRIPT}/figures.py",
        tables=f"{RESULTS}/tables",
        figures=f"{RESULTS}/figures",
        texts=FigureTexts(f"{RESULTS}/figures/index.json"),
    message:
        "Drawing figures"
    shell:
        "{params.script} --plan {input.plan:q} --tables {params.tables:q} --out {params.figures:q}"
        " --links {output:q} --processes {threads} > {log:q} 2>&1"
