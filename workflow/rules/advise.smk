# What to measure next with so many node-hours, from the points measured so far.


localrules:
    advise,


# snakemake advise --config budget_node_hours=50 target="io ranks=1024": prints it, and writes
# advice.csv, advice_curve.csv and a campaign with the points, advice.yaml. Nothing is run.
rule advise:
    log:
        f"{RESULTS}/logs/advise.log",
    params:
        script=f"{SCRIPT}/advise.py",
        campaign=SWEEP.campaign_arguments(),
        budget=SWEEP.options.get("budget_node_hours", ""),
        target=SWEEP.options.get("target", ""),
    message:
        "Working out what to measure next"
    shell:
        "{params.script} {params.campaign} --budget={params.budget:q} --target={params.target:q} 2>&1"
        " | tee {log:q}"
