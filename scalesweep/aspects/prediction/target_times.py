"""The table ``target_times``: how long training to a target would take at counts not measured.

Epochs to a target depend on the global batch, and are never assumed constant: they are those that
were measured at the same global batch, or nothing is said. The time of an epoch is predicted like
any other cost (docs/methods/prediction.md).
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.prediction.forecast import predict, refusals, trusted_limit
from scalesweep.analysis.prediction.series import Series, make_series, refusal
from scalesweep.analysis.stats import Interval, mean_interval
from scalesweep.analysis.types import Floats
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import finite, listed
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.scaling_kinds import OF_SAMPLES
from scalesweep.table.declared import DeclaredRow, Estimate, column
from scalesweep.tables.borders import borders_of
from scalesweep.tables.cost_parts import parts_within
from scalesweep.tables.machine import Machine
from scalesweep.tables.making import TableInputs
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.predictable import PREDICTED, shared
from scalesweep.tables.rank_layout import samples_of_a_step, splits_the_network
from scalesweep.tables.run_scatter import relative_error

_BATCH, _GLOBAL = "batch_size", "global_batch_size"
_SAME = 1e-9
HALF = 0.5  # epoch


@dataclass(frozen=True, kw_only=True)
class TargetTime(DeclaredRow, table="target_times"):
    """A count of a series that trains to a target, at which it was not measured.

    Parameters that change along the series are missing. A row that is refused has no time.
    """

    source: str = column("`predicted`", default=PREDICTED)
    based_on: str = column("the source of the points that the series is continued from")
    global_batch: int | None = column("samples of a step of all ranks", "1", default=None)
    runs: int | None = column("runs in which `epochs` were measured", "1", default=None)
    largest: int = column("the largest measured count", "1")
    trusted_to: int | None = column("the count beyond which nothing is trusted", "1", default=None)
    epochs_at: str | None = column("the counts at which `epochs` were measured", default=None)
    refused: str | None = column("why there is no time, and what to measure", default=None)
    time: Estimate | None = column("predicted time to the target", "s", default=None)
    epochs: Estimate | None = column("epochs to it, measured at `global_batch`", "1", default=None)
    epoch_seconds: Estimate | None = column(
        "predicted mean epoch with its validation", "s", default=None
    )

    @property
    def row(self) -> dict[str, Any]:
        """The point as figures, findings and tables of the page describe it."""
        return {**self.point, "source": self.source}


def target_rows(inputs: TableInputs) -> Iterator[TargetTime]:
    """A row per series whose runs train to a target, and count that was not measured."""
    data = inputs.data
    counts = data.experiment.get("predict") or []
    scales = data.experiment["scaling"] in OF_SAMPLES and data.scale in data.axes
    for group in inputs.series if scales and counts else ():
        points = [point for point in group if point.rows.size and _has_target(data, point)]
        measured = {int(point.values[data.scale]) for point in points}
        wanted = [count for count in counts if count not in measured]
        if points and len(measured) == len(points):
            yield from _rows(data, points, wanted, inputs.machine)


def _has_target(data: ExperimentData, point: Point) -> bool:
    return any(value is not None for value in data.targets(point))


def _rows(
    data: ExperimentData, points: Sequence[Point], counts: Sequence[int], machine: Machine
) -> Iterator[TargetTime]:
    """The rows of one series."""
    same = shared(points, data)
    head: dict[str, Any] = {
        "based_on": points[0].source,
        "largest": int(points[-1].values[data.scale]),
    }
    for count in counts:
        point = {**same, data.scale: count}
        batch = _batch_at(data, points, count)
        if batch is None:
            why = f"the global batch at {count:,} {data.scale} does not follow from the points"
            why += ": batches of ranks are not known, or change unevenly"
            yield TargetTime(point=point, **head, refused=why)
            continue
        epochs, where = _epochs(data, points[0], batch)
        if epochs.size:
            series = _epoch_costs(data, points, float(epochs.mean()), machine)
            time = _time(data, series, count, epochs, where)
        else:
            time = {"refused": _measure_epochs(data, points, count, batch)}
        yield TargetTime(point=point, **head, global_batch=batch, **time)


def _time(
    data: ExperimentData, series: Series | None, count: int, epochs: Floats, where: Sequence[int]
) -> dict[str, Any]:
    """What a series of costs of an epoch and the epochs to the target make together."""
    if series is None:
        grows = "the samples of an epoch grow with the ranks, so that its epochs do not compare"
        return {"refused": f"{grows}: measure the same samples at every count (strong scaling)"}
    if why := refusal(series):
        return {"refused": why}
    limit = trusted_limit(series)
    if why := refusals(series, [float(count)], data.scale)[0]:
        return {"refused": why, "trusted_to": limit}
    forecast = predict(series, [float(count)])
    low, high = (float(bound[0]) / count for bound in forecast.interval())
    seconds = float(forecast.cost[0]) / count
    mean, own = float(epochs.mean()), _interval(epochs, data.level)
    # Both errors are of factors, and independent: their logarithms add as squares on each side.
    below = math.hypot(math.log(seconds / low), math.log(mean / own.low))
    above = math.hypot(math.log(high / seconds), math.log(own.high / mean))
    time = mean * seconds
    return {
        "time": Estimate(time, time * math.exp(-below), time * math.exp(above)),
        "epochs": Estimate(mean, own.low, own.high),
        "epoch_seconds": Estimate(seconds, low, high),
        "runs": int(epochs.size),
        "trusted_to": limit,
        "epochs_at": listed([f"{ranks:,}" for ranks in where], 6),
    }


def _interval(epochs: Floats, level: float) -> Interval:
    """The interval of the mean of epochs over runs; half an epoch where all took as many, because
    they are counted in whole ones."""
    if epochs.size > 1 and np.ptp(epochs) == 0:
        return Interval(float(epochs[0]) - HALF, float(epochs[0]) + HALF, "identical")
    return mean_interval(epochs, level)


def _global_batch(data: ExperimentData, point: Point) -> float:
    """Samples of a step over all ranks; NaN where it is not known."""
    every = parameters_at(data.experiment, point.values)
    whole, size = every.get(_GLOBAL), samples_of_a_step(every)
    if finite(whole):
        return float(whole)
    known = size is not None and not splits_the_network(every)
    return size * float(every[data.scale]) if known and size else math.nan


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
    every: list[Floats] = []
    where = []
    for point in data.points():
        if not point.rows.size or _recipe(data, point) != _recipe(data, first):
            continue
        reached = data.repeats(point, ("time_to_target", "run"))
        epochs = data.repeats(point, ("epochs_run", "run"))
        whole = reached.size == epochs.size == point.rows.size and _has_target(data, point)
        if whole and (epochs >= 1).all() and _global_batch(data, point) == batch:
            every.append(epochs)
            where.append(int(point.values[data.scale]))
    return (np.concatenate(every) if every else np.empty(0)), sorted(where)


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
    seconds = []
    for row in point.rows.tolist():
        phases: Mapping[str, float] = json.loads(texts[row]) if texts[row] else {}
        if epochs[row] > 0 and "validation" in phases:
            seconds.append(phases["validation"] / float(epochs[row]))
    return float(np.mean(seconds)) if seconds else 0.0
