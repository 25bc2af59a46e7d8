# What rank counts that were not measured would give, from the points measured so far.


localrules:
    predict,


# snakemake predict --config ranks=256,512: of every experiment with weak or strong scaling; without
# ranks, the counts that the campaign asks for. Nothing is run, whatever is pending.
rule predict:
    log:
        f"{RESULTS}/logs/predict.log",
    params:
        script=f"{SCRIPT}/predict.py",
        campaign=SWEEP.campaign_arguments(),
        ranks=SWEEP.options.get("ranks", ""),
    message:
        "Predicting"
    shell:
        "{params.script} {params.campaign} --ranks={params.ranks:q} 2>&1 | tee {log:q}"
