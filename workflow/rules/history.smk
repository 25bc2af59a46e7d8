# Campaigns over time: finished points kept as a session, and the page of what changed.


localrules:
    session,
    history,


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
        script=f"{SCRIPT}/session.py",
        campaign=SWEEP.campaign_arguments(),
    message:
        "Keeping a session"
    shell:
        "{params.script} {params.campaign} --out {output:q} > {log:q} 2>&1"


# `snakemake history`: the page of all sessions; runs nothing. Regressions end the call with one
# line each where --config fail=regression asks for it (onsuccess in report.smk).
rule history:
    log:
        f"{RESULTS}/logs/history.log",
    params:
        script=f"{SCRIPT}/history.py",
        campaign=SWEEP.campaign_arguments(),
        outcome=SWEEP.outcome_file("history"),
        fail=SWEEP.options.get("fail", ""),
    message:
        "Writing the history"
    shell:
        "{params.script} {params.campaign} --outcome {params.outcome:q} --fail={params.fail:q}"
        " 2>&1 | tee {log:q}"
