"""Points that are measured until they are precise: which of their repeats are planned.

A pure function of what the repeats have measured: the least number of them, and another one after
each that left the interval too wide. Repeats that have been started are always planned.
"""

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from scalesweep.adaptive.measured import Measured, metric_of, values_of
from scalesweep.analysis.repeat_rule import MORE, NEW, WAITING, Look, level_of
from scalesweep.config.experiment import Experiment
from scalesweep.config.experiment_keys import UntilPrecise
from scalesweep.config.repeats import Run
from scalesweep.core.plan_format import PlanRepeated, PlanRepeats
from scalesweep.core.status import Status
from scalesweep.state.run_state import RunState


@dataclass(frozen=True)
class RepeatedPoint:
    """A point without a fixed number of repeats: its runs that are planned, and what is known.

    ``look`` is None before any repeat has begun; ``metric`` is the one looked at, empty if no run
    has one; ``done``: repeats that have finished.
    """

    experiment: Experiment
    rule: UntilPrecise
    runs: tuple[Run, ...]
    look: Look | None
    metric: str
    done: int


def most_repeats(experiment: Experiment, there: Set[str]) -> list[int]:
    """Repeats that each point may have: the maximum, and what there is beyond it (``there``)."""
    assert experiment.until_precise is not None
    benchmark, counts = experiment.benchmark, []
    for point in experiment.points:
        count = experiment.until_precise.most
        while benchmark.run_id(point, count) in there:
            count += 1
        counts.append(count)
    return counts


def repeated_points(
    experiment: Experiment, states: Mapping[str, RunState], known: Mapping[str, Measured]
) -> list[RepeatedPoint]:
    """The points of an experiment, in order; it has all repeats that they may have."""
    runs_of: dict[int, list[Run]] = {id(point): [] for point in experiment.points}
    for run in experiment.runs:
        runs_of[id(run.point)].append(run)
    return [_point(experiment, runs, states, known) for runs in runs_of.values()]


def _point(
    experiment: Experiment,
    runs: list[Run],
    states: Mapping[str, RunState],
    known: Mapping[str, Measured],
) -> RepeatedPoint:
    rule = experiment.until_precise
    assert rule is not None
    mine = [states[run.run_id] for run in runs]
    begun = [place for place, state in enumerate(mine, 1) if state.status != Status.NEW]
    asked = min(max(rule.least, *begun, 0), len(runs))
    look, metric = None, rule.metric or ""
    if begun:
        from scalesweep.analysis.sequential import look_at  # NumPy

        done = {run.run_id: known[run.run_id] for run in runs if run.run_id in known}
        main = [experiment.main_metric] if experiment.main_metric else []
        preferred = (*main, "total_throughput", *experiment.benchmark.metrics)
        metric = metric or metric_of(preferred, done)
        values = list(values_of(metric, done).values())
        look = look_at(values, asked, rule.least, rule.most, rule.until)
        if not all(state.settled for state in mine[:asked]):
            look = Look(WAITING, look.width, asked)
        asked = min(asked + (look.state == MORE), len(runs))
    finished = sum(state.status == Status.DONE for state in mine)
    return RepeatedPoint(experiment, rule, tuple(runs[:asked]), look, metric, finished)


def repeats_entry(points: Iterable[RepeatedPoint]) -> PlanRepeats | None:
    """The entry in the plan of an experiment whose points these are; None without any."""
    points = list(points)
    if not points:
        return None
    rule = points[0].rule
    return {
        "least": rule.least,
        "most": rule.most,
        "until": rule.until,
        "level": level_of(rule.least),
        "metric": next((point.metric for point in points if point.metric), ""),
        "points": [_entry(point) for point in points],
    }


def _entry(point: RepeatedPoint) -> PlanRepeated:
    look, planned = point.look, len(point.runs)
    return {
        "point": point.experiment.benchmark.scaled(point.runs[0].point),
        "state": look.state if look else NEW,
        "width": look.width if look and math.isfinite(look.width) else None,
        "done": point.done,
        "planned": planned,
        "expected": look.expected if look else planned,
    }
