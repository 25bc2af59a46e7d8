"""Points that are measured until they are precise: which of their repeats are planned.

A pure function of what the repeats have measured: the least number of them, and another one after
each that left the interval too wide. Repeats that have been started are always planned.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from scalesweep.analysis.metrics import EPOCH_PHASES
from scalesweep.analysis.repeat_rule import MORE, NEW, WAITING, Look, level_of
from scalesweep.config.experiment import Experiment
from scalesweep.config.experiment_keys import UntilPrecise
from scalesweep.config.repeats import Run
from scalesweep.core.joined_experiments import axes_key
from scalesweep.core.plan_format import PlanExperiment, PlanRepeated, PlanRepeats, PointValues
from scalesweep.core.status import Status
from scalesweep.state.run_state import RunState

if TYPE_CHECKING:
    from scalesweep.tables.points import ExperimentData, Point


def most_repeats(experiment: Experiment, runs: Path) -> list[int]:
    """Repeats that each point may have: the maximum, and what there is beyond it (in ``runs``)."""
    assert experiment.keys.until_precise is not None
    benchmark, counts = experiment.benchmark, []
    for point in experiment.points:
        count = experiment.keys.until_precise.most
        while (runs / benchmark.run_id(point, count)).exists():
            count += 1
        counts.append(count)
    return counts


def rule_entry(rule: UntilPrecise) -> PlanRepeats:
    """What the plan says of a rule alone."""
    level = level_of(rule.least)
    asked = {"least": rule.least, "most": rule.most, "until": rule.until, "level": level}
    return cast(PlanRepeats, {**asked, "metric": "", "points": []})


def planned_repeats(
    experiment: Experiment,
    entry: PlanExperiment,
    states: Mapping[str, RunState],
    data: "ExperimentData | None",
) -> PlanRepeats:
    """What the plan says of an experiment's repeats, with its points in order; it has all repeats
    that they may have.

    ``entry``: its entry in the plan; ``data``: what finished runs have measured.
    """
    assert experiment.keys.until_precise is not None
    repeats = rule_entry(experiment.keys.until_precise)
    runs_of: dict[int, list[Run]] = {id(point): [] for point in experiment.points}
    for run in experiment.runs:
        runs_of[id(run.point)].append(run)
    of_point = {axes_key(entry, point.values): point for point in data.points()} if data else {}
    for runs in runs_of.values():
        values_of = experiment.benchmark.scaled(runs[0].point)
        point = of_point.get(axes_key(entry, values_of))
        metric, values = _measured(data, point)
        repeats["metric"] = repeats["metric"] or metric
        mine = [states[run.run_id] for run in runs]
        repeats["points"].append(_looked_at(experiment.keys.until_precise, values_of, mine, values))
    return repeats


def _measured(data: "ExperimentData | None", point: "Point | None") -> tuple[str, Sequence[float]]:
    """The metric that is looked at, and what the repeats of a point have of it, as the report has
    it: of epochs after the first one, if there are several."""
    if data is None or point is None:
        return "", ()
    from scalesweep.tables.comparisons import main_measures  # pandas

    phases = (*reversed(EPOCH_PHASES), "run")
    for measure in sorted(main_measures(data), key=lambda measure: phases.index(measure[1])):
        if (values := data.repeats(point, measure)).size:
            return measure[0], values.tolist()
    return "", ()


def _looked_at(
    rule: UntilPrecise, point: PointValues, states: Sequence[RunState], values: Sequence[float]
) -> PlanRepeated:
    """What is planned of a point, of whose repeats these are the ``states`` and the values."""
    begun = [place for place, state in enumerate(states, 1) if state.status != Status.NEW]
    asked = min(max(rule.least, *begun, 0), len(states))
    look = Look(NEW, math.nan, asked)
    if begun:
        from scalesweep.analysis.sequential import look_at  # NumPy

        look = look_at(values, asked, rule.least, rule.most, rule.until)
        if not all(state.settled for state in states[:asked]):
            look = Look(WAITING, look.width, asked)
    return {
        "point": point,
        "state": look.state,
        "width": look.width if math.isfinite(look.width) else None,
        "done": sum(state.status == Status.DONE for state in states),
        "planned": min(asked + (look.state == MORE), len(states)),
        "expected": look.expected,
    }
