"""Findings on drift within a run: steps that become longer or shorter, and a warm-up in it."""

from collections.abc import Sequence

import numpy as np

from scalesweep.analysis.stats import Ratio, ratio_of
from scalesweep.analysis.step_distribution import likeness, warm_up
from scalesweep.aspects.steps.spread import OWN_WORK, Spread, step_curves, step_spreads
from scalesweep.core.formatting import counted, listed, percent
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CLEAR,
    OPEN,
    Finding,
    Number,
    Rule,
    marked,
    number_of,
    point_key,
)
from scalesweep.findings.family import LISTS

RULE = "drift in runs"
NOTABLE = 0.05  # of a step, from its first third to the last
# So much of what runs change along their steps is the same in each: waves of random phase, and
# machines that wander, seldom reach that by chance.
ALIKE = 0.9


def drift_in_runs(results: ExperimentResults) -> list[Finding]:
    """Points whose steps change along a run by 5 % or more; clear where several runs change by as
    much, by Student's t over the runs (p <= ``family.LISTS`` over the points), and along the same
    curve. Else a warm-up of some steps that makes up 5 % of the time, in each run."""
    spreads = step_spreads(results)
    least = LISTS / max(1, sum(spread.rank is None for spread in spreads))
    curves = {point_key(results, row): runs for row, runs in step_curves(results, "p50")}
    findings: list[Finding] = []
    for spread in spreads:
        changes = spread.values("drift")
        if spread.rank is None and changes:
            known = curves.get(point_key(results, spread.row), {})
            times = [[ms for _, ms in curve] for curve in known.values()]
            alike = likeness(times)
            ranks = [
                each for each in spreads
                if each.rank is not None
                and point_key(results, each.row) == point_key(results, spread.row)
            ]  # fmt: skip
            change = ratio_of([1 + each for each in changes])
            sure = change.p <= least and alike >= ALIKE
            drifts = _finding(results, spread, change, alike, sure, _whose(ranks, changes))
            findings += drifts or _warm_up(results, spread, times, least)
    return findings


def _warm_up(
    results: ExperimentResults, spread: Spread, times: Sequence[Sequence[float]], least: float
) -> list[Finding]:
    """That the first steps of each run are longer; clear over several runs."""
    ends = [warm_up(each) for each in times]
    if not ends or not all(count for count, _ in ends):
        return []
    left = ratio_of([1 - share for _, share in ends])
    if 1 - left.value < NOTABLE:
        return []
    steps = max(spread.values("steps"))
    part = np.array([count for count, _ in ends]) * steps / max(map(len, times))
    counts = list(dict.fromkeys(f"{count:,.0f}" for count in (part.min(), part.max())))
    low, high = (None if np.isnan(end) else 1 - end for end in (left.high, left.low))
    first = f"the first {' to '.join(counts)} of {steps:,.0f} steps are"
    first = f"the first of {steps:,.0f} steps is" if counts == ["1"] else first
    text = (
        f"{first} longer than the others, as in a warm-up, in each of {counted(len(ends), 'run')}"
        f"{f', at {results.describe(spread.row)}' if results.axes else ''}: without that a step "
        f"would take {percent(1 - left.value, low, high)} less on average"
    )
    sure = left.p <= least
    if len(ends) == 1:
        text = text.replace("in each of 1 run", "in 1 run") + "; not confirmed"
    elif not sure:
        text += "; not confirmed by the interval"
    change = number_of("warm-up", 1 - left.value, "1", low, high)
    return [_drift_finding(results, spread, text, sure, change)]


def _finding(
    results: ExperimentResults,
    spread: Spread,
    change: Ratio,
    alike: float,
    sure: bool,
    whose: str,
) -> list[Finding]:
    """The sentence on steps that become longer or shorter along the runs of a point; none if they
    do not.

    ``alike``: how alike the runs' curves are; ``whose``: words for the rank it is of.
    """
    changes = spread.values("drift")
    same_way = len({each > 0 for each in changes}) == 1
    worth = len(changes) == 1 or change.p <= LISTS or alike >= ALIKE
    if abs(change.value - 1) < NOTABLE or not (same_way and worth):
        return []
    low, high = (None if np.isnan(end) else abs(end - 1) for end in (change.low, change.high))
    if low is not None and high is not None:
        low, high = sorted((low, high))
    size, longer = percent(abs(change.value - 1), low, high), change.value > 1
    where = f", at {results.describe(spread.row)}" if results.axes else ""
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
    bounds = change.low - 1, change.high - 1
    return [
        _drift_finding(
            results, spread, text, sure, number_of("drift", change.value - 1, "1", *bounds)
        )
    ]


def _drift_finding(
    results: ExperimentResults, spread: Spread, text: str, sure: bool, change: Number
) -> Finding:
    evidence = {
        "experiment": results.name,
        "table": "steps",
        "key": {name: spread.row.get(name) for name in results.axes}
        | {"source": spread.row["source"]},
        "numbers": {change.name: change.value},
    }
    text = marked(spread.row["source"], f"{text}.")
    return Finding(results.name, RULE, CLEAR if sure else OPEN, text, evidence, (change,))


def _whose(ranks: list[Spread], changes: list[float]) -> str:
    """Whose own work changes with the steps in every run; empty where some of it is not decided."""
    own = {rank.rank: rank.values("drift") for rank in ranks if rank.of == OWN_WORK}
    if not own or any(len(each) != len(changes) for each in own.values()) or 0 in changes:
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


RULES = (Rule(RULE, drift_in_runs, figures=("steps",)),)
