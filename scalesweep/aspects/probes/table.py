"""The tables ``sweep`` and ``network``: what probes measured by size, and the fit of a network."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.profile import bus_factor
from scalesweep.analysis.stats import mean_of
from scalesweep.table.declared import DeclaredRow, Estimate, column
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.sweeps import Swept, fitted_networks, ranks_of, sweeps_of


@dataclass(frozen=True, kw_only=True)
class _ProbeRow(DeclaredRow):
    """What both tables say of a point, or of points that differ in ranks only."""

    point: Mapping[str, Any]
    source: str | None = column("measured, simulated or imported")
    repeats: int = column("runs", "1")

    @property
    def place(self) -> dict[str, Any]:
        """The parameters and the source."""
        return {**self.point, "source": self.source}

    @property
    def row(self) -> dict[str, Any]:
        """The place with its number of runs, as captions state it."""
        return {**self.place, "repeats": self.repeats}


@dataclass(frozen=True, kw_only=True)
class SweepRow(_ProbeRow, table="sweep"):
    """A value that the runs of a point go through; rates of collectives are bus bandwidths."""

    by: str = column("what the value is: a size, a kernel, readers")
    value: int | float | str = column("the value")
    value_unit: str | None = column("its unit")
    amount: float = column("work of a call, in the unit of `rate` times a second")
    unit: str = column("unit of the rates")
    intensity: float | None = column(
        "work of a call over the least bytes that it moves, of computation", "FLOP/byte",
        default=None,
    )  # fmt: skip
    seconds: Estimate = column("time of a call: mean over runs of the median repeat", "s")
    rate: Estimate = column("work per second of the median repeats, mean over runs")
    best_rate: float = column("the best repeat of all runs")
    spread: float | None = column("how far the median of all runs lies below `best_rate`", "1")


@dataclass(frozen=True, kw_only=True)
class NetworkRow(_ProbeRow, table="network"):
    """The network's fit to a range of sizes of allreduces (``analysis.network_fit``)."""

    low_bytes: float = column("the smallest message of the range", "bytes")
    high_bytes: float = column("the largest message of the range", "bytes")
    algorithm: str = column("the algorithm that best predicts sizes that are left out of its fit")
    algorithms: str = column("those that the data cannot tell apart from it, and it")
    latency: Estimate = column("fitted latency of a message", "s")
    bandwidth: Estimate | None = column(
        "fitted bandwidth; missing where no size takes longer than another", "bytes/s"
    )
    error: float = column("error at sizes that are left out of the fit", "1")


def sweep_rows(inputs: TableInputs) -> Iterator[SweepRow]:
    """A row per point and value, where runs are a probe's."""
    for sweep in sweeps_of(inputs.data, inputs.points):
        yield from _of_sweep(inputs.data, sweep)


def _of_sweep(data: ExperimentData, sweep: Swept) -> Iterator[SweepRow]:
    """A row per size of a sweep: times in s and rates in units of the amount per s, as means of the
    medians over repeats."""
    first = sweep.first
    # Of a sweep over anything but messages it is 1.
    factor = bus_factor(first["collective"] or "", ranks_of(data, sweep.point)) or 1.0
    several = len({type(value) for value in sweep.values()}) > 1
    for value in sweep.values():
        amount, times = sweep.times(value)
        medians = times[:, 1]
        rates = factor * amount / medians
        best = factor * amount / float(times[:, 0].min())
        yield SweepRow(
            point=sweep.point.values,
            source=sweep.point.source,
            repeats=len(times),
            by=first["by"],
            value=str(value) if several else value,
            value_unit=first["unit"],
            amount=amount,
            unit=f"{first['amount_unit']}/s",
            intensity=sweep.intensity(value),
            seconds=mean_of(medians),
            rate=mean_of(rates),
            best_rate=best,
            spread=1 - float(np.median(rates)) / best if best else None,
        )


def network_rows(inputs: TableInputs) -> Iterator[NetworkRow]:
    """A row per series of allreduces and range of sizes."""
    for series in fitted_networks(inputs.data, inputs.points):
        first = series.points[0]
        point = {name: value for name, value in first.values.items() if name != "ranks"}
        for fit in series.fits:
            best, likely = fit.best, [of.algorithm for of in fit.fits if of.indistinguishable]
            yield NetworkRow(
                point=point,
                source=first.source,
                repeats=series.repeats,
                low_bytes=fit.low,
                high_bytes=fit.high,
                algorithm=best.algorithm,
                algorithms=" or ".join(likely),
                latency=best.latency,
                bandwidth=best.bandwidth if math.isfinite(best.bandwidth.value) else None,
                error=best.error,
            )


MAKERS = (Maker(SweepRow, sweep_rows), Maker(NetworkRow, network_rows))
