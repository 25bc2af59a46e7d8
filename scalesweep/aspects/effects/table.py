"""The table ``effects``: the values of a parameter over its base value, all else being equal."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.factors import fold_axes, layout_followers, planned_points
from scalesweep.analysis.stats import LogError, joined
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import text_of
from scalesweep.core.plan_format import PlanExperiment, parameter_of
from scalesweep.table.declared import DeclaredRow, Estimate, column
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.pairwise import main_measures
from scalesweep.tables.points import ExperimentData, Measure, Point


@dataclass(frozen=True, kw_only=True)
class Effect(DeclaredRow, table="effects"):
    """A value of a parameter against another one, over the points that differ in it alone."""

    parameter: str = column("the parameter; what follows it changes with it")
    value: str = column("its value")
    base: str = column(
        "the value it is compared with: the default where planned, else the first, or the smallest "
        "number where there is no default"
    )
    phase: str = column("init (first epoch), later, or run")
    metric: str = column("the main metric")
    better: str = column("whether higher or lower values of it are better")
    source: str | None = column("measured, simulated or imported")
    ratio: Estimate = column(
        "geometric mean over the pairs of the ratio of the means; the interval is over repeats, of "
        "these pairs",
        "1",
    )
    median: float = column("median of the ratios", "1")
    least: float = column("the lowest ratio", "1")
    most: float = column("the highest ratio", "1")
    pairs: int = column("pairs of points that are otherwise equal, both with a result", "1")
    higher: int = column("pairs in which the ratio is above 1", "1")
    without: int = column("planned pairs of which a point has no result", "1")
    not_positive: int = column(
        "pairs that both have a result, and no ratio: a mean is zero or negative", "1"
    )
    of_best: Estimate | None = column(
        "the same over the value with the best mean, over the settings of all others at which "
        "every value has a mean above 0; the interval allows for the choice of the best",
        "1",
    )
    best_in: int | None = column("of these settings those where this value is the best", "1")
    settings: int | None = column("how many such settings there are", "1")


# The points of one source that agree in all but a parameter, by its value.
Group = Mapping[Any, Point]


def values_of(experiment: PlanExperiment, name: str) -> list[Any]:
    """The values of a parameter in the order of the plan; numbers of one without a default, of a
    published table whose rows are in any order, by size."""
    values = list(dict.fromkeys(point[name] for point in planned_points(experiment)))
    numbers = all(type(value) in (int, float) for value in values)
    return (
        sorted(values) if numbers and parameter_of(experiment, name)["default"] is None else values
    )


def base_value(experiment: PlanExperiment, name: str) -> Any:
    """What the values of a parameter are compared with: the smallest scale; else the default where
    planned, else the first of them."""
    values = values_of(experiment, name)
    if name == experiment["scale"]:
        return min(values)
    default = parameter_of(experiment, name)["default"]
    return default if default in values else values[0]


def effect_rows(inputs: TableInputs) -> Iterator[Effect]:
    """A row per parameter, value, phase and source, where two parameters or more vary."""
    data = inputs.data
    follow = layout_followers(data.experiment)
    leaders = [name for name in fold_axes(data.experiment)[0] if name not in follow]
    if len(leaders) < 2:
        return
    for name in leaders:
        base = base_value(data.experiment, name)
        groups, planned = _groups(inputs.points, leaders, name)
        for source in dict.fromkeys(source for source, _ in groups):
            mine = {rest: group for (of, rest), group in groups.items() if of == source}
            for measure in main_measures(data):
                yield from _of_parameter(data, name, base, measure, source, mine, planned)


def _groups(
    points: Sequence[Point], leaders: Sequence[str], name: str
) -> tuple[dict[tuple[str | None, str], dict[Any, Point]], dict[str, set[Any]]]:
    """Finished points by source and the other parameters, then by value; and the planned values
    by the other parameters."""
    groups: dict[tuple[str | None, str], dict[Any, Point]] = {}
    planned: dict[str, set[Any]] = {}
    for point in points:
        rest = canonical_json([point.values[other] for other in leaders if other != name])
        planned.setdefault(rest, set()).add(point.values[name])
        if point.rows.size:
            groups.setdefault((point.source, rest), {})[point.values[name]] = point
    return groups, planned


def _of_parameter(
    data: ExperimentData,
    name: str,
    base: Any,
    measure: Measure,
    source: str | None,
    groups: Mapping[str, Group],
    planned: Mapping[str, set[Any]],
) -> Iterator[Effect]:
    """Rows of the values of a parameter in the order of the plan, in one phase, of one source."""
    usable = {
        rest: {value: point for value, point in group.items() if mean_of(data, point, measure)}
        for rest, group in groups.items()
    }
    values = values_of(data.experiment, name)
    metric, phase = measure
    better = data.quantities[metric].better
    against = _against_best(data, name, values, measure, list(usable.values()), better == "higher")
    for value in values:
        pairs = [(g[value], g[base]) for g in usable.values() if value in g and base in g]
        wanted = sum({value, base} <= of for of in planned.values())
        measured = sum(
            all(v in of and data.repeats(of[v], measure).size for v in (value, base))
            for of in groups.values()
        )
        if not pairs or (value == base and value not in against):
            continue
        ratios = [
            mean_of(data, top, measure) / mean_of(data, bottom, measure) for top, bottom in pairs
        ]
        known = value != base
        of_best, best_in, settings = against.get(value, (None, None, None))
        yield Effect(
            parameter=name, value=text_of(value), base=text_of(base), phase=phase, metric=metric,
            better=better, source=source,
            ratio=mean_ratio(data, pairs, measure) if known else Estimate(1.0),
            median=float(np.median(ratios)), least=min(ratios), most=max(ratios),
            pairs=len(pairs), higher=sum(ratio > 1 for ratio in ratios),
            without=wanted - measured, not_positive=measured - len(pairs),
            of_best=of_best, best_in=best_in, settings=settings,
        )  # fmt: skip


def mean_of(data: ExperimentData, point: Point, measure: Measure) -> float:
    """The mean of a point; 0 where it has none, or none that a ratio can be taken of."""
    repeats = data.repeats(point, measure)
    return max(0.0, float(repeats.mean())) if repeats.size else 0.0


def mean_ratio(
    data: ExperimentData,
    pairs: Sequence[tuple[Point, Point]],
    measure: Measure,
    among: int = 1,
) -> Estimate:
    """Geometric mean of the ratios of pairs; its interval from the errors of all of them.

    The mean of n logarithms with errors e_i has the error sqrt(sum e_i^2) / n. As points share
    their variance, all together have no more degrees of freedom than the one with the fewest.
    """
    logs = [
        math.log(mean_of(data, top, measure) / mean_of(data, bottom, measure))
        for top, bottom in pairs
    ]
    value = math.exp(sum(logs) / len(logs))
    errors = [data.log_error(top, bottom, measure) for top, bottom in pairs]
    known = [error for error in errors if error is not None]
    if len(known) < len(errors):
        return Estimate(value)
    degrees = min(error.degrees for error in known)
    error = LogError(joined(known).error / len(pairs), degrees)
    bounds = error.interval(value, data.level, among)
    return Estimate.of(value, bounds.low, bounds.high)


def _against_best(
    data: ExperimentData,
    name: str,
    values: Sequence[Any],
    measure: Measure,
    groups: Sequence[Group],
    higher: bool,
) -> dict[Any, tuple[Estimate | None, int, int]]:
    """By value its ratio to the value with the best mean, in how many settings of the others it is
    the best, and of how many: those at which every value has a result.

    None for what is not ranked: the scale, and what says what is computed.
    """
    full = [group for group in groups if all(value in group for value in values)]
    ranked = name != data.scale and not parameter_of(data.experiment, name).get("workload")
    if not full or not ranked or len(values) < 2:
        return {}
    sign = 1 if higher else -1
    logs = np.array(
        [
            [sign * math.log(mean_of(data, group[value], measure)) for value in values]
            for group in full
        ]
    )
    best = int(logs.mean(axis=0).argmax())
    counts = np.bincount(logs.argmax(axis=1), minlength=len(values))
    rows: dict[Any, tuple[Estimate | None, int, int]] = {}
    for place, value in enumerate(values):
        pairs = [(group[value], group[values[best]]) for group in full]
        ratio = (
            Estimate(1.0)
            if place == best
            else mean_ratio(data, pairs, measure, among=len(values) - 1)
        )
        rows[value] = (ratio, int(counts[place]), len(full))
    return rows


MAKERS = (Maker(Effect, effect_rows),)
