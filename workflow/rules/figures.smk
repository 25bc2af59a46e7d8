# Figures of every experiment: SVG for the report, PDF and PNG for papers and slides.


localrules:
    figures,


rule figures:
    input:
        plan=f"{RESULTS}/plan.json",
        tables=f"{RESULTS}/tables",
    output:
        directory(f"{RESULTS}/figures"),
    log:
        f"{RESULTS}/logs/figures.log",
    threads: 4
    params:
        script=f"{SCRIPT}/figures.py",
    message:
        "Drawing figures"
    shell:
        "{params.script} --plan {input.plan:q} --tables {input.tables:q} --out {output:q}"
        " --processes {threads} > {log:q} 2>&1"
