"""The series whose rates and times at counts that were not measured can be predicted.

Those of all ranks together: total throughput, plain metrics in something/s, and times of work.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.metrics import EPOCH_PHASES
from scalesweep.analysis.prediction.series import Series, make_series
from scalesweep.core.scaling_kinds import OF_SAMPLES
from scalesweep.tables.borders import borders_of, similar_series
from scalesweep.tables.cost_parts import parts_of
from scalesweep.tables.machine import Machine
from scalesweep.tables.points import ExperimentData, Measure, Point
from scalesweep.tables.run_scatter import relative_error, scatter_of

PREDICTED = "predicted"


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
        """The measure where a unit of work costs so much at a count."""
        if not self.timed:
            return count / cost
        return cost / count if self.series.scaling == "strong" else cost


def predictable(
    data: ExperimentData,
    groups: Sequence[Sequence[Point]],
    machine: Machine | None = None,
) -> Iterator[MeasuredSeries]:
    """Every series of an experiment in every rate or time that can be predicted.

    ``groups``: the points of each series, by scale; ``machine``: what its probes say, for the
    parts of the costs, which are left out where it is None.
    """
    scaling = str(data.experiment["scaling"])
    measures = [measure for measure in data.measures if _is_of_all(data, measure)]
    for group in groups if scaling in OF_SAMPLES else ():
        for measure in measures:
            known = [(p, v) for p in group if (v := data.repeats(p, measure)).size and v.mean() > 0]
            if not known:
                continue
            points = [point for point, _ in known]
            counts = np.array([float(point.values[data.scale]) for point in points])
            if len(set(counts)) < len(counts):
                continue  # two ways to a count (devices of more or fewer ranks)
            means = np.array([float(values.mean()) for _, values in known])
            costs = data.costs(measure, counts, means)
            elsewhere = {} if machine is None else machine.scatter
            run = scatter_of(data, points[-1], measure, elsewhere)
            errors = np.array([relative_error(data, point, measure, run) for point in points])
            parts = None if machine is None else parts_of(data, points, costs, measure, machine)
            similar = similar_series(data, points, groups, measure, machine)
            series = make_series(
                counts, costs, scaling, errors, parts, borders_of(data, points, machine), similar
            )
            yield MeasuredSeries(measure, points, series, data.quantities[measure[0]].of_time)


def _is_of_all(data: ExperimentData, measure: Measure) -> bool:
    """Whether a measure is a rate of all ranks together, or a time of work."""
    quantity = data.quantities[measure[0]]
    epochs = measure[0] == "total_throughput" and measure[1] in EPOCH_PHASES
    plain = measure[1] == "run" and (quantity.scope == "total" or quantity.of_time)
    return quantity.scales and (epochs or plain)


def shared(points: Sequence[Point], data: ExperimentData) -> dict[str, Any]:
    """Varying parameters that have one value along a series; the others are None."""
    first = points[0].values
    return {
        name: first[name] if all(point.values[name] == first[name] for point in points) else None
        for name in data.axes
    }
