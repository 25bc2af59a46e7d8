"""The table `target_times`: how long training to a target would take at counts not measured.

Epochs to a target depend on the global batch, and are never assumed constant: they are those that
were measured at the same global batch, or nothing is said. The time of an epoch is predicted like
any other cost (docs/methods/prediction.md).
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.prediction.forecast import predict, refusals, trusted_limit
from scalesweep.analysis.prediction.series import Series, make_series, refusal
from scalesweep.analysis.stats import Interval, mean_interval
from scalesweep.analysis.table_io import typed_values
from scalesweep.analysis.types import Floats
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import finite, listed
from scalesweep.tables.borders import borders_of
from scalesweep.tables.cost_parts import parts_within
from scalesweep.tables.machine import UNKNOWN, Machine
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.prediction import (
    PREDICTED,
    prediction_column,
    shared,
)
from scalesweep.tables.run_scatter import relative_error

NUMBERS = (
    *("time", "time_low", "time_high", "epochs", "epochs_low", "epochs_high"),
    *("epoch_seconds", "epoch_seconds_low", "epoch_seconds_high"),
)
COUNTS = ("global_batch", "runs", "largest", "trusted_to")
WORDS = ("epochs_at", "refused")
_BATCH, _GLOBAL = "batch_size", "global_batch_size"
_SAME = 1e-9
HALF = 0.5  # epoch


def target_times_table(
    data: ExperimentData,
    groups: Sequence[Sequence[Point]],
    counts: Sequence[int],
    machine: Machine = UNKNOWN,
) -> pd.DataFrame | None:
    """A row per series whose runs train to a target, and count that was not measured.

    ``groups``: the points of each series, by scale; ``machine``: what probes say of it, for the
    parts of the costs. Columns: varying parameters (missing where
    they change along the series), ``source`` (predicted), ``based_on``, ``time`` to the target in
    s with 95 % bounds, ``epochs`` to it, measured at this ``global_batch`` (samples) in so many
    ``runs`` at the counts ``epochs_at``, ``epoch_seconds``, the predicted mean epoch with its
    validation; or why it is ``refused``, with what to measure. None where no run has a target.
    """
    rows: list[dict[str, Any]] = []
    scales = data.experiment["scaling"] != "none" and data.scale in data.axes
    for group in groups if scales else ():
        points = [point for point in group if point.rows.size and _has_target(data, point)]
        measured = {int(point.values[data.scale]) for point in points}
        wanted = [count for count in counts if count not in measured]
        if points and len(measured) == len(points):
            rows += _rows(data, points, wanted, machine)
    if not rows:
        return None
    axes = data.axes
    columns: dict[str, Any] = {name: typed_values([row.get(name) for row in rows]) for name in axes}
    for names, kind in ((("source", "based_on"), str), (COUNTS, int), (WORDS, str)):
        for name in names:
            values = typed_values([row.get(f".{name}") for row in rows], kind)
            columns[prediction_column(name, axes)] = values
    for name in NUMBERS:
        numbers = [row.get(f".{name}", math.nan) for row in rows]
        columns[prediction_column(name, axes)] = np.array(numbers, np.float64)
    frame = pd.DataFrame(columns)
    frame.attrs["units"] = {}
    return frame


def _has_target(data: ExperimentData, point: Point) -> bool:
    return any(value is not None for value in data.targets(point))


def _rows(
    data: ExperimentData, points: Sequence[Point], counts: Sequence[int], machine: Machine
) -> Iterator[dict[str, Any]]:
    """The rows of one series; names that no parameter can have begin with a point."""
    largest = int(points[-1].values[data.scale])
    head = {
        **shared(points, data),
        ".source": PREDICTED, ".based_on": points[0].source, ".largest": largest,
    }  # fmt: skip
    for count in counts:
        row = {**head, data.scale: count}
        batch = _batch_at(data, points, count)
        if batch is None:
            why = f"the global batch at {count:,} {data.scale} does not follow from the points"
            yield {**row, ".refused": f"{why}: batches of ranks are not known, or change unevenly"}
            continue
        row[".global_batch"] = batch
        epochs, where = _epochs(data, points[0], batch)
        if not epochs.size:
            yield {**row, ".refused": _measure_epochs(data, points, count, batch)}
            continue
        series = _epoch_costs(data, points, float(epochs.mean()), machine)
        yield row | _time(data, series, count, epochs, where)


def _time(
    data: ExperimentData, series: Series | None, count: int, epochs: Floats, where: Sequence[int]
) -> dict[str, Any]:
    """What a series of costs of an epoch and the epochs to the target make together."""
    if series is None:
        grows = "the samples of an epoch grow with the ranks, so that its epochs do not compare"
        return {".refused": f"{grows}: measure the same samples at every count (strong scaling)"}
    if why := refusal(series):
        return {".refused": why}
    limit = trusted_limit(series)
    if why := refusals(series, [float(count)], data.scale)[0]:
        return {".refused": why, ".trusted_to": limit}
    prediction = predict(series, [float(count)])
    low, high = (float(bound[0]) / count for bound in prediction.interval())
    seconds = float(prediction.cost[0]) / count
    mean, own = float(epochs.mean()), _interval(epochs, data.level)
    # Both errors are of factors, and independent: their logarithms add as squares on each side.
    below = math.hypot(math.log(seconds / low), math.log(mean / own.low))
    above = math.hypot(math.log(high / seconds), math.log(own.high / mean))
    return {
        ".time": mean * seconds, ".time_low": mean * seconds * math.exp(-below),
        ".time_high": mean * seconds * math.exp(above),
        ".epochs": mean, ".epochs_low": own.low, ".epochs_high": own.high,
        ".epoch_seconds": seconds, ".epoch_seconds_low": low, ".epoch_seconds_high": high,
        ".runs": int(epochs.size), ".trusted_to": limit,
        ".epochs_at": listed([f"{count:,}" for count in where], 6),
    }  # fmt: skip


def _interval(epochs: Floats, level: float) -> Interval:
    """The interval of the mean of epochs over runs; half an epoch where all took as many, because
    they are counted in whole ones."""
    if epochs.size > 1 and np.ptp(epochs) == 0:
        return Interval(float(epochs[0]) - HALF, float(epochs[0]) + HALF, "identical")
    return mean_interval(epochs, level)


def _global_batch(data: ExperimentData, point: Point) -> float:
    """Samples of a step over all ranks; NaN where it is not known."""
    every = {**data.experiment["fixed"], **point.values}
    whole, size = every.get(_GLOBAL), every.get(_BATCH)
    if finite(whole):
        return float(whole)
    return float(size) * float(every[data.scale]) if finite(size) else math.nan


def _batch_at(data: ExperimentData, points: Sequence[Point], count: int) -> int | None:
    """The global batch at a count: the same, or as much for each rank, as at all points."""
    batches = np.array([_global_batch(data, point) for point in points])
    ranks = np.array([float(point.values[data.scale]) for point in points])
    for each, factor in ((batches, 1), (batches / ranks, count)):
        if np.isfinite(each).all() and np.ptp(each) <= _SAME * each[0]:
            whole = float(each[0]) * factor
            return round(whole) if math.isclose(whole, round(whole)) else None
    return None


def _recipe(data: ExperimentData, point: Point) -> str:
    """What two points have in common whose epochs to the target are those of their batches."""
    free = {data.scale, *data.experiment["scale_parameters"], _BATCH, _GLOBAL}
    free |= {name for name in data.axes if name in data.experiment["work"]}
    return canonical_json([[point.values[n] for n in data.axes if n not in free], point.source])


def _epochs(data: ExperimentData, first: Point, batch: int) -> tuple[Floats, list[int]]:
    """The epochs to the target of every run at a global batch, and the counts they ran at.

    Only of points all of whose runs met it: the others' would be those of the lucky ones.
    """
    shares: list[Floats] = []
    where = []
    for point in data.points():
        if not point.rows.size or _recipe(data, point) != _recipe(data, first):
            continue
        reached = data.repeats(point, ("time_to_target", "run"))
        epochs = data.repeats(point, ("epochs_run", "run"))
        whole = reached.size == epochs.size == point.rows.size and _has_target(data, point)
        if whole and (epochs >= 1).all() and _global_batch(data, point) == batch:
            shares.append(epochs)
            where.append(int(point.values[data.scale]))
    return (np.concatenate(shares) if shares else np.empty(0)), sorted(where)


def _measure_epochs(data: ExperimentData, points: Sequence[Point], count: int, batch: int) -> str:
    """The refusal where no run met the target at a global batch."""
    why = f"epochs to the target were not measured at a global batch of {batch:,}"
    why += f", that of {count:,} {data.scale}, and are never assumed to be those of another"
    for point in reversed(points):
        ranks = int(point.values[data.scale])
        if batch % ranks == 0:
            return f"{why}: measure them at {ranks:,} {data.scale} with batches of {batch // ranks}"
    return f"{why}: measure them at fewer {data.scale} with larger batches"


def _epoch_costs(
    data: ExperimentData, points: Sequence[Point], epochs: float, machine: Machine
) -> Series | None:
    """The series of the mean epoch of a training of so many epochs, in rank-seconds.

    The first epoch once, the later ones, and the validation of each as the runs' phases have it.
    None where the samples of an epoch differ between the points.
    """
    if len({point.samples for point in points}) != 1 or points[0].samples is None:
        return None
    samples = points[0].samples
    known, counts, costs, errors = [], [], [], []
    for point in points:
        first, rest = (
            data.repeats(point, ("total_throughput", phase)) for phase in ("init", "later")
        )
        if not rest.size or min(*first, *rest) <= 0:
            continue
        later = samples / float(rest.mean())
        # Without a first epoch apart it is as the later ones.
        began = samples / float(first.mean()) if first.size else later
        whole = (began + (epochs - 1) * later) / epochs
        count = float(point.values[data.scale])
        known.append(point)
        counts.append(count)
        costs.append(count * (whole + _validation(data, point)))
        errors.append(relative_error(data, point, ("total_throughput", "later")))
    scaling = str(data.experiment["scaling"])
    parts = parts_within(data, known, np.full(len(known), float(samples)), np.array(costs), machine)
    borders = borders_of(data, known, machine) if known else None
    return make_series(np.array(counts), np.array(costs), scaling, np.array(errors), parts, borders)


def _validation(data: ExperimentData, point: Point) -> float:
    """Seconds of validation for each epoch, mean over the runs that say so; 0 where none does."""
    texts = data.texts("_phases")
    epochs = data.numbers("epochs_run", "mean", "run")
    shares = []
    for row in point.rows.tolist():
        phases: Mapping[str, float] = json.loads(texts[row]) if texts[row] else {}
        if epochs[row] > 0 and "validation" in phases:
            shares.append(phases["validation"] / float(epochs[row]))
    return float(np.mean(shares)) if shares else 0.0
