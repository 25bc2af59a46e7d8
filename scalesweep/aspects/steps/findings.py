"""Findings on drift within a run: steps that become longer or shorter, and a warm-up in it."""

from collections.abc import Sequence

from scalesweep.analysis.stats import ratio_of
from scalesweep.analysis.step_distribution import likeness, warm_up
from scalesweep.aspects.steps.spread import OWN_WORK, Spread, step_curves, step_spreads
from scalesweep.core.formatting import listed
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CLEAR,
    OPEN,
    Finding,
    Number,
    Rule,
    evidence_of,
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
    """Points whose steps change along a run by 5 % or more; clear if several runs change by as
    much, by Student's t over the runs (p <= ``family.LISTS`` over the points), and along the same
    curve. Else a warm-up of the first steps that makes up 5 % of the time, in each run."""
    spreads = step_spreads(results)
    whole = [spread for spread in spreads if spread.rank is None and spread.values("drift")]
    least = LISTS / max(1, sum(spread.rank is None for spread in spreads))
    curves = {point_key(results, row): runs for row, runs in step_curves(results, "p50")}
    findings = []
    for spread in whole:
        key = point_key(results, spread.row)
        times = [[ms for _, ms in curve] for curve in curves.get(key, {}).values()]
        ranks = [
            each for each in spreads
            if each.of == OWN_WORK and point_key(results, each.row) == key
        ]  # fmt: skip
        drift = _drift(results, spread, likeness(times), least, _whose(ranks, spread))
        findings.append(drift or _warm_up(results, spread, times, least))
    return [finding for finding in findings if finding is not None]


def _warm_up(
    results: ExperimentResults, spread: Spread, times: Sequence[Sequence[float]], least: float
) -> Finding | None:
    """That the first steps of each run are longer; clear over several runs."""
    ends = [warm_up(each) for each in times]
    if not ends or not all(count for count, _ in ends):
        return None
    left = ratio_of([1 - share for _, share in ends])
    if 1 - left.value < NOTABLE:
        return None
    steps = max(spread.values("steps"))
    part = max(count for count, _ in ends) * steps / max(map(len, times))
    change = number_of("warm-up", 1 - left.value, "1", 1 - left.high, 1 - left.low)
    text = (
        f"the first {part:,.0f} of {steps:,.0f} steps are a warm-up: without it a step would take "
        f"{change:%} less"
    )
    why = "one run" if len(ends) == 1 else "the interval leaves it open"
    return _drift_finding(results, spread, text, "" if left.p <= least else why, change)


def _drift(
    results: ExperimentResults, spread: Spread, alike: float, least: float, whose: str
) -> Finding | None:
    """That steps become longer or shorter along the runs of a point; ``alike``: how alike the runs'
    curves are, ``whose``: words for the ranks that it is of."""
    changes = spread.values("drift")
    change = ratio_of([1 + each for each in changes])
    same_way = len({each > 0 for each in changes}) == 1
    worth = len(changes) == 1 or change.p <= LISTS or alike >= ALIKE
    if abs(change.value - 1) < NOTABLE or not (same_way and worth):
        return None
    ends = sorted(abs(end - 1) for end in (change.low, change.high))
    size = number_of("drift", abs(change.value - 1), "1", *ends)
    way = "longer" if change.value > 1 else "shorter"
    text = f"steps become {size:%} {way} from the first third of a run to the last{whose}"
    why = "" if change.p <= least and alike >= ALIKE else "the interval leaves it open"
    if alike < ALIKE:
        why = "the runs change along other curves"
    if len(changes) == 1:
        why = "one run"
    stated = number_of("drift", change.value - 1, "1", change.low - 1, change.high - 1)
    return _drift_finding(results, spread, text, why, stated)


def _drift_finding(
    results: ExperimentResults, spread: Spread, text: str, why: str, change: Number
) -> Finding:
    where = f"at {results.describe(spread.row)} " if results.axes else ""
    said = f"{where}{text}."
    evidence = evidence_of(results, "steps", spread.row)
    evidence["numbers"] = {change.name: change.value}
    said = marked(spread.row["source"], said)
    state = OPEN if why else CLEAR
    return Finding(results.name, RULE, state, said, evidence, (change,), reason=why)


def _whose(ranks: Sequence[Spread], spread: Spread) -> str:
    """The ranks whose own work changes by at least half as much, in every run; empty for all."""
    changes = spread.values("drift")
    late = [
        f"rank {each.rank}" for each in ranks
        if len(each.values("drift")) == len(changes)
        and all(own / whole >= 0.5 for own, whole in zip(each.values("drift"), changes, strict=True)
                if whole)
    ]  # fmt: skip
    return f" (own work of {listed(late, 4)})" if 0 < len(late) < len(ranks) else ""


RULES = (Rule(RULE, drift_in_runs, figures=("steps",)),)
