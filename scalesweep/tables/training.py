"""Tables of training runs: `epochs`, `accuracy`, `phases` and `power`.

There for experiments whose runs keep a loss, an accuracy or the time of training (`epochs`,
`accuracy`, `phases`), or energy (`phases`, `power`).
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.metrics import (
    ENERGY_SO_FAR,
    EPOCH_CURVES,
    Quantity,
    column,
    units_of,
    units_with_bounds,
)
from scalesweep.analysis.stats import mean_interval
from scalesweep.analysis.table_io import typed_values
from scalesweep.analysis.types import Floats
from scalesweep.tables.points import ExperimentData, Measure, Point, identity_columns
from scalesweep.tables.power import power_table

# Of the columns of `accuracy`, in this order.
RESULTS = (
    "training_time",
    "training_samples_per_second",
    "time_to_target",
    "epochs_run",
    "final_loss",
    "final_validation_loss",
    "final_mae",
    "final_validation_mae",
    "final_accuracy",
    "final_validation_accuracy",
    "test_accuracy",
)
ENERGY = ("energy", "energy_per_sample", "energy_delay_product", "mean_power", "peak_power")
# Phases in the order of a run; others follow.
PHASE_ORDER = (
    "import",
    "init",
    "data_staging",
    "data_loading",
    "preprocessing",
    "build",
    "broadcast",
    "warmup",
    "training",
    "timed",
    "validation",
    "evaluation",
    "teardown",
)
_STATS = ("mean", "low", "high")


def in_order(phases: Iterable[str]) -> list[str]:
    """Phases in the order of a run, unknown ones last."""
    order = {name: place for place, name in enumerate(PHASE_ORDER)}
    return sorted(phases, key=lambda name: order.get(name, len(order)))


def curve_column(name: str, axes: Sequence[str]) -> str:
    """Column of a curve in `epochs`: its name, unless a varying parameter has it
    (a learning rate is both a parameter and a curve)."""
    return f"epoch_{name}" if name in axes else name


def training_tables(
    data: ExperimentData, points: Sequence[Point], runs: Path | None
) -> dict[str, pd.DataFrame]:
    """The tables of an experiment that has any of this; ``runs`` is the folder of its runs.

    Their ``attrs["units"]`` name what the columns mean.
    Raises UserError if power.csv of a run is not a table of power.
    """
    curves = _texts(data, "_epochs")
    metrics = {metric for metric, _ in data.measures}
    training = bool(curves) or bool(metrics & {"training_time", "time_to_target"})
    energy = bool(metrics & set(ENERGY)) or bool(_texts(data, "_energy"))
    if not training and not energy:
        return {}
    tables: dict[str, pd.DataFrame | None] = {"phases": _phases(data, points)}
    if curves:
        tables["epochs"] = _epochs(data, points, curves)
    if training:
        tables["accuracy"] = _accuracy(data, points)
    if energy and runs is not None:
        tables["power"] = power_table(data, points, runs)
    return {name: frame for name, frame in tables.items() if frame is not None}


def _texts(data: ExperimentData, name: str) -> dict[int, Any]:
    """What a bookkeeping column says of the experiment's runs, by row of the summary."""
    texts = data.texts(name)
    return {row: json.loads(texts[row]) for row in data.row_of.values() if texts[row] is not None}


def _meaning(quantity: Quantity) -> dict[str, str]:
    return {
        "label": quantity.label,
        "unit": quantity.unit,
        "better": quantity.better,
        "scope": quantity.scope,
    }


def _epochs(
    data: ExperimentData, points: Sequence[Point], curves: Mapping[int, Any]
) -> pd.DataFrame:
    """A row per run and epoch: means over the ranks."""
    run_ids, repeats = (data.summary[name].tolist() for name in ("run_id", "repeat"))
    rows = [(point, row) for point in points for row in point.rows.tolist() if row in curves]
    lengths = {row: len(next(iter(curves[row].values()))) for _, row in rows}
    flat = [(p, row, epoch) for p, row in rows for epoch in range(lengths[row])]
    table: dict[str, Any] = {
        "run_id": typed_values([run_ids[row] for _, row, _ in flat]),
        "repeat": np.array([repeats[row] for _, row, _ in flat], np.int64),
    }
    for name in data.axes:
        table[name] = typed_values([point.values[name] for point, _, _ in flat])
    table["source"] = typed_values([point.source for point, _, _ in flat])
    table["epoch"] = np.array([epoch for _, _, epoch in flat], np.int64)
    known = {**EPOCH_CURVES, "energy": ENERGY_SO_FAR}
    units = {}
    for name, quantity in known.items():
        if not any(name in curves[row] for _, row in rows):
            continue
        title = curve_column(name, data.axes)
        epochs = [
            curves[row][name][epoch] if name in curves[row] else None for _, row, epoch in flat
        ]
        table[title] = np.array([math.nan if v is None else v for v in epochs], np.float64)
        units[title] = _meaning(quantity)
    frame = pd.DataFrame(table)
    frame.attrs["units"] = units
    return frame


def _accuracy(data: ExperimentData, points: Sequence[Point]) -> pd.DataFrame:
    """A row per point: time, rate, loss, accuracy, energy, with intervals over the repeats.

    ``reached`` counts the runs that met their target, of which alone ``time_to_target`` tells;
    ``energy_runs`` those of which energy is known.
    """
    table = identity_columns(data.axes, points)
    table["samples"] = typed_values([point.samples for point in points], int)
    there = {metric for metric, phase in data.measures if phase == "run"}
    # Of each point, whether it sets an accuracy or error at which training stops.
    targets = [any(value is not None for value in data.targets(point)) for point in points]
    if any(targets) or "time_to_target" in there:
        counts = [data.repeats(point, ("time_to_target", "run")).size for point in points]
        reached = [
            count if target or count else None
            for count, target in zip(counts, targets, strict=True)
        ]
        table["reached"] = typed_values(reached, int)
    for metric in (*RESULTS, *ENERGY):
        if metric not in there:
            continue
        if metric == "energy":
            table["energy_runs"] = [data.repeats(point, ("energy", "run")).size for point in points]
        values = [_of_point(data, point, (metric, "run")) for point in points]
        for stat, numbers in zip(_STATS, zip(*values, strict=True), strict=True):
            table[column(metric, stat, "run")] = np.array(numbers, np.float64)
    frame = pd.DataFrame(table)
    frame.attrs["units"] = units_of(frame.columns, data.quantities)
    return frame


def _of_point(data: ExperimentData, point: Point, measure: Measure) -> tuple[float, float, float]:
    """Mean of a metric and its 95 % interval; NaN where there is none."""
    values = data.repeats(point, measure)
    if not values.size:
        return (math.nan,) * 3
    interval = data.interval(point, measure)
    return float(values.mean()), interval.low, interval.high


def _interval(values: Floats, level: float) -> tuple[float, float, float]:
    """Mean and its 95 % interval; NaN where there is none."""
    if not values.size:
        return (math.nan,) * 3
    interval = mean_interval(values, level)
    return float(values.mean()), interval.low, interval.high


def _phases(data: ExperimentData, points: Sequence[Point]) -> pd.DataFrame | None:
    """A row per point and phase: seconds, their share of the run's phases and, where known, joules.

    ``runs`` counts the finished runs that had the phase, ``energy_runs`` those whose energy in it
    is known.
    """
    seconds, energy = _texts(data, "_phases"), _texts(data, "_energy")
    names = in_order(dict.fromkeys(name for values in seconds.values() for name in values))
    rows = list(_phase_rows(points, names, seconds, energy, data.level))
    if not rows:
        return None
    table = identity_columns(data.axes, [point for point, _ in rows])
    for key in rows[0][1]:
        values = [values[key] for _, values in rows]
        table[key] = typed_values(values) if key == "phase" else np.array(values)
    frame = pd.DataFrame(table)
    if not frame["energy_runs"].any():
        frame = frame.drop(columns=[name for name in frame if str(name).startswith("energy")])
    kinds = {"seconds": ("Time", "s"), "energy": ("Energy", "J")}
    columns = [name for name in frame.columns if name not in data.axes]
    frame.attrs["units"] = units_with_bounds(columns, kinds, "total")
    return frame


def _phase_rows(
    points: Sequence[Point],
    names: Sequence[str],
    seconds: Mapping[int, Mapping[str, float]],
    energy: Mapping[int, Mapping[str, float]],
    level: float,
) -> Iterator[tuple[Point, dict[str, Any]]]:
    def over_repeats(point: Point, numbers: Mapping[int, Mapping[str, float]], name: str) -> Floats:
        values = [numbers[row].get(name) for row in point.rows.tolist() if row in numbers]
        return np.array([value for value in values if value is not None], np.float64)

    # Of a run's phases together; none where all of them took no time.
    shares = {
        row: {name: value / sum(values.values()) for name, value in values.items()}
        for row, values in seconds.items()
        if sum(values.values()) > 0
    }
    for point in points:
        for name in names:
            times = over_repeats(point, seconds, name)
            joules = over_repeats(point, energy, name)
            if not times.size:
                continue
            mean, low, high = _interval(times, level)
            share, share_low, share_high = _interval(over_repeats(point, shares, name), level)
            used, used_low, used_high = _interval(joules, level)
            yield (
                point,
                {
                    "phase": name,
                    "runs": times.size,
                    "seconds": mean,
                    "seconds_low": low,
                    "seconds_high": high,
                    "share": share,
                    "share_low": share_low,
                    "share_high": share_high,
                    "energy_runs": joules.size,
                    "energy": used,
                    "energy_low": used_low,
                    "energy_high": used_high,
                },
            )
