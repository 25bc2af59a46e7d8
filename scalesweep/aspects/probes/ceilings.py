"""What the probes of an experiment found: the ceilings of a machine, and the fit of its network."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.best_rate import BestRate, best_rate, growth
from scalesweep.analysis.metrics import column
from scalesweep.aspects.probes.table import NetworkRow, SweepRow
from scalesweep.core.formatting import finite, plain, text_of
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.results import ExperimentResults, Key, Row

RUN = "run"  # phase of plain metrics


@dataclass(frozen=True)
class Ceiling:
    """The best rate of one kind of work; rates in ``unit``.

    ``best``: of the runs of the point whose best run is the fastest, and their ids in ``runs``.
    ``grows``: towards which sizes the rate still grew where the sizes tried end (``by``: of what).
    """

    what: str  # the values of the parameters that say what is done
    how: str  # the point without them: how it was reached
    row: Row  # of the table points: where it was reached
    unit: str
    best: BestRate
    runs: Sequence[str]
    median: float | None  # of the repeats, mean over runs
    grows: str
    by: str

    @property
    def value(self) -> float:
        """The best repeat of all runs."""
        return self.best.value

    @property
    def low(self) -> float | None:
        """Lower end of the 95 % interval of the undisturbed rate; None without one."""
        return self.best.low if finite(self.best.low) else None

    @property
    def high(self) -> float | None:
        """Its upper end."""
        return self.best.high if finite(self.best.high) else None

    @property
    def disturbed(self) -> list[str]:
        """The runs that were disturbed."""
        return [run for run, bad in zip(self.runs, self.best.disturbed, strict=True) if bad]

    @property
    def share(self) -> float | None:
        """How much of the ceiling a median repeat reaches."""
        return None if self.median is None else self.median / self.value


@dataclass(frozen=True)
class Network:
    """The fit of a series of allreduces in one range of sizes."""

    series: Row  # parameters other than ranks, and source
    low_bytes: float
    high_bytes: float
    best: NetworkRow
    supported: Sequence[str]  # algorithms that the data cannot tell apart


def fitted_bandwidth(network: Network) -> float | None:
    """The bandwidth in bytes/s; None where no size takes longer than another."""
    bandwidth = network.best.bandwidth
    return None if bandwidth is None else bandwidth.value


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
    best_of: dict[Key, tuple[BestRate, Row, Sequence[str]]] = {}
    same = (*results.axes, "source")
    by_point: dict[Key, list[tuple[float, str]]] = {}
    title = column(main.metric, "mean", RUN)
    for run in results.rows("runs", [*same, "run_id", title]):
        if finite(run[title]):
            pair = (run[title] * main.factor, str(run["run_id"]))
            by_point.setdefault(results.key(run, same), []).append(pair)
    for row in results.points:
        values = by_point.get(results.key(row, same))
        if values:
            best = best_rate(np.array([rate for rate, _ in values]))
            key = (*results.key(row, kinds), row["source"])
            if key not in best_of or best.value > best_of[key][0].value:
                best_of[key] = (best, row, [run for _, run in values])
    rest = [name for name in results.axes if name not in kinds]
    median = results.measures.get(f"{main.metric}_median")
    result = []
    for best, row, ids in best_of.values():
        other = None if median is None else median.value(row, "mean", RUN)
        scaled = None if other is None or median is None else other / median.factor * main.factor
        what = ", ".join(filter(None, (kind_words(name, row[name]) for name in kinds)))
        # A list is of what the sweep goes through: the one that counted is named behind it.
        lines = [name for name in rest if not text_of(row[name]).startswith("[")]
        how = [results.describe(row, lines)] if lines else []
        at, grows, by = _at(results, row)
        how += [at] if at else []
        where = ", ".join(how)
        result.append(Ceiling(what, where, row, main.unit, best, ids, scaled, grows, by))
    return result


def kind_words(name: str, value: object) -> str:
    """A parameter that says what is computed, in words: its value, with its name where that is no
    more than yes or no; empty where it is null, the framework's default."""
    value = plain(value)
    if value is None:
        return ""
    return f"{name} {text_of(value)}" if isinstance(value, bool) else text_of(value)


def _at(results: ExperimentResults, row: Row) -> tuple[str, str, str]:
    """Which value of the sweep a point's best repeat is of: ``message size 1,048,576 bytes``.

    Then towards which values the rate still grew, and what values are of; all empty without a
    sweep.
    """
    same = (*results.axes, "source")
    rows = [
        swept
        for swept in results.of(SweepRow)
        if results.key(swept.place, same) == results.key(row, same)
    ]
    if not rows:
        return "", "", ""
    grows = growth([swept.value for swept in rows], [swept.best_rate for swept in rows])
    best = max(rows, key=lambda swept: swept.best_rate)
    shown = f"{best.value:,}" if isinstance(best.value, int | float) else best.value
    return f"{best.by} {shown}{f' {best.value_unit}' if best.value_unit else ''}", grows, best.by


def networks(results: ExperimentResults) -> list[Network]:
    """The fits of an experiment's networks: by series, then by range of sizes."""
    groups: dict[Key, list[NetworkRow]] = {}
    for row in results.of(NetworkRow):
        groups.setdefault((*results.key(row.place, row.place), row.low_bytes), []).append(row)
    return [
        Network(
            rows[0].place,
            rows[0].low_bytes,
            rows[0].high_bytes,
            next(row for row in rows if row.best),
            [row.algorithm for row in rows if row.supported],
        )
        for rows in groups.values()
    ]
