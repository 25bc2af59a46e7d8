"""Findings on steps: losses, causes, slow ranks; here those on steps that change along a run."""

from collections.abc import Iterator, Sequence

import numpy as np

from scalesweep.analysis.stats import ratio_of
from scalesweep.aspects.steps import cause_findings, losses, machine, rank_findings
from scalesweep.aspects.steps.table import CurveRow, StepRow
from scalesweep.core.formatting import listed
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CLEAR,
    OPEN,
    Finding,
    Number,
    Rule,
    estimate_of,
    evidence_of,
    number_of,
)
from scalesweep.findings.family import LISTS

DRIFT, WARM_UP = "drift in runs", "warm-up"
CHANGE = 0.05  # of a step, from the first third of a run to its last; of all time, in a warm-up
# So much of what runs change along their steps is the same in each: waves of random phase, and
# machines that wander, seldom reach that by chance.
ALIKE, BLOCKS = 0.9, 6


def _where(results: ExperimentResults, row: StepRow) -> str:
    return results.describe(row.row) if results.axes else ""


def changing_steps(results: ExperimentResults) -> list[Finding]:
    """Points whose steps change along a run by 5 % or more; clear if several runs change by as
    much, by Student's t over the runs (p <= ``family.LISTS`` over the points), and along the same
    curve. Else a warm-up of the first steps that makes up 5 % of the time, in each run."""
    points: dict[object, list[StepRow]] = {}
    for row in results.of(StepRow):
        points.setdefault(results.point_key(row.row), []).append(row)
    curves: dict[str, list[float]] = {}
    for curve in results.of(CurveRow):
        curves.setdefault(curve.run_id, []).append(curve.p50)
    least = LISTS / max(1, len(points))
    return [f for rows in points.values() for f in _changing(results, rows, curves, least)]


def _changing(
    results: ExperimentResults, rows: Sequence[StepRow], curves: dict[str, list[float]],
    least: float,
) -> Iterator[Finding]:  # fmt: skip
    whole = [row for row in rows if row.rank is None]
    drifts = [row.drift for row in whole if row.drift is not None]
    change = ratio_of([1 + drift for drift in drifts]) if drifts else None
    alike = likeness([curves[row.run_id] for row in whole if row.run_id in curves])
    doubt = "one run" if len(whole) == 1 else "the interval leaves it open"
    if (
        change is not None
        and abs(change.value - 1) >= CHANGE
        and len({drift > 0 for drift in drifts}) == 1
        and (len(drifts) == 1 or change.chance <= LISTS or alike >= ALIKE)
    ):
        ends = sorted(abs(end - 1) for end in (change.low, change.high) if end is not None)
        words = {"way": "longer" if change.value > 1 else "shorter", "whose": _whose(rows, drifts)}
        if len(whole) > 1 and alike < ALIKE:
            doubt = "the runs change along other curves"
        numbers = (number_of("change", abs(change.value - 1), "1", *ends),)
        clear = change.chance <= least and alike >= ALIKE
        yield _on_steps(results, DRIFT, whole[0], words, numbers, "" if clear else doubt)
        return
    if all(row.warm_up for row in whole):
        left = ratio_of([1 - row.warm_up_share for row in whole])
        if 1 - left.value >= CHANGE:
            of_warm_up = (
                number_of("first", max(row.warm_up for row in whole), "1"),
                number_of("steps", max(row.steps for row in whole), "1"),
                estimate_of("change", left.rest(), "1"),
            )
            yield _on_steps(
                results, WARM_UP, whole[0], {}, of_warm_up, "" if left.chance <= least else doubt
            )


def _on_steps(
    results: ExperimentResults, rule: str, row: StepRow, words: dict[str, str],
    numbers: tuple[Number, ...], reason: str,
) -> Finding:  # fmt: skip
    return Finding(
        results.name, rule, OPEN if reason else CLEAR, subject=_where(results, row), words=words,
        numbers=numbers, evidence=evidence_of(results, StepRow.TABLE, row.row), reason=reason,
    )  # fmt: skip


def likeness(curves: Sequence[Sequence[float]]) -> float:
    """Which share of what runs change along their steps they have in common, from 0 to 1.

    ``curves[run]``: positive times in their order. Of the logarithms of the medians of six blocks,
    less the run's mean, the sum of squares that the mean over the runs leaves is not common. 0 of
    one run, or of too few steps.
    """
    if len(curves) < 2 or min(map(len, curves)) < 2 * BLOCKS:
        return 0.0
    logs = np.log([[np.median(part) for part in np.array_split(curve, BLOCKS)] for curve in curves])
    logs -= logs.mean(axis=1, keepdims=True)
    whole = float((logs**2).sum())
    return 1 - float(((logs - logs.mean(axis=0)) ** 2).sum()) / whole if whole > 0 else 0.0


def _whose(rows: Sequence[StepRow], drifts: Sequence[float]) -> str:
    """The ranks whose own work changes by at least half as much, in every run; empty for all."""
    own: dict[int, list[float]] = {}
    for row in rows:
        if row.rank is not None and row.of != "step" and row.drift is not None:
            own.setdefault(row.rank, []).append(row.drift)
    late = [
        f"rank {rank}" for rank, changes in own.items()
        if len(changes) == len(drifts)
        and all(each / whole >= 0.5 for each, whole in zip(changes, drifts, strict=True) if whole)
    ]  # fmt: skip
    return f" (own work of {listed(late, 4)})" if 0 < len(late) < len(own) else ""


_OPEN = "repeat the runs"
RULES = (
    *losses.RULES,
    *cause_findings.RULES,
    *machine.RULES,
    *rank_findings.RULES,
    Rule(
        DRIFT, changing_steps, figures=("steps",),
        says={
            CLEAR: "{subject}: steps become {change:%} {way} from the first third of a run to the "
            "last{whose}."
        },
        next={CLEAR: "look for what grows: memory, logs, clocks, caches", OPEN: _OPEN},
    ),
    Rule(
        WARM_UP, None, figures=("steps", "warm-up"),
        says={
            CLEAR: "{subject}: the first {first} of {steps} steps are a warm-up; without it a step "
            "takes {change:%} less."
        },
        next={CLEAR: "leave these steps out of the timed ones", OPEN: _OPEN},
    ),
)  # fmt: skip
