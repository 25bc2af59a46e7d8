"""The tables ``sweep`` and ``network``: what probes measured by size, and the fit of a network; the
ceilings that they found, and what the report says of them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.best_rate import AGREEING, BestRate, best_rate, growth
from scalesweep.analysis.metrics import column as metric_column
from scalesweep.analysis.network_fit import spanning
from scalesweep.analysis.profile import bus_factor
from scalesweep.analysis.stats import mean_of
from scalesweep.core.formatting import (
    counted,
    finite,
    percent,
    plain,
    size_words,
    text_of,
    with_interval,
)
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.cells import Text, headings, table
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.findings.base import (
    CLEAR,
    NOTE,
    OPEN,
    Finding,
    Number,
    Rule,
    estimate_of,
    evidence_of,
)
from scalesweep.table.declared import Estimate, SourceRow, column, numbers_of
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.run_arrays import ranks_of
from scalesweep.tables.sweeps import fitted_networks, sweeps_of


@dataclass(frozen=True, kw_only=True)
class SweepRow(SourceRow, table="sweep"):
    """A value that the runs of a point go through; rates of collectives are bus bandwidths."""

    repeats: int = column("runs", "1")
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
class NetworkRow(SourceRow, table="network"):
    """The network's fit to a range of sizes of allreduces (``analysis.network_fit``)."""

    repeats: int = column("runs", "1")
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
        first = sweep.first
        # Of a sweep over anything but messages it is 1.
        factor = bus_factor(first["collective"] or "", ranks_of(inputs.data, sweep.point)) or 1.0
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
            bandwidth = spanning(fit, lambda each: each.bandwidth)
            yield NetworkRow(
                point=point,
                source=first.source,
                repeats=series.repeats,
                low_bytes=fit.low,
                high_bytes=fit.high,
                algorithm=best.algorithm,
                algorithms=" or ".join(likely),
                latency=spanning(fit, lambda each: each.latency),
                bandwidth=bandwidth if math.isfinite(bandwidth.value) else None,
                error=best.error,
            )


MAKERS = (Maker(SweepRow, sweep_rows), Maker(NetworkRow, network_rows))


RUN = "run"  # phase of plain metrics
# An interval whose ends are further apart than this is not of a ceiling.
WIDE = 1.5


@dataclass(frozen=True)
class Ceiling:
    """The best rate of one kind of work, in ``unit``, at the point whose best run is fastest."""

    what: str  # the values of the parameters that say what is done
    how: str  # the point without them: how it was reached
    row: Row  # of the table points: where it was reached
    unit: str
    best: BestRate
    share: float | None  # of it that a median repeat reaches
    grows: str  # towards which sizes the rate still grew where the sizes tried end

    @property
    def open(self) -> str:
        """Why it is not confirmed; empty where it is."""
        runs = self.best.agreeing + self.best.disturbed
        if self.grows:
            return f"it still grows towards {self.grows} sizes"
        if self.best.agreeing < AGREEING:
            agree = counted(self.best.agreeing, "run")
            return f"{agree} of {runs} within 10 % of the best, {AGREEING} needed"
        low, high = self.best.rate.low, self.best.rate.high
        if low is None or high is None:
            return "its runs are identical"
        return "its runs differ too much" if high > WIDE * low else ""


def is_probe(results: ExperimentResults) -> bool:
    """Whether the experiment is one of probes, and something is known of it."""
    return not results.control and results.tables.get(SweepRow.TABLE) is not None


def ceilings(results: ExperimentResults) -> list[Ceiling]:
    """The ceilings of an experiment of probes, one for each kind of work and source.

    Kinds differ in parameters that say what is computed rather than how (``workload``). Times, as
    latencies by size, have no ceiling.
    """
    main = results.main
    if main is None or not main.higher or not is_probe(results):
        return []
    kinds = [name for name in results.axes if parameter_of(results.entry, name).get("workload")]
    same = (*results.axes, "source")
    title = metric_column(main.metric, "mean", RUN)
    rates: dict[Key, list[float]] = {}
    for run in results.rows("runs", [*same, title]):
        if finite(run[title]):
            rates.setdefault(results.key(run, same), []).append(run[title] * main.factor)
    best_of: dict[Key, tuple[BestRate, Row]] = {}
    for row in results.points:
        if values := rates.get(results.key(row, same)):
            best, key = best_rate(np.array(values)), (*results.key(row, kinds), row["source"])
            if key not in best_of or best.rate.value > best_of[key][0].rate.value:
                best_of[key] = (best, row)
    return [_ceiling(results, kinds, best, row) for best, row in best_of.values()]


def _ceiling(results: ExperimentResults, kinds: Sequence[str], best: BestRate, row: Row) -> Ceiling:
    """The ceiling that a point shows, with the value of the sweep that reached it."""
    main = results.main
    assert main is not None
    median = results.measures.get(f"{main.metric}_median")
    usual = median.value(row, "mean", RUN) if median else None
    # A list is of what the sweep goes through: the one that counted is named behind it.
    lines = [n for n in results.axes if n not in kinds and not text_of(row[n]).startswith("[")]
    how = [results.describe(row, lines)] if lines else []
    same = (*results.axes, "source")
    swept = [each for each in results.of(SweepRow)
             if results.key(each.row, same) == results.key(row, same)]  # fmt: skip
    if swept:
        top = max(swept, key=lambda each: each.best_rate)
        shown = f"{top.value:,}" if isinstance(top.value, int | float) else top.value
        how.append(f"{top.by} {shown}{f' {top.value_unit}' if top.value_unit else ''}")
    return Ceiling(
        # Of yes or no the name too; null is the framework's default.
        what=", ".join(
            f"{name} {text_of(value)}" if isinstance(value, bool) else text_of(value)
            for name in kinds
            if (value := plain(row[name])) is not None
        ),
        how=", ".join(how),
        row=row,
        unit=main.unit,
        best=best,
        share=usual / median.factor * main.factor / best.rate.value if median and usual else None,
        grows=growth([each.value for each in swept], [each.best_rate for each in swept]),
    )


CEILING, NETWORK, FLAT = "ceiling", "network", "network latency"
# A formula that is further from sizes left out of the fit than this does not describe the network.
NEAR = 0.25


def machine_ceilings(results: ExperimentResults) -> list[Finding]:
    """The best run of each kind of work as its ceiling, with its interval.

    Confirmed only where enough undisturbed runs agree, and the rate had stopped growing.
    """
    return [
        Finding(
            results.name, CEILING, OPEN if each.open else CLEAR,
            subject=f" of {each.what}" if each.what else "",
            words={"how": f" ({each.how})" if each.how else ""},
            numbers=(estimate_of("ceiling", each.best.rate, each.unit),), reason=each.open,
            evidence=evidence_of(results, "points", each.row) | {"figure": "sweep"},
        )
        for each in ceilings(results)
    ]  # fmt: skip


def network_fit(results: ExperimentResults) -> list[Finding]:
    """Latency and bandwidth of each series of allreduces, and the algorithms that may be at work.

    A note where the sizes show no bandwidth.
    """
    series: dict[Key, list[NetworkRow]] = {}
    for row in results.of(NetworkRow):
        series.setdefault(results.key(row.row, row.row), []).append(row)
    return [_network(results, ranges) for ranges in series.values()]


def _numbers(first: NetworkRow, last: NetworkRow) -> list[Number]:
    """Latency of the smallest messages in µs, and bandwidth of the largest if their sizes show
    one."""
    numbers = [estimate_of("latency", first.latency.times(1e6), "µs")]
    return numbers + (
        [estimate_of("bandwidth", last.bandwidth, "bytes/s")] if last.bandwidth else []
    )


def _network(results: ExperimentResults, ranges: Sequence[NetworkRow]) -> Finding:
    """Latency of the smallest messages and bandwidth of the largest; clear where both have
    intervals, one algorithm fits, and is near its points."""
    first, last = ranges[0], ranges[-1]
    one_fits = last.bandwidth and " or " not in last.algorithms
    near = max(fit.error for fit in ranges) <= NEAR
    known = None not in (first.latency.low, last.bandwidth and last.bandwidth.low)
    return Finding(
        results.name,
        NETWORK if last.bandwidth else FLAT,
        NOTE if not one_fits else CLEAR if known and near else OPEN,
        subject="".join(f"{name} {text_of(value)}, " for name, value in first.point.items()),
        words={"algorithm": last.algorithms},
        numbers=tuple(_numbers(first, last)),
        reason="" if near else "no formula is near all sizes",
        evidence={
            "experiment": results.name,
            "table": NetworkRow.TABLE,
            "key": first.row,
            "figure": "network",
        },
    )


RULES = (
    Rule(
        CEILING, machine_ceilings,
        says={CLEAR: "The ceiling{subject} is {ceiling}{how}."},
        next={OPEN: "measure five runs on a quiet machine, at larger sizes if it grows"},
    ),
    Rule(
        NETWORK, network_fit,
        says={CLEAR: "{subject}allreduce as a {algorithm} has a latency of {latency} and a "
              "bandwidth of {bandwidth}.",
              NOTE: "{subject}allreduce has a latency of {latency}; its sizes fit a {algorithm} "
              "alike: no bandwidth is known."},
    ),
    Rule(
        FLAT, None,
        says={NOTE: "{subject}allreduce has a latency of {latency}; its sizes show no "
              "bandwidth."},
    ),
)  # fmt: skip


# What probes measure, in words; imported and foreign ones by their benchmark's name.
WHAT = {
    "compute_peak": "arithmetic", "memory_bandwidth": "memory", "file_read": "reading files",
    "allreduce": "bus bandwidth of a collective", "copy_bandwidth": "copies",
}  # fmt: skip


def ceilings_section(studies: Sequence[ExperimentResults]) -> dict[str, Any] | None:
    """The page's table of ceilings and of the ranges of fitted networks, in the campaign's order;
    None if nothing was probed."""
    numbers = ["Ceiling [95 % interval]", "Median repeat", "Runs"]
    head = headings("What", *numbers[:2], "Reached with", "Runs", "Experiment", numbers=numbers)
    lines = []
    for results in studies:
        benchmark = results.entry["benchmark"]
        usual = WHAT.get(benchmark, benchmark)
        for each in ceilings(results):
            kind = each.what or text_of(results.entry["fixed"].get("operation") or "")
            what = _marked(f"{usual}: {kind}" if kind else usual, each.row["source"])
            value = with_interval(*numbers_of(each.best.rate), each.unit)
            share = "–" if each.share is None else percent(each.share)
            runs = text_of(each.row["repeats"])
            lines.append((what, value, share, each.how, runs, results.name))
        for fit in results.of(NetworkRow):
            what = _marked("latency and bandwidth of allreduce", fit.source)
            value = ", ".join(f"{number}" for number in _numbers(fit, fit))
            names = [f"{name} {text_of(value)}" for name, value in fit.point.items()]
            sizes = f"{size_words(fit.low_bytes)} to {size_words(fit.high_bytes)}"
            where = ", ".join([*names, sizes, fit.algorithms])
            lines.append((what, value, "–", where, text_of(fit.repeats), results.name))
    cells = [[Text(word, None, of.kind) for word, of in zip(line, head, strict=True)]
             for line in lines]  # fmt: skip
    return table("Table of ceilings", head, cells) if lines else None


def _marked(what: str, source: object) -> str:
    return what[:1].upper() + what[1:] + ("" if source == "measured" else f" ({source})")
