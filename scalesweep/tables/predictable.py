"""The series whose rates and times at counts that were not measured can be predicted.

Those of all ranks together: total throughput, plain metrics in something/s, and times of work.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.metrics import EPOCH_PHASES
from scalesweep.analysis.prediction import Series
from scalesweep.analysis.types import Floats
from scalesweep.core.plan_format import Plan
from scalesweep.core.scaling_kinds import OF_SAMPLES
from scalesweep.tables.machine import Grown, Machine, known_machine, whole_point
from scalesweep.tables.points import ExperimentData, Measure, Point
from scalesweep.tables.rank_layout import Layout
from scalesweep.tables.scaling import series_of

PREDICTED = "predicted"
_IMPORTED = "imported"


@dataclass(frozen=True, eq=False)
class MeasuredSeries:
    """A scaling series of one measure: a rate (the count over the cost), or a time (``timed``)."""

    measure: Measure
    points: Sequence[Point]  # with a result, by scale
    series: Series
    timed: bool

    @property
    def counts(self) -> list[int]:
        """Its measured counts."""
        return [int(count) for count in self.series.ranks]

    def value(self, cost: float, count: float) -> float:
        """The measure if a unit of work costs so much at a count."""
        if not self.timed:
            return count / cost
        return cost / count if self.series.scaling == "strong" else cost


def predictable(
    data: ExperimentData, machine: Machine, groups: Sequence[Sequence[Point]] | None = None
) -> Iterator[MeasuredSeries]:
    """Every series of an experiment in every rate or time that can be predicted.

    ``machine``: with the series of the campaign (``predicting_machine``); ``groups``: the points of
    some series, by scale.
    """
    if groups is None:
        points = data.points()
        groups = [[points[i] for i in group] for group in series_of(data, points)]
    scaling = str(data.experiment["scaling"])
    measures = [measure for measure in data.measures if _is_of_all(data, measure)]
    for group in groups if scaling in OF_SAMPLES else ():
        for measure in measures:
            known = [(p, v) for p in group if (v := data.repeats(p, measure)).size and v.mean() > 0]
            counts = np.array([float(point.values[data.scale]) for point, _ in known])
            if not known or len(set(counts)) < len(counts):
                continue  # two ways to a count (devices of more or fewer ranks)
            points = [point for point, _ in known]
            means = np.array([float(values.mean()) for _, values in known])
            node = node_of(data, points)
            series = Series(
                counts, data.costs(measure, counts, means), scaling,
                _scatter([values for _, values in known]), node,
                [(np.array(g.ranks), np.array(g.costs)) for g in machine.grown
                 if g.of == _like(data, points[0], measure) and g.node == node],
            )  # fmt: skip
            yield MeasuredSeries(measure, points, series, data.quantities[measure[0]].of_time)


def _like(data: ExperimentData, point: Point, measure: Measure) -> tuple[str, ...]:
    """What series have in common that tell of each other: program, scaling, source, measure."""
    entry = data.experiment
    return (entry["benchmark"], str(entry["scaling"]), str(point.source), *measure)


def _is_of_all(data: ExperimentData, measure: Measure) -> bool:
    """Whether a measure is a rate of all ranks together, or a time of work."""
    quantity = data.quantities[measure[0]]
    epochs = measure[0] == "total_throughput" and measure[1] in EPOCH_PHASES
    plain = measure[1] == "run" and (quantity.scope == "total" or quantity.of_time)
    return quantity.scales and (epochs or plain)


def _scatter(values: Sequence[Floats]) -> float:
    """Relative standard deviation of a run, pooled over the points; NaN without repeats."""
    logs = [np.log(of) for of in values if of.size > 1 and (of > 0).all()]
    squares = sum(float(((each - each.mean()) ** 2).sum()) for each in logs)
    degrees = sum(each.size - 1 for each in logs)
    return float(np.sqrt(squares / degrees)) if degrees else np.nan


def node_of(data: ExperimentData, points: Sequence[Point]) -> int:
    """Ranks of a node of a series over ranks; 0 if the points differ, or a log does not say it."""
    layouts = [Layout.of(whole_point(data, point)) for point in points]
    ranks = [point.values[data.scale] for point in points] == [each.ranks for each in layouts]
    sizes = {each.per_node for each in layouts}
    known = ranks and len(sizes) == 1 and (sizes != {1} or points[0].source != _IMPORTED)
    return sizes.pop() if known else 0


def predicting_machine(summary: pd.DataFrame, plan: Plan) -> Machine:
    """What is known of the machine (``known_machine``), with all series of the campaign."""
    grown = []
    for entry in plan["experiments"]:
        if entry["scale"] not in entry["axes"] or entry.get("control"):
            continue
        data = ExperimentData(summary, entry)
        for each in predictable(data, Machine()):
            series, like = each.series, _like(data, each.points[0], each.measure)
            if len(series.ranks) > 1:
                ends = tuple(series.ranks.tolist()), tuple(series.cost.tolist())
                grown.append(Grown(like, series.node, *ends))
    return replace(known_machine(summary, plan), grown=grown)


def shared(points: Sequence[Point], data: ExperimentData) -> dict[str, Any]:
    """Varying parameters that have one value along a series; the others are None."""
    first = points[0].values
    return {
        name: first[name] if all(point.values[name] == first[name] for point in points) else None
        for name in data.axes
    }
