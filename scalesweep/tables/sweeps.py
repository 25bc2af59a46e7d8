"""The tables `sweep` and `network`: what probes measured by size, and the fit of a network to it.

A probe goes through values (sizes, kernels, readers) within one run: its samples hold the times of
all repeats, and the record's notes what the values are (docs/methods/machine.md).
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.network_fit import RangeFit, fit_network
from scalesweep.analysis.profile import bus_factor
from scalesweep.analysis.stats import mean_interval
from scalesweep.analysis.table_io import typed_values
from scalesweep.analysis.types import Floats
from scalesweep.core.files import canonical_json
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.sweep_text import SWEEP

ALLREDUCE = "allreduce"
_COLUMNS = (
    *("by", "value", "value_unit", "amount", "unit", "seconds", "seconds_low", "seconds_high"),
    *("rate", "rate_low", "rate_high", "best_rate", "spread"),
)
_NETWORK = (
    *("low_bytes", "high_bytes", "algorithm", "latency", "latency_low", "latency_high"),
    *("bandwidth", "bandwidth_low", "bandwidth_high", "error", "best", "supported"),
)


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

    def best_rates(self) -> tuple[list[Any], list[float]]:
        """The values, and of each the most work per second that any repeat of any run reached."""
        values = self.values()
        swept = [self.times(value) for value in values]
        return values, [amount / float(times[:, 0].min()) for amount, times in swept]


def swept_of(data: ExperimentData, point: Point) -> Swept | None:
    """The sweeps of a point's runs; None where they are no probe's."""
    return next(iter(_swept(data, [point])), None)


def _swept(data: ExperimentData, points: Sequence[Point]) -> list[Swept]:
    texts = data.texts(SWEEP)
    sweeps = []
    for point in points:
        runs = [json.loads(texts[row]) for row in point.rows.tolist() if texts[row] is not None]
        if runs:
            of_one = [run for run in runs if run["by"] == runs[0]["by"]]
            sweeps.append(Swept(point, of_one))
    return sweeps


def sweep_tables(data: ExperimentData, points: Sequence[Point]) -> dict[str, pd.DataFrame]:
    """The tables ``sweep`` and, of allreduces, ``network``; none where no run is a probe's.

    ``sweep`` has a row per point and value: ``seconds`` of a call, the mean over runs of the median
    over repeats, and ``rate``, the work per second, with 95 % bounds over runs; ``best_rate`` is
    the best of all repeats, and ``spread`` how far the median of all runs lies below it. Rates of
    collectives are bus bandwidths. ``network`` has a row per series, range of sizes and algorithm,
    the best one first (``analysis.network_fit``), in s and bytes/s.
    """
    swept = _swept(data, points)
    if not swept:
        return {}
    rows = [row for sweep in swept for row in _sweep_rows(data, sweep)]
    tables = {"sweep": _frame(data.axes, _COLUMNS, rows, "sweep")}
    fits = list(_network_rows(data, swept))
    if fits:
        axes = [name for name in data.axes if name != "ranks"]
        tables["network"] = _frame(axes, _NETWORK, fits, "network")
    return tables


def sweep_column(name: str, axes: Sequence[str], table: str = "sweep") -> str:
    """Column of a table: its name, unless a varying parameter has it."""
    return f"{table}_{name}" if name in axes else name


def _frame(
    axes: Sequence[str], names: Sequence[str], rows: Sequence[Mapping[str, Any]], table: str
) -> pd.DataFrame:
    columns = [(name, name) for name in (*axes, "source", "repeats")]
    columns += [(sweep_column(name, axes, table), f".{name}") for name in names]
    frame = pd.DataFrame(
        {title: typed_values([row[key] for row in rows]) for title, key in columns}
    )
    frame.attrs["units"] = {}
    return frame


def _ranks(data: ExperimentData, point: Point) -> int:
    return int(point.values["ranks"] if "ranks" in data.axes else data.experiment["fixed"]["ranks"])


def _sweep_rows(data: ExperimentData, sweep: Swept) -> Iterator[dict[str, Any]]:
    first = sweep.first
    # Of a sweep over anything but messages it is 1.
    factor = bus_factor(first["collective"] or "", _ranks(data, sweep.point)) or 1.0
    head = {**sweep.point.values, "source": sweep.point.source}
    several = len({type(value) for value in sweep.values()}) > 1
    for value in sweep.values():
        amount, times = sweep.times(value)
        medians = times[:, 1]
        rates = factor * amount / medians
        seconds, rate = mean_interval(medians), mean_interval(rates)
        best = factor * amount / float(times[:, 0].min())
        values = {
            "by": first["by"], "value": str(value) if several else value,
            "value_unit": first["unit"], "amount": amount, "unit": f"{first['amount_unit']}/s",
            "seconds": float(medians.mean()), "seconds_low": seconds.low,
            "seconds_high": seconds.high, "rate": float(rates.mean()), "rate_low": rate.low,
            "rate_high": rate.high, "best_rate": best,
            "spread": 1 - float(np.median(rates)) / best if best else math.nan,
        }  # fmt: skip
        yield head | {"repeats": len(times)} | {f".{key}": v for key, v in values.items()}


@dataclass(frozen=True)
class FittedSeries:
    """Points that differ in ranks only, and what was fitted to their allreduces."""

    points: Sequence[Point]
    repeats: int
    fits: Sequence[RangeFit]


def fitted_networks(data: ExperimentData, points: Sequence[Point]) -> list[FittedSeries]:
    """The fit of each series of allreduces of an experiment."""
    return _fitted(data, _swept(data, points))


def _fitted(data: ExperimentData, swept: Sequence[Swept]) -> list[FittedSeries]:
    axes = [name for name in data.axes if name != "ranks"]
    series: dict[str, list[Swept]] = {}
    for sweep in swept:
        if sweep.first["collective"] == ALLREDUCE and sweep.first["amount_unit"] == "bytes":
            key = canonical_json([*(sweep.point.values[name] for name in axes), sweep.point.source])
            series.setdefault(key, []).append(sweep)
    return [
        FittedSeries(
            [sweep.point for sweep in group],
            max(len(sweep.runs) for sweep in group),
            _fit(data, group),
        )
        for group in series.values()
    ]


def _network_rows(data: ExperimentData, swept: Sequence[Swept]) -> Iterator[dict[str, Any]]:
    axes = [name for name in data.axes if name != "ranks"]
    for group in _fitted(data, swept):
        first = group.points[0]
        head = {name: first.values[name] for name in axes}
        head |= {"source": first.source, "repeats": group.repeats}
        for fit in group.fits:
            for number, of in enumerate(fit.fits):
                values = {
                    "low_bytes": fit.low, "high_bytes": fit.high, "algorithm": of.algorithm,
                    "latency": of.latency.value, "latency_low": of.latency.low,
                    "latency_high": of.latency.high, "bandwidth": _known(of.bandwidth.value),
                    "bandwidth_low": _known(of.bandwidth.low),
                    "bandwidth_high": _known(of.bandwidth.high),
                    "error": of.error, "best": number == 0, "supported": of.indistinguishable,
                }  # fmt: skip
                yield head | {f".{key}": value for key, value in values.items()}


def _known(bandwidth: float) -> float:
    """A bandwidth that the data bound; NaN where no size takes longer than another."""
    return bandwidth if math.isfinite(bandwidth) else math.nan


def _fit(data: ExperimentData, group: Sequence[Swept]) -> list[RangeFit]:
    """The fit to the medians of all runs of a series."""
    fits = [
        (_ranks(data, sweep.point), amount, median)
        for sweep in group
        for value in sweep.values()
        for amount, times in [sweep.times(value)]
        for median in times[:, 1].tolist()
    ]
    ranks, sizes, seconds = np.array(fits, np.float64).T
    return fit_network(ranks, sizes, seconds)
