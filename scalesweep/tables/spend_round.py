"""A round of a budget: what is decided once all planned runs have been tried."""

import math
from dataclasses import replace

from scalesweep.core.errors import UserError
from scalesweep.planning.advice_target import read_target
from scalesweep.planning.run_state import DONE
from scalesweep.planning.spending import Decision, Kept, Spending, limit_of
from scalesweep.planning.stock import take_stock
from scalesweep.tables.advice import make_study
from scalesweep.tables.advice_points import prices_of
from scalesweep.tables.now import read_now

PRECISE = "precise"
SPENT = "no run that narrows it fits into what is left"


def decide(spending: Spending) -> Kept:
    """What is kept after this round: further decisions, or why there are none.

    The cheaper half of the points that are advised for what is left: what they teach also says
    better what the others will cost and give. Raises UserError for a target that the campaign does
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
    rows = sorted(study.rows(options, advice), key=lambda row: (row.node_hours, row.words))
    if not rows:
        return end(SPENT)
    number = 1 + max((one.round for one in kept.decisions), default=0)
    taken = _taken(spending)
    experiments = {one.name: one for one in campaign.experiments}
    made = []
    for row in rows[: (len(rows) + 1) // 2]:
        experiment = experiments[row.experiment]
        numbers = taken.get((row.experiment, experiment.benchmark.identity_of(row.point)), set())
        free = [n for n in range(len(numbers) + row.runs) if n not in numbers]
        limit_s = limit_of(row.longest_s, experiment)
        made.append(
            Decision(number, row.experiment, dict(row.point), free[: row.runs], row.question,
                     row.now, row.after, limit_s, row.node_hours)
        )  # fmt: skip
    return Kept((*kept.decisions, *made))


def half_width(width: float) -> float:
    """Half width of an interval over its value, from the logarithm of upper over lower bound."""
    return math.sinh(width / 2)


def _taken(spending: Spending) -> dict[tuple[str, str], set[int]]:
    """The numbers of the repeats that are done or planned, by experiment and point."""
    states = take_stock(spending.widest, spending.widest.unique_runs(), remember=False)
    planned = {run.run_id for one in spending.campaign.experiments for run in one.runs}
    found: dict[tuple[str, str], set[int]] = {}
    for one in spending.widest.experiments:
        for run in one.runs:
            if states[run.run_id].status == DONE or run.run_id in planned:
                key = (one.name, one.benchmark.identity_of(run.point))
                found.setdefault(key, set()).add(run.repeat)
    return found
