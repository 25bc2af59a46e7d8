"""What Slurm's accounting says that the jobs of a budget have cost so far.

Asked for before each round, and kept with the decisions, because the Snakefile is parsed too often
to ask each time. What is not in it counts at its limit (``adaptive.spending``).
"""

from dataclasses import replace

from scalesweep.adaptive.spend_decisions import Kept
from scalesweep.adaptive.spending import Spending, bill_key
from scalesweep.core.status import Status
from scalesweep.jobs.job_cost import spent_jobs
from scalesweep.slurm.sacct import FINAL
from scalesweep.state.stock import take_stock


def with_bill(spending: Spending) -> Kept:
    """What is kept, with what the jobs of each run have cost, and those of no run (staging).

    A run is left out while a job of it is not over. As before where the accounting does not answer,
    or does not know all jobs; and without Slurm.
    """
    campaign = spending.campaign
    if campaign.site.slurm is None:
        return spending.kept
    runs = campaign.unique_runs()
    found = spent_jobs(campaign)
    if found.notes:
        return spending.kept
    hours: dict[str, float] = {}
    open_ones, other = set(), 0.0
    for row in found.rows:
        mine = (row["run_id"] or "").split()
        if row["state"] not in FINAL:
            open_ones |= set(mine)
        other += 0.0 if mine else row["node_hours"] or 0.0
        for run_id in mine:
            hours[run_id] = hours.get(run_id, 0.0) + (row["node_hours"] or 0.0) / len(mine)
    states = take_stock(campaign, runs, remember=False)
    billed = {
        run_id: (bill_key(campaign.runs_folder / run_id, states[run_id]), cost)
        for run_id, cost in hours.items()
        if run_id in runs and run_id not in open_ones and states[run_id].status != Status.NEW
    }
    return replace(spending.kept, billed={**spending.kept.billed, **billed}, other=other)
