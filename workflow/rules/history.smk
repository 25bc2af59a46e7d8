# Campaigns over time: finished points kept as a session.


localrules:
    session,


# Only where the campaign, or --config history=FOLDER, names a folder. What it writes there is no
# output: it stays when results are made again.
rule session:
    input:
        plan=f"{RESULTS}/plan.json",
        summary=f"{RESULTS}/summary.parquet",
        # Last of all: a history that cannot be written takes no report with it.
        page=f"{RESULTS}/report.html",
    output:
        f"{RESULTS}/.history/{SWEEP.history_digest}",
    log:
        f"{RESULTS}/logs/session.log",
    params:
        script=f"{SCRIPT} session",
        campaign=SWEEP.campaign_arguments(),
    message:
        "Keeping a session"
    shell:
        "{params.script} {params.campaign} --out {output:q} > {log:q} 2>&1"
