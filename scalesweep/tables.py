"""Tables: per experiment the runs, the points over their repeats, scaling and heat maps.

Made from the summary and plan.json; docs/architecture.md gives the columns. Measured, imported
and simulated runs of one point stand in rows of their own and are never averaged together.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scalesweep.errors import UserError
from scalesweep.quantities import (
    EPOCH_METRICS,
    EPOCH_PHASES,
    STATS,
    Quantity,
    column,
    quantities_of,
    units_of,
)
from scalesweep.record import canonical_json
from scalesweep.stats import (
    coefficient_of_variation,
    mean_interval,
    outliers,
    pooled_std,
    ratio_interval,
)
from scalesweep.summaries import typed_values

Floats = NDArray[np.float64]
Experiment = Mapping[str, Any]
# Metric and phase.
Measure = tuple[str, str]


@dataclass(frozen=True)
class _Point:
    """One row of `points`: the finished runs of one point that share a source."""

    values: Mapping[str, Any]  # varying parameters
    source: str | None
    rows: NDArray[np.intp]  # rows of the summary
    planned: int
    samples: int | None


class _Data:
    """Columns of the summary that belong to one experiment."""

    def __init__(self, summary: pd.DataFrame, experiment: Experiment) -> None:
        self.summary = summary
        self.experiment = experiment
        self.axes: list[str] = list(experiment["axes"])
        self.scale: str = experiment["scale"]
        self.row_of = self._finished()
        rows = np.array(list(self.row_of.values()), np.intp)
        self.quantities = quantities_of(summary, experiment["benchmark"])
        self._floats: dict[str, Floats] = {}
        self.measures = self._measures(rows)

    def _finished(self) -> dict[str, int]:
        """Row of the summary of every finished run."""
        index = {run_id: row for row, run_id in enumerate(self.summary["run_id"].tolist())}
        found = {}
        for run in self.experiment["runs"]:
            if run["status"] == "done":
                if run["run_id"] not in index:
                    raise UserError(
                        f"run {run['run_id']} is done in the plan but not in the summary; "
                        "summarise the runs of this plan first"
                    )
                found[run["run_id"]] = index[run["run_id"]]
        return found

    def _measures(self, rows: NDArray[np.intp]) -> list[Measure]:
        """The metrics these runs have, by phase.

        Those of the epochs come all or none: a column that stays empty says that the number is
        missing. None only where runs finished and left nothing but plain metrics.
        """
        epochs = [(metric, phase) for metric in EPOCH_METRICS for phase in EPOCH_PHASES]
        plain = [
            (name, "run")
            for name in self.quantities
            if np.isfinite(self.numbers(name, "mean", "run")[rows]).any()
        ]
        timed = any(np.isfinite(self.numbers(m, "mean", p)[rows]).any() for m, p in epochs)
        return (epochs if timed or not plain else []) + plain

    def numbers(self, metric: str, stat: str, phase: str) -> Floats:
        """A column of the summary as floats; all NaN where the summary has none."""
        name = column(metric, stat, phase)
        if name not in self._floats:
            missing = np.full(len(self.summary), math.nan)
            found = self.summary[name].to_numpy(np.float64) if name in self.summary else missing
            self._floats[name] = found
        return self._floats[name]

    def repeats(self, point: _Point, measure: Measure) -> Floats:
        """Means of the point's runs, without missing ones."""
        values = self.numbers(measure[0], "mean", measure[1])[point.rows]
        return np.asarray(values[np.isfinite(values)], np.float64)

    def points(self) -> list[_Point]:
        """Points in plan order; one per source, and one without source where none finished."""
        sources = self.summary["source"].tolist()
        samples = self.summary["samples"].tolist()
        values: dict[str, dict[str, Any]] = {}
        planned: dict[str, int] = {}
        rows: dict[str, dict[str, list[int]]] = {}
        for run in self.experiment["runs"]:
            here = {name: run["point"][name] for name in self.axes}
            key = canonical_json(here)
            values[key] = here
            planned[key] = planned.get(key, 0) + 1
            found = rows.setdefault(key, {})
            if (row := self.row_of.get(run["run_id"])) is not None:
                found.setdefault(sources[row], []).append(row)
        result = []
        for key, found in rows.items():
            for source, indices in found.items():
                sizes = {None if pd.isna(samples[row]) else int(samples[row]) for row in indices}
                result.append(
                    _Point(
                        values[key],
                        source,
                        np.array(indices, np.intp),
                        planned[key],
                        sizes.pop() if len(sizes) == 1 else None,
                    )
                )
            if not found:
                result.append(_Point(values[key], None, np.empty(0, np.intp), planned[key], None))
        return result


def make_tables(
    summary: pd.DataFrame, plan: Mapping[str, Any]
) -> dict[str, dict[str, pd.DataFrame]]:
    """Tables of every experiment: {experiment: {table: frame}}.

    ``scaling`` and ``threads`` are there only for experiments that vary what they show. Each
    frame's ``attrs["units"]`` maps quantity columns to unit, label, better and scope.
    Raises UserError if the plan and the summary do not belong together.
    """
    result: dict[str, dict[str, pd.DataFrame]] = {}
    for experiment in plan["experiments"]:
        data = _Data(summary, experiment)
        points = data.points()
        statistics = _statistics(data, points)
        tables = {
            "runs": _runs(data, points),
            "points": pd.DataFrame({**_identity(data.axes, points), **statistics}),
        }
        if data.scale in data.axes:
            tables["scaling"] = _scaling(data, points, tables["points"])
        if len(set(data.axes) - {data.scale, *experiment["scale_parameters"]}) >= 2:
            tables["threads"] = _threads(data, points, statistics)
        for frame in tables.values():
            frame.attrs["units"] = units_of(frame.columns, data.quantities)
        result[experiment["name"]] = tables
    return result


def _runs(data: _Data, points: Sequence[_Point]) -> pd.DataFrame:
    """Every planned run; ``warnings`` from its summary, ``outlier`` if it stands apart."""
    runs = data.experiment["runs"]
    rows = [data.row_of.get(run["run_id"]) for run in runs]
    table: dict[str, Any] = {
        name: typed_values([run[name] for run in runs]) for name in ("run_id", "repeat", "status")
    }
    table["cause"] = typed_values([run["cause"] or None for run in runs])
    for name in ("source", "started"):
        table[name] = _taken(data.summary[name].tolist(), rows)
    for name in data.axes:
        table[name] = typed_values([run["point"][name] for run in runs])
    # One more entry, NaN, for those that have not finished.
    index = [-1 if row is None else row for row in rows]
    for metric, phase in data.measures:
        for stat in ("mean", "std") if phase in EPOCH_PHASES else ("mean",):
            padded = np.append(data.numbers(metric, stat, phase), math.nan)
            table[column(metric, stat, phase)] = padded[index]
    table["warnings"] = _taken(data.summary["warnings"].tolist(), rows)
    named = _outliers(data, points)
    table["outlier"] = typed_values([named.get(run["run_id"]) for run in runs])
    return pd.DataFrame(table)


def _taken(values: Sequence[Any], rows: Sequence[int | None]) -> Any:
    return typed_values([None if row is None else values[row] for row in rows])


def _outliers(data: _Data, points: Sequence[_Point]) -> dict[str, str]:
    """Run id -> why it is an outlier among the repeats of its point, in total time or metric."""
    shown = [m for m in data.measures if m[0] == "total_time" or m[1] == "run"]
    run_ids = data.summary["run_id"].tolist()
    found: dict[str, list[str]] = {}
    for point in points:
        for metric, phase in shown:
            values = data.numbers(metric, "mean", phase)[point.rows]
            there = np.isfinite(values)
            names = [run_ids[row] for row in point.rows[there]]
            for outlier in outliers(values[there], names):
                reason = f"{column(metric, 'mean', phase)}: {outlier.reason}"
                found.setdefault(outlier.name, []).append(reason)
    return {run_id: "; ".join(reasons) for run_id, reasons in found.items()}


def _identity(axes: Sequence[str], points: Sequence[_Point]) -> dict[str, Any]:
    columns = {name: typed_values([point.values[name] for point in points]) for name in axes}
    return columns | {
        "samples": typed_values([point.samples for point in points], int),
        "source": typed_values([point.source for point in points]),
        "repeats": np.array([point.rows.size for point in points], np.int64),
        "planned": np.array([point.planned for point in points], np.int64),
    }


def _statistics(data: _Data, points: Sequence[_Point]) -> dict[str, Floats]:
    """Statistics of every measure over the repeats of every point, by column name."""
    result = {}
    for metric, phase in data.measures:
        means = data.numbers(metric, "mean", phase)
        stds = data.numbers(metric, "std", phase)
        rows = [_over_repeats(means[point.rows], stds[point.rows]) for point in points]
        for stat, values in zip(STATS, np.array(rows).reshape(-1, len(STATS)).T, strict=True):
            result[column(metric, stat, phase)] = np.ascontiguousarray(values)
    return result


def _over_repeats(means: Floats, stds: Floats) -> tuple[float, ...]:
    """Mean, median, std, low, high and cv over repeats, in the order of ``STATS``.

    A number that has no spread within its run (a plain metric) is one value per repeat: ``std``
    is then that of those values, and missing for one repeat.
    """
    there = np.isfinite(means)
    means, stds = means[there], stds[there]
    if means.size == 0:
        return (math.nan,) * len(STATS)
    if np.isfinite(stds).all():
        std = pooled_std(means, stds)
    else:
        std = float(means.std()) if means.size > 1 else math.nan
    interval = mean_interval(means)
    return (
        float(means.mean()),
        float(np.median(means)),
        std,
        interval.low,
        interval.high,
        coefficient_of_variation(means),
    )


def series_parameters(experiment: Experiment) -> list[str]:
    """Varying parameters whose values tell one scaling series from another.

    All but what the runs scale over (``scale``: the ranks, or the devices) and those that follow
    it: a parameter with one value per rank count (a batch size or a share of the samples linked
    to the ranks) changes along a series. In strong scaling neither do the parameters that set the
    amount of work (``work`` in the plan) tell series apart; the samples in all do. Those that make
    up the scale (ranks and devices per rank) do so only where one series would else hold two ways
    to the same number of devices.
    """
    scale, parts = experiment["scale"], set(experiment["scale_parameters"])
    points = [run["point"] for run in experiment["runs"]]
    work = experiment["work"] if experiment["scaling"] == "strong" else ()
    names = [
        name
        for name in experiment["axes"]
        if name not in {scale, *work, *parts} and _largest_choice(points, [scale], name) > 1
    ]
    split = sorted(parts - {"ranks", scale})
    return names + [name for name in split if _largest_choice(points, [scale, *names], name) > 1]


def _largest_choice(points: Sequence[Mapping[str, Any]], given: Sequence[str], name: str) -> int:
    """The most values that ``name`` takes among points that agree in ``given``."""
    values: dict[str, set[str]] = {}
    for point in points:
        key = canonical_json([point[other] for other in given])
        values.setdefault(key, set()).add(canonical_json(point[name]))
    return max(map(len, values.values()))


def _series(data: _Data, points: Sequence[_Point]) -> list[list[int]]:
    """Positions of the points of every series, each sorted by what they scale over."""
    names = series_parameters(data.experiment)
    by_work = data.experiment["scaling"] == "strong" and bool(data.experiment["work"])
    found: dict[tuple[Any, ...], list[int]] = {}
    for position, point in enumerate(points):
        key = canonical_json([point.values[name] for name in names])
        size = point.samples if by_work else None
        found.setdefault((key, point.source, size), []).append(position)
    return [
        sorted(group, key=lambda i: points[i].values[data.scale]) for group in found.values()
    ]


def _scaled(data: _Data) -> Iterator[tuple[Measure, str, Quantity]]:
    """Rates that scale: measure, stem of its columns, meaning."""
    stems = {"local_throughput": "local", "total_throughput": "total"}
    for metric, phase in data.measures:
        quantity = data.quantities[metric]
        rate = quantity.better == "higher" and quantity.unit.endswith("/s")
        if (stem := stems.get(metric)) and phase in EPOCH_PHASES:
            yield (metric, phase), stem, quantity
        elif phase == "run" and rate:
            yield (metric, phase), metric, quantity


def _scaling(data: _Data, points: Sequence[_Point], table: pd.DataFrame) -> pd.DataFrame:
    """`points` sorted by series and scale, with ideal, efficiency and speedup.

    The base of a series is its smallest finished number of ranks (or devices); against itself it
    has efficiency 1 by definition and no interval. Where it lacks a metric, so does the series.
    """
    groups = _series(data, points)
    columns: dict[str, Floats] = {}
    for measure, stem, quantity in _scaled(data):
        parts = [f"{stem}_ideal", f"{stem}_eff", f"{stem}_eff_low", f"{stem}_eff_high"]
        if quantity.scope == "total":
            parts += [f"{stem}_speedup", f"{stem}_speedup_low", f"{stem}_speedup_high"]
        block = np.full((len(points), 7), math.nan)
        for group in groups:
            finished = [position for position in group if points[position].rows.size]
            if finished:
                rows = _against_base(data, measure, [points[i] for i in finished], quantity.scope)
                block[finished] = rows
        for number, part in enumerate(parts):
            columns[column(part, "", measure[1])] = block[:, number]
    frame = pd.concat([table, pd.DataFrame(columns)], axis=1)
    return frame.iloc[[i for group in groups for i in group]].reset_index(drop=True)


def _against_base(
    data: _Data, measure: Measure, points: Sequence[_Point], scope: str
) -> list[list[float]]:
    """Ideal, efficiency and speedup, the last two with bounds, of points sorted by scale."""
    base = data.repeats(points[0], measure)
    if base.size == 0:
        return [[math.nan] * 7 for _ in points]
    result = []
    for position, point in enumerate(points):
        times = point.values[data.scale] / points[0].values[data.scale]
        factor = times if scope == "total" else 1.0
        ideal = factor * float(base.mean())
        values = data.repeats(point, measure)
        row = [ideal, *[math.nan] * 6]
        if position == 0:
            row[1] = row[4] = 1.0
        elif values.size and ideal > 0:
            speedup = float(values.mean()) / float(base.mean())
            bounds = ratio_interval(values, base)
            row[1:4] = [speedup / factor, bounds.low / factor, bounds.high / factor]
            row[4:7] = [speedup, bounds.low, bounds.high]
        result.append(row)
    return result


def _threads(
    data: _Data, points: Sequence[_Point], statistics: Mapping[str, Floats]
) -> pd.DataFrame:
    """Heat maps in long form: one row per point, metric and phase."""
    measures = data.measures
    repeated = [point for point in points for _ in measures]
    table = _identity(data.axes, repeated)
    for place, name in enumerate(("metric", "phase")):
        table[name] = typed_values([measure[place] for measure in measures] * len(points))
    quantities = [data.quantities[metric] for metric, _ in measures]
    table["unit"] = typed_values([quantity.unit for quantity in quantities] * len(points))
    table["better"] = typed_values([quantity.better for quantity in quantities] * len(points))
    for stat in STATS:
        by_measure = [statistics[column(metric, stat, phase)] for metric, phase in measures]
        # [measure, point] to the order of the rows: points outside, measures inside.
        table[stat] = np.array(by_measure).reshape(len(measures), -1).T.reshape(-1)
    return pd.DataFrame(table)
