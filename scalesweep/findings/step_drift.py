"""Findings on drift within a run: steps that become longer or shorter from its begin to its end."""

import numpy as np

from scalesweep.analysis.stats import MeanRatio, ratio_of
from scalesweep.analysis.step_delays import PART
from scalesweep.analysis.step_distribution import likeness
from scalesweep.core.formatting import counted, listed, percent
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.step_causes import point_causes
from scalesweep.experiment.step_spread import OWN_WORK, Spread, step_curves, step_spreads
from scalesweep.findings.base import (
    CONFIRMED,
    OPEN,
    Finding,
    marked,
    number_of,
    point_key,
)
from scalesweep.findings.cause_words import is_sure
from scalesweep.findings.family import LISTS

RULE = "drift in runs"
NOTABLE = 0.05  # of a step, from its first third to the last
# So much of what runs change along their steps is the same in each: waves of random phase, and
# machines that wander, seldom reach that by chance.
ALIKE = 0.9


def drift_in_runs(study: ExperimentResults) -> list[Finding]:
    """Points whose steps change along a run by 5 % or more; clear where several runs change by as
    much, by Student's t over the runs (p <= ``family.LISTS`` over the points), and along the same
    curve. Nothing where a cause is known to be there in a part of the run."""
    spreads = step_spreads(study)
    least = LISTS / max(1, sum(one.rank is None for one in spreads))
    told = {
        point_key(study, point.row) for point in point_causes(study)
        if any(each.pattern == PART and is_sure(each) for each in point.causes)
    }  # fmt: skip
    curves = {point_key(study, row): runs for row, runs in step_curves(study, "p50")}
    found: list[Finding] = []
    for one in spreads:
        changes = one.values("drift")
        if one.rank is None and changes and point_key(study, one.row) not in told:
            known = curves.get(point_key(study, one.row), {})
            alike = likeness([[ms for _, ms in curve] for curve in known.values()])
            ranks = [
                each for each in spreads
                if each.rank is not None and point_key(study, each.row) == point_key(study, one.row)
            ]  # fmt: skip
            change = ratio_of([1 + each for each in changes])
            sure = change.p <= least and alike >= ALIKE
            found += _finding(study, one, change, alike, sure, _whose(ranks, changes))
    return found


def _finding(
    study: ExperimentResults, one: Spread, change: MeanRatio, alike: float, sure: bool, whose: str
) -> list[Finding]:
    changes = one.values("drift")
    same_way = len({each > 0 for each in changes}) == 1
    worth = len(changes) == 1 or change.p <= LISTS or alike >= ALIKE
    if abs(change.value - 1) < NOTABLE or not (same_way and worth):
        return []
    low, high = (None if np.isnan(end) else abs(end - 1) for end in (change.low, change.high))
    if low is not None and high is not None:
        low, high = sorted((low, high))
    size, longer = percent(abs(change.value - 1), low, high), change.value > 1
    where = f", at {study.describe(one.row)}" if study.axes else ""
    text = (
        f"steps become {size} {'longer' if longer else 'shorter'} from the first third of a run to "
        f"the last, over {counted(len(changes), 'run')}{where}{whose}: how many "
        "steps are run decides what they take on average"
        f"{'' if longer else ', as in a warm-up that goes on'}"
    )
    if len(changes) == 1:
        text += "; one run, not confirmed"
    elif not sure:
        curves = "the runs change along other curves"
        why = curves if alike < ALIKE else "the interval leaves it open"
        text += f"; not confirmed: {why}"
    numbers = (number_of("drift", change.value - 1, "1", change.low - 1, change.high - 1),)
    evidence = {
        "experiment": study.name,
        "table": "steps",
        "key": {name: one.row.get(name) for name in study.axes} | {"source": one.row["source"]},
        "numbers": {"drift": change.value - 1, "alike": alike},
    }
    text = marked(one.row["source"], f"{text}.")
    level = CONFIRMED if sure else OPEN
    return [Finding(study.name, RULE, level, text, evidence, numbers)]


def _whose(ranks: list[Spread], changes: list[float]) -> str:
    """Whose own work changes with the steps in every run; empty where some of it is not decided."""
    own = {one.rank: one.values("drift") for one in ranks if one.of == OWN_WORK}
    if not own or any(len(each) != len(changes) for each in own.values()):
        return ""
    shares = {
        rank: np.array(each) / np.array(changes) for rank, each in own.items()
    }  # of the steps' change
    with_it = [rank for rank, share in shares.items() if share.min() >= 0.5]
    without = [rank for rank, share in shares.items() if np.abs(share).max() < 0.25]
    if len(with_it) + len(without) < len(own):
        return ""
    if not with_it:
        return " (the exchange does, no rank's own work)"
    if not without:
        return " (the own work of all ranks does)" if len(own) > 1 else ""
    return f" (the own work of {listed([f'rank {rank}' for rank in with_it], 4)} does)"
