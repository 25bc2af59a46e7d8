"""Which is better, and by how much: a row of the table of all ratios of an experiment, and what
compares: points that differ in one choice only.

Interval and p value of a ratio have one error (``analysis.blocks``).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scalesweep.analysis.factors import fold_axes, planned_points
from scalesweep.analysis.stats import LogError, Ratio, joined
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import text_of
from scalesweep.core.plan_format import PlanExperiment, parameter_of
from scalesweep.table.declared import DeclaredRow, Estimate, column
from scalesweep.tables.points import ExperimentData, Measure, Point, point_id

# Parameters that are compared as one.
Choice = tuple[str, ...]
THREADS = "threads"  # unit of their parameters, and what the question is called
SETTING, FRAMEWORK, INPUT = "setting", "framework", "input"
PHASE, ENERGY, TARGET, SCALING = "phase", "energy", "time to target", "scaling"
REFERENCE, BEST = "reference", "best"
RATIO, EFFICIENCY, SPEEDUP = "ratio", "efficiency", "speedup"


@dataclass(frozen=True, kw_only=True)
class Comparison(DeclaredRow, table="comparisons"):
    """A value over another one, all else being equal."""

    experiment: str = column("its name")
    question: str = column(
        "setting, threads, framework, input, phase, scaling, energy or time to target"
    )
    parameter: str = column("the parameter, or those compared as one; what follows changes with it")
    value: str = column("its value")
    base_value: str = column("the value it is compared with")
    against: str = column(
        "reference (the default, the smallest scale), or best: the best of a group over "
        "each other one"
    )
    quantity: str = column("ratio, efficiency or speedup")
    metric: str = column("what is compared")
    phase: str = column("init (first epoch), later, or run")
    better: str = column("whether higher or lower values of the metric are better")
    source: str | None = column("measured, simulated or imported")
    series_id: str | None = column("the scaling series of both points", if_known=True, default=None)
    point_id: str | None = column(
        "of the point; empty: a mean or median over pairs of points", default=None
    )
    base_id: str | None = column("of the point it is compared with", default=None)
    mean: float | None = column("mean of the metric at the point", default=None)
    base_mean: float | None = column("the same at the other point", default=None)
    ratio: Estimate | None = column(
        "the ratio of the means, or the efficiency", "1", ends=("low", "high")
    )
    null: float = column(
        "the ratio it is tested against: 1, or the target efficiency", "1", default=1.0
    )
    se: float | None = column("standard error of its logarithm", "1", default=None)
    df: float | None = column("degrees of freedom of that", "1", default=None)
    p: float | None = column("two-sided p value of the ratio being `null`", "1", default=None)
    decides_low: float | None = column(
        "lower end of the interval that decides on which side of the target it is",
        "1",
        if_known=True,
        default=None,
    )
    decides_high: float | None = column("upper end of it", "1", if_known=True, default=None)
    how: str = column("repeats or stated; else why there is no interval", default="")
    n: int | None = column("runs of the point", "1", default=None)
    base_n: int | None = column("runs of the other point", "1", default=None)
    among: int | None = column("values that compare in its group", "1", default=None)
    lacking: str | None = column(
        "planned values of the group without a result", if_known=True, default=None
    )
    pairs: int | None = column("pairs of points that are otherwise equal", "1", default=None)
    statistic: str | None = column("mean (geometric) or median of them", default=None)
    least: float | None = column("the lowest ratio of a pair", "1", if_known=True, default=None)
    most: float | None = column("the highest ratio of a pair", "1", if_known=True, default=None)


def main_measures(data: ExperimentData) -> list[Measure]:
    """The phases of the metric that an experiment is about."""
    metric, phases = next(iter(data.ranked.items()), ("", []))
    return [(metric, phase) for phase in phases]


def compared_parameters(experiment: PlanExperiment) -> list[Choice]:
    """Independent varying parameters whose values are names or switches, and that say how
    something is computed, not what (``workload`` in benchmark.yaml); linked ones together."""
    points = planned_points(experiment)
    names = [
        name
        for name in fold_axes(experiment)[0]
        if name != experiment["scale"]
        and not parameter_of(experiment, name).get("workload")
        and all(isinstance(point[name], str | bool | None) for point in points)
    ]
    linked = tuple(name for name in names if name in experiment["linked"])
    choices: list[Choice] = [(name,) for name in names if name not in linked]
    return [linked, *choices] if linked else choices


def choice_of(names: Choice, point: Mapping[str, Any]) -> Any:
    """A point's value of a choice: of one parameter its own, of several all in one text."""
    values = [point[name] for name in names]
    if len(values) != 1 or isinstance(values[0], list | dict):
        return ", ".join(map(text_of, values))
    return values[0]


def values_of(experiment: PlanExperiment, names: Choice) -> list[Any]:
    """The values of a choice in the order of the plan; numbers without a default by size."""
    values = list(dict.fromkeys(choice_of(names, point) for point in planned_points(experiment)))
    numbers = all(type(value) in (int, float) for value in values)
    default = parameter_of(experiment, names[0])["default"]
    return sorted(values) if numbers and default is None else values


def base_value(experiment: PlanExperiment, names: Choice) -> Any:
    """What the values of a choice are compared with: the smallest scale; else the default if it is
    planned, else the first of them."""
    values = values_of(experiment, names)
    if names == (experiment["scale"],):
        return min(values)
    default = choice_of(names, {name: parameter_of(experiment, name)["default"] for name in names})
    return default if default in values else values[0]


def choice_groups(
    points: Sequence[Point], leaders: Sequence[str], names: Choice
) -> Iterator[dict[Any, Point]]:
    """Finished points that differ in one choice only, by its value, in plan order."""
    groups: dict[str, dict[Any, Point]] = {}
    for point in points:
        if point.rows.size:
            rest = [point.values[other] for other in leaders if other not in names]
            group = groups.setdefault(canonical_json([point.source, rest]), {})
            group.setdefault(choice_of(names, point.values), point)
    return (group for group in groups.values() if len(group) > 1)


def comparison(
    data: ExperimentData,
    question: str,
    names: Choice,
    measure: Measure,
    points: tuple[Point | None, Point | None],
    ratio: Ratio,
    **more: Any,
) -> Comparison:
    """A row on a ratio of two points, or on one of many pairs of points."""
    top, bottom = points
    about: dict[str, Any] = {"against": REFERENCE, "quantity": RATIO}
    if top is not None and bottom is not None:
        about |= {
            "source": top.source, "point_id": point_id(top), "base_id": point_id(bottom),
            "mean": _mean(data, top, measure), "base_mean": _mean(data, bottom, measure),
            "n": data.repeats(top, measure).size, "base_n": data.repeats(bottom, measure).size,
        }  # fmt: skip
    return Comparison(
        point={name: None if top is None else top.values[name] for name in data.leaders},
        experiment=data.experiment["name"], question=question, parameter=", ".join(names),
        metric=measure[0], phase=measure[1], better=data.quantities[measure[0]].better,
        ratio=ratio if math.isfinite(ratio.value) else None,
        se=ratio.se, df=ratio.df, p=ratio.p, how=ratio.how,
        **{**about, **more},
    )  # fmt: skip


def _mean(data: ExperimentData, point: Point, measure: Measure) -> float | None:
    repeats = data.repeats(point, measure)
    return float(repeats.mean()) if repeats.size else None


def mean_of(data: ExperimentData, point: Point, measure: Measure) -> float:
    """The mean of a point; 0 where it has none, or none that a ratio can be taken of."""
    repeats = data.repeats(point, measure)
    return max(0.0, float(repeats.mean())) if repeats.size else 0.0


def mean_ratio(
    data: ExperimentData, pairs: Sequence[tuple[Point, Point]], measure: Measure
) -> Ratio:
    """Geometric mean of the ratios of pairs; its interval from the errors of all of them.

    The mean of n logarithms with errors e_i has the error sqrt(sum e_i^2) / n. As points share
    their variance, all together have no more degrees of freedom than the one with the fewest.
    """
    logs = [
        math.log(mean_of(data, top, measure) / mean_of(data, bottom, measure))
        for top, bottom in pairs
    ]
    errors = [data.log_error(top, bottom, measure) for top, bottom in pairs]
    known = [error for error in errors if error is not None]
    value = math.exp(sum(logs) / len(logs))
    if len(known) < len(errors):
        return Ratio(value, how="a pair has no interval")
    degrees = min(error.degrees for error in known)
    return Ratio.by(value, LogError(joined(known).error / len(pairs), degrees), data.level)
