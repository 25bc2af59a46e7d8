"""The tables ``epochs``, with a row per run and epoch, and ``accuracy``, with one per point."""

import math
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.metrics import (
    ENERGY,
    EPOCH_CURVES,
    Quantity,
    column,
    units_of,
)
from scalesweep.analysis.table_io import typed_values
from scalesweep.aspects.training.score import Score, score_rows
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.points import identity_columns

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
_STATS = ("mean", "low", "high")


def curve_column(name: str, axes: Sequence[str]) -> str:
    """Column of a curve in `epochs`: its name, unless a varying parameter has it
    (a learning rate is both a parameter and a curve)."""
    return f"epoch_{name}" if name in axes else name


def _meaning(quantity: Quantity) -> dict[str, str]:
    return {
        "label": quantity.label,
        "unit": quantity.unit,
        "better": quantity.better,
        "scope": quantity.scope,
    }


def epochs_frame(inputs: TableInputs) -> pd.DataFrame | None:
    """A row per run and epoch: means over the ranks."""
    data, points = inputs.data, inputs.points
    curves = data.notes("_epochs")
    if not curves:
        return None
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
    units = {}
    for name, quantity in EPOCH_CURVES.items():
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


def accuracy_frame(inputs: TableInputs) -> pd.DataFrame | None:
    """A row per point: time, rate, loss, accuracy, energy, with intervals over the repeats.

    ``reached`` counts the runs that met their target, of which alone ``time_to_target`` tells;
    ``energy_runs`` those of which energy is known.
    """
    data, points = inputs.data, inputs.points
    if not data.trains:
        return None
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
        values = [astuple(data.mean(point, (metric, "run"))) for point in points]
        for stat, numbers in zip(_STATS, zip(*values, strict=True), strict=True):
            table[column(metric, stat, "run")] = np.array(numbers, np.float64)
    frame = pd.DataFrame(table)
    frame.attrs["units"] = units_of(frame.columns, data.quantities)
    return frame


MAKERS = (
    Maker("epochs", epochs_frame),
    Maker("accuracy", accuracy_frame),
    Maker(Score, score_rows),
)
