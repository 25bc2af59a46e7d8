"""What probes measured by size, as summaries keep it, and the fit of a network to it.

A probe goes through values (sizes, kernels, readers) within one run: its samples hold the times of
all repeats, and the record's notes what the values are (docs/methods/machine.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scalesweep.analysis.network_fit import RangeFit, fit_network
from scalesweep.analysis.types import Floats
from scalesweep.core.files import canonical_json
from scalesweep.tables.bookkeeping import SWEEP
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.run_arrays import ranks_of

ALLREDUCE = "allreduce"


@dataclass(frozen=True)
class Swept:
    """The sweeps of a point's runs, all over the same thing."""

    point: Point
    runs: Sequence[Mapping[str, Any]]

    @property
    def first(self) -> Mapping[str, Any]:
        """What all runs share: what values are of, and their units."""
        return self.runs[0]

    def values(self) -> list[Any]:
        """The values of any run, in the order of the first that has each."""
        values = dict.fromkeys(value for run in self.runs for value in run["values"])
        numbers = all(not isinstance(value, str) for value in values)
        return sorted(values) if numbers else list(values)

    def times(self, value: Any) -> tuple[float, Floats]:
        """Amount of work, and ``[run, 3]`` the best, median and worst seconds of each run."""
        by_amount = [
            (run["amounts"][place], run["times"][place])
            for run in self.runs
            for place, other in enumerate(run["values"])
            if other == value
        ]
        return by_amount[0][0], np.array([times for _, times in by_amount], np.float64)

    def intensity(self, value: Any) -> float | None:
        """Work of a value per byte that it moves at least; None where that was not noted."""
        for run in self.runs:
            if run.get("moved") and value in run["values"]:
                place = run["values"].index(value)
                return float(run["amounts"][place] / run["moved"][place])
        return None

    def best_rates(self) -> tuple[list[Any], list[float]]:
        """The values, and of each the most work per second that any repeat of any run reached."""
        values = self.values()
        swept = [self.times(value) for value in values]
        return values, [amount / float(times[:, 0].min()) for amount, times in swept]


def sweeps_of(data: ExperimentData, points: Sequence[Point]) -> list[Swept]:
    """The sweeps of each point whose runs are a probe's."""
    notes = data.notes(SWEEP)
    sweeps = []
    for point in points:
        if runs := [notes[row] for row in point.rows.tolist() if row in notes]:
            of_one = [run for run in runs if run["by"] == runs[0]["by"]]
            sweeps.append(Swept(point, of_one))
    return sweeps


class FittedSeries(NamedTuple):
    """Points that differ in ranks only, and what was fitted to the medians of their allreduces."""

    points: Sequence[Point]
    repeats: int
    fits: Sequence[RangeFit]


def fitted_networks(data: ExperimentData, points: Sequence[Point]) -> list[FittedSeries]:
    """The fit of each series of allreduces of an experiment."""
    axes = [name for name in data.axes if name != "ranks"]
    series: dict[str, list[Swept]] = {}
    for sweep in sweeps_of(data, points):
        if sweep.first["collective"] == ALLREDUCE and sweep.first["amount_unit"] == "bytes":
            key = canonical_json([*(sweep.point.values[name] for name in axes), sweep.point.source])
            series.setdefault(key, []).append(sweep)
    fitted = []
    for group in series.values():
        medians = [
            (ranks_of(data, sweep.point), amount, median)
            for sweep in group
            for value in sweep.values()
            for amount, times in [sweep.times(value)]
            for median in times[:, 1].tolist()
        ]
        fits = fit_network(*np.array(medians, np.float64).T)
        repeats = max(len(sweep.runs) for sweep in group)
        fitted.append(FittedSeries([sweep.point for sweep in group], repeats, fits))
    return fitted
