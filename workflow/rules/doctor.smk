# What a campaign would need on its site, checked one by one: software, launcher, Slurm, folders.


localrules:
    doctor,


# `snakemake doctor [--config site=NAME] [--profile slurm]` measures nothing. A check that has
# failed ends the call with an exit code (onsuccess in report.smk), not with Snakemake's own errors.
rule doctor:
    log:
        f"{RESULTS}/logs/doctor.log",
    params:
        script=f"{SCRIPT}/doctor.py",
        campaign=SWEEP.campaign_arguments(),
        cluster="--cluster" if SWEEP.submission else "",
        outcome=SWEEP.outcome_file("doctor"),
    message:
        f"Checking site {SWEEP.campaign.site.name}"
    shell:
        "{params.script} {params.campaign} {params.cluster} --outcome {params.outcome:q}"
        " 2>&1 | tee {log:q}"
