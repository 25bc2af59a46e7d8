# The plan: every run of the campaign and its state.


localrules:
    plan,
    inventory,
    block,


# `snakemake plan` prints the plan at any time and runs nothing.
rule plan:
    log:
        f"{RESULTS}/logs/plan.log",
    params:
        script=f"{SCRIPT} inventory",
        campaign=SWEEP.campaign_arguments(),
        batch=lambda _: workflow.executor_settings.submit_cmd if SWEEP.batch else "",
    message:
        "Planning"
    shell:
        "{params.script} {params.campaign} --submit-cmd={params.batch:q}"
        " 2>&1 | tee {log:q}"


# The same as files, once everything that is pending has been done.
rule inventory:
    input:
        lambda wildcards: SWEEP.inventory_input(facts.only_reports(workflow)),
    output:
        json=f"{RESULTS}/plan.json",
        csv=report(
            f"{RESULTS}/plan.csv",
            caption="../report/plan.rst",
            category="Tables",
            subcategory="the campaign",
            labels={"table": "plan", "format": "csv"},
        ),
    log:
        f"{RESULTS}/logs/inventory.log",
    params:
        script=f"{SCRIPT} inventory",
        campaign=SWEEP.campaign_arguments(),
        # Evaluated once more when the job starts: from then on no other report is made.
        claim=lambda wildcards: PREFLIGHT.claim_report(),
    message:
        f"Collecting run states in {RUNS}"
    shell:
        "{params.script} {params.campaign} --write > {log:q} 2>&1"


# For `scalesweep run`: the runs of one block, and what follows from them.
rule block:
    input:
        SWEEP.markers(SWEEP.pending),
        f"{RESULTS}/plan.json",
