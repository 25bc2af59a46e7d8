"""The tables ``epochs``, with a row per run and epoch, and ``accuracy``, with one per point."""

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.metrics import (
    ENERGY,
    EPOCH_CURVES,
    column,
    units_of,
)
from scalesweep.analysis.table_io import typed_values, without_attrs
from scalesweep.aspects.training.score import Score, score_rows
from scalesweep.core.formatting import finite, text_of, with_interval
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.experiment.sections import Section
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.point_tables import identity_columns

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
        units[title] = quantity.meaning
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


# The best measures of a model first: of validation, and accuracy rather than loss.
PREFERRED = (
    *("validation_accuracy", "accuracy", "validation_mae", "mae", "validation_loss", "loss"),
)


def epochs_of(results: ExperimentResults) -> pd.DataFrame:
    """The rows of `epochs` without dummy input; ``place`` numbers their points and sources."""
    frame = results.tables.get("epochs")
    if frame is None:
        return pd.DataFrame({"place": [], "run_id": []})
    rows = without_attrs(frame)
    points: list[Any] = rows.to_dict("records")
    rows = rows[[results.learns(point) for point in points]]
    by_point = rows.groupby([*results.axes, "source"], sort=False, dropna=False)
    return rows.assign(place=by_point.ngroup())


def mean_epochs(epochs: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Means over the repeats by ``place`` and ``epoch``, of the epochs that all repeats had.

    Missing where one of them has no number: a mean over some would be of other runs.
    """
    by_epoch = epochs.groupby(["place", "epoch"])
    runs = epochs.groupby("place")["run_id"].transform("nunique")
    complete = by_epoch["run_id"].transform("size") == runs
    kept = epochs[complete].groupby(["place", "epoch"])[list(columns)]
    return kept.mean().where(kept.count().eq(kept.size(), axis=0)).reset_index()


def accuracy_curve(results: ExperimentResults, epochs: pd.DataFrame) -> str | None:
    """Name of the curve that says how well the models do; None where there is none."""
    titles = {name: curve_column(name, results.axes) for name in PREFERRED}
    there = (n for n, title in titles.items() if title in epochs and epochs[title].notna().any())
    return next(there, None)


def _accuracy_notes(results: ExperimentResults) -> list[str]:
    notes = ["Means over repeats, in brackets the 95 % interval of the mean."]
    if any(finite(row.get("reached")) for row in results.rows("accuracy")):
        notes.append(
            "Reached: runs that met the target, of all finished runs; the time to target is "
            "their mean."
        )
    return notes


def _measures(results: ExperimentResults) -> list[Measure]:
    """Columns of the accuracy table: of loss and accuracy those of validation, where there are."""
    names = [name for name in (*RESULTS, *ENERGY) if name in results.measures]
    validated = {name.replace("validation_", "") for name in names if "validation_" in name}
    return [results.measures[n] for n in names if n == "final_loss" or n not in validated]


def accuracy_table(results: ExperimentResults, limit: int) -> Table | None:
    """Time, rate, loss, accuracy and energy of every point; None where nothing trains."""
    rows = results.rows("accuracy")
    if not rows:
        return None
    columns: list[Column] = []
    for measure in _measures(results):
        if measure.metric == "time_to_target":
            columns.append(_REACHED)
        name = column(measure.metric, "mean", "run")
        columns.append(Column(measure.axis_label, _cell(measure), name))
    if any("reached" in row for row in rows) and "time_to_target" not in results.measures:
        columns.append(_REACHED)
    return table_of(results, rows, [("", columns)], limit)


def _cell(measure: Measure) -> Callable[[Row], Cell]:
    def make(row: Row) -> Cell:
        value, low, high = (measure.value(row, stat, "run") for stat in ("mean", "low", "high"))
        # A count that is the same in every run (epochs) is shown with all its digits.
        count = finite(value) and low is None and float(value).is_integer()
        text = text_of(value) if count else with_interval(value, low, high)
        known, runs = row.get("energy_runs"), int(row.get("repeats") or 0)
        if measure.metric in ENERGY and finite(known) and 0 < known < runs:
            text += f" ({known:.0f} of {runs} runs)"
        return Cell(text)

    return make


def _reached(row: Row) -> Cell:
    reached, runs = row.get("reached"), int(row.get("repeats") or 0)
    if not finite(reached) or not runs:
        return Cell("–")
    return Cell(f"{reached:.0f}/{runs}", reached < runs)


_REACHED = Column("Reached", _reached, "reached")


SECTION = Section("Accuracy", accuracy_table, _accuracy_notes)
