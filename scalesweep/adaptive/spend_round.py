"""A round of a budget: what is decided once all planned runs have been tried.

Slurm's accounting is asked before each round what the jobs so far have cost, and the answer is kept
with the decisions, because the Snakefile is parsed too often to ask each time. What is not in it
counts at its limit (``adaptive.spending``).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from scalesweep.adaptive.advice import make_study
from scalesweep.adaptive.advice_points import prices_of
from scalesweep.adaptive.advice_study import Row
from scalesweep.adaptive.advice_target import read_target
from scalesweep.adaptive.spending import Decision, Kept, Spending, bill_key, limit_of
from scalesweep.analysis.advice.advise import Options
from scalesweep.core.errors import UserError
from scalesweep.core.status import Status
from scalesweep.jobs.job_cost import spent_jobs
from scalesweep.slurm.sacct import FINAL
from scalesweep.state.stock import take_stock
from scalesweep.tables.now import read_now

PRECISE = "precise"


def decide(spending: Spending) -> Kept:
    """What is kept after this round: further decisions, or why there are none.

    The cheaper half of the points that are advised for what is left (two settings of a choice
    together): what they teach also says better what the others will cost and give. A point whose
    runs have only failed is not chosen again. Raises UserError for a target that the campaign does
    not have.
    """
    campaign, kept, rule = spending.widest, spending.kept, spending.rule
    wanted = read_target(rule.target, campaign)
    plan, summary = read_now(campaign)

    def end(why: str) -> Kept:
        return replace(kept, ended=why, seen=spending.seen)

    if spending.left <= 0:
        return end("the budget is spent")
    prices = prices_of(campaign, by_limit=True)
    study = make_study(campaign, plan, summary, prices, wanted, spending.left)
    try:
        options = study.options(spending.left)
    except UserError as error:
        return end(str(error))
    if rule.until is not None and all(
        half_width(answer.before) <= rule.until for answer in options.now
    ):
        return end(PRECISE)
    advice = options.advise()
    pairs = {choice.name for choice in study.choices}
    taken, failed = _tried(spending)
    experiments = {experiment.name: experiment for experiment in campaign.experiments}

    def place(row: Row) -> tuple[str, str]:
        return row.experiment, experiments[row.experiment].benchmark.identity_of(row.point)

    together: dict[str, list[Row]] = {}
    rows = study.rows(options, advice)
    for row in rows:
        if row.experiment in spending.governed and place(row) not in failed:
            key = row.question if row.question in pairs else f"{row.question} {row.words}"
            together.setdefault(key, []).append(row)
    if not together:
        return end("; ".join([_why_none(options, rows, spending), *study.stopped]))
    groups = sorted(together.values(), key=lambda rows: sum(row.node_hours for row in rows))
    number = 1 + max((decision.round for decision in kept.decisions), default=0)
    made = []
    for row in chain.from_iterable(groups[: (len(groups) + 1) // 2]):
        numbers = taken.get(place(row), set())
        free = [n for n in range(len(numbers) + row.runs) if n not in numbers]
        limit_s = limit_of(row.longest_s, experiments[row.experiment])
        made.append(
            Decision(number, row.experiment, dict(row.point), free[: row.runs], row.question,
                     row.now, row.after, limit_s, row.node_hours)
        )  # fmt: skip
    return replace(kept, decisions=(*kept.decisions, *made), ended="", seen="")


def _why_none(options: Options, rows: Sequence[Row], spending: Spending) -> str:
    """Why a round chooses nothing, with what is left of the budget."""
    left = f"{spending.left:.3g} of {spending.rule.budget:g} node-hours are left"
    if rows:
        return f"the points that would narrow it have only failed; {left}"
    why = "no run that fits into what is left is expected to narrow it"
    if (beyond := options.beyond) is not None:
        why += f", and the cheapest that does not fit may take {beyond:.3g} node-hours by its limit"
    return f"{why}; {left}"


def half_width(width: float) -> float:
    """Half width of an interval over its value, from the logarithm of upper over lower bound."""
    return math.sinh(width / 2)


def _tried(spending: Spending) -> tuple[dict[tuple[str, str], set[int]], set[tuple[str, str]]]:
    """By experiment and point the numbers of the repeats that are done or planned; and the points
    whose runs have only failed."""
    states = take_stock(spending.widest, spending.widest.unique_runs(), remember=False)
    planned = {
        run.run_id for experiment in spending.campaign.experiments for run in experiment.runs
    }
    taken: dict[tuple[str, str], set[int]] = {}
    ends: dict[tuple[str, str], set[str]] = {}
    for experiment in spending.widest.experiments:
        for run in experiment.runs:
            key, status = (
                (experiment.name, experiment.benchmark.identity_of(run.point)),
                states[run.run_id].status,
            )
            ends.setdefault(key, set()).add(status)
            if status == Status.DONE or run.run_id in planned:
                taken.setdefault(key, set()).add(run.repeat)
    return taken, {
        key for key, seen in ends.items() if Status.FAILED in seen and Status.DONE not in seen
    }


def with_bill(spending: Spending) -> Kept:
    """What is kept, with what the jobs of each run have cost, and those of no run (staging).

    A run is left out while a job of it is not over. As before where the accounting does not answer,
    or does not know all jobs; and without Slurm.
    """
    campaign = spending.campaign
    if campaign.site.slurm is None:
        return spending.kept
    runs = campaign.unique_runs()
    jobs = spent_jobs(campaign)
    if jobs.notes:
        return spending.kept
    hours: dict[str, float] = {}
    open_ones, other = set(), 0.0
    for row in jobs.rows:
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
