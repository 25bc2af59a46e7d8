"""Points that are measured until they are precise: which of their repeats are planned.

A pure function of what the repeats have measured: the least number of them, and another one after
each that left the interval too wide. Repeats that have been started are always planned.
"""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scalesweep.analysis.metrics import EPOCH_PHASES
from scalesweep.analysis.repeat_rule import MORE, NEW, WAITING, Look, level_of
from scalesweep.config.experiment import Experiment
from scalesweep.config.experiment_keys import UntilPrecise
from scalesweep.config.repeats import Run
from scalesweep.core.joined_experiments import axes_key
from scalesweep.core.plan_format import PlanExperiment, PlanRepeated, PlanRepeats
from scalesweep.core.status import Status
from scalesweep.state.run_state import RunState

if TYPE_CHECKING:
    from scalesweep.tables.points import ExperimentData, Point


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
    experiment: Experiment,
    entry: PlanExperiment,
    states: Mapping[str, RunState],
    data: "ExperimentData | None",
) -> list[RepeatedPoint]:
    """The points of an experiment, in order; it has all repeats that they may have.

    ``entry``: its entry in the plan; ``data``: what finished runs have measured.
    """
    runs_of: dict[int, list[Run]] = {id(point): [] for point in experiment.points}
    for run in experiment.runs:
        runs_of[id(run.point)].append(run)
    finished = data.points() if data else []
    of_point = {axes_key(entry, point.values): point for point in finished}
    points = []
    for runs in runs_of.values():
        point = of_point.get(axes_key(entry, experiment.benchmark.scaled(runs[0].point)))
        metric, values = _measured(experiment, data, point)
        points.append(_point(experiment, runs, states, metric, values))
    return points


def _measured(
    experiment: Experiment, data: "ExperimentData | None", point: "Point | None"
) -> tuple[str, Sequence[float]]:
    """The metric that is looked at, and what the repeats of a point have of it, as the report has
    it: of epochs after the first one, if there are several."""
    metric = (experiment.until_precise and experiment.until_precise.metric) or ""
    if data is None or point is None:
        return metric, ()
    from scalesweep.tables.comparisons import main_measures  # pandas

    measures = [m for m in data.measures if m[0] == metric] if metric else main_measures(data)
    phases = (*reversed(EPOCH_PHASES), "run")
    for measure in sorted(measures, key=lambda measure: phases.index(measure[1])):
        if (values := data.repeats(point, measure)).size:
            return measure[0], values.tolist()
    return metric, ()


def _point(
    experiment: Experiment,
    runs: Sequence[Run],
    states: Mapping[str, RunState],
    metric: str,
    values: Sequence[float],
) -> RepeatedPoint:
    rule = experiment.until_precise
    assert rule is not None
    mine = [states[run.run_id] for run in runs]
    begun = [place for place, state in enumerate(mine, 1) if state.status != Status.NEW]
    asked = min(max(rule.least, *begun, 0), len(runs))
    look = None
    if begun:
        from scalesweep.analysis.sequential import look_at  # NumPy

        look = look_at(values, asked, rule.least, rule.most, rule.until)
        if not all(state.settled for state in mine[:asked]):
            look = Look(WAITING, look.width, asked)
        asked = min(asked + (look.state == MORE), len(runs))
    finished = sum(state.status == Status.DONE for state in mine)
    return RepeatedPoint(experiment, rule, tuple(runs[:asked]), look, metric, finished)


def repeats_entry(experiment: Experiment, points: Sequence[RepeatedPoint]) -> PlanRepeats | None:
    """What the plan says of an experiment's repeats; None where their number is fixed."""
    if (rule := experiment.until_precise) is None:
        return None
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
