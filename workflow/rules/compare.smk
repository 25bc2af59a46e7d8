# Two campaigns, sites or results folders compared, point by point, as a page of its own.


localrules:
    compare,


# snakemake compare --config base=OTHER, or new=OTHER, or both: each a results folder, FOLDER@SITE
# or @SITE. The campaign's own side is read as it is now, whatever is pending; nothing is run.
rule compare:
    log:
        f"{RESULTS}/logs/compare.log",
    params:
        script=f"{SCRIPT}/compare.py",
        campaign=SWEEP.campaign_arguments(),
        base=SWEEP.options.get("base", ""),
        new=SWEEP.options.get("new", ""),
    message:
        "Comparing"
    shell:
        "{params.script} {params.campaign} --base={params.base:q} --new={params.new:q}"
        " 2>&1 | tee {log:q}"
