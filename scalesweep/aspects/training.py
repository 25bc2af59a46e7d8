"""What training gave: time, rate, loss, accuracy and energy, by epoch and by point."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.metrics import ENERGY, EPOCH_CURVES, column
from scalesweep.analysis.table_io import typed_values, without_attrs
from scalesweep.core.formatting import finite, scaled_unit, shorten, text_of, with_interval
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.experiment.sections import Section
from scalesweep.figures.drawing import Drawing, drawn, evenly, labels_of
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis
from scalesweep.tables.machine_load import LEFT_OUT
from scalesweep.tables.making import Maker, TableInputs

# Of the columns of `points`, in this order.
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
_NOTE = (
    "Means over repeats, in brackets the 95 % interval of the mean. Reached: runs that met the "
    "target, of all finished runs; the time to target is their mean."
)


def curve_column(name: str, axes: Sequence[str]) -> str:
    """Column of a curve in `epochs`: its name, unless a varying parameter has it
    (a learning rate is both a parameter and a curve)."""
    return f"epoch_{name}" if name in axes else name


def epochs_frame(inputs: TableInputs) -> pd.DataFrame | None:
    """A row per run and epoch: means over the ranks."""
    data, curves = inputs.data, inputs.data.notes("_epochs")
    if not curves:
        return None
    rows = [
        (p, row, curves[row]) for p in inputs.points for row in p.rows.tolist() if row in curves
    ]
    runs = data.summary.iloc[[row for _, row, _ in rows]]
    lengths = [len(next(iter(own.values()))) for *_, own in rows]
    table: dict[str, Any] = {name: runs[name].tolist() for name in ("run_id", "repeat")}
    for name in data.axes:
        table[name] = typed_values([point.values[name] for point, *_ in rows])
    table["source"] = [point.source for point, *_ in rows]
    table["epoch"] = [list(range(length)) for length in lengths]
    units = {}
    for name, quantity in EPOCH_CURVES.items():
        if any(name in own for *_, own in rows):
            title = curve_column(name, data.axes)
            units[title] = quantity.meaning
            missing = [[None] * length for length in lengths]
            table[title] = [own.get(name, no) for (*_, own), no in zip(rows, missing, strict=True)]
    frame = pd.DataFrame(table).explode(["epoch", *units], ignore_index=True)
    frame = frame.astype({"epoch": "int64", **dict.fromkeys(units, "float64")})
    frame.attrs["units"] = units
    return frame


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


def _measures(results: ExperimentResults) -> list[Measure]:
    """Columns of the accuracy table: of loss and accuracy those of validation, where there are."""
    names = [name for name in (*RESULTS, *ENERGY) if name in results.measures]
    validated = {name.replace("validation_", "") for name in names if "validation_" in name}
    return [results.measures[n] for n in names if n == "final_loss" or n not in validated]


def accuracy_table(results: ExperimentResults, limit: int) -> Table | None:
    """Time, rate, loss, accuracy and energy of every point; None where nothing trains."""
    if not results.measures.keys() & {*RESULTS}:
        return None
    known = _counts(results)
    rows: list[Row] = [{**row, **known.get(results.point_key(row), {})} for row in results.points]
    columns: list[Column] = []
    for measure in _measures(results):
        if measure.metric == "time_to_target":
            columns.append(_REACHED)
        name = column(measure.metric, "mean", "run")
        columns.append(Column(measure.axis_label, _cell(measure), name))
    if any(row.get("reached") is not None for row in rows) and _REACHED not in columns:
        columns.append(_REACHED)
    return table_of(results, rows, [("", columns)], limit)


def _counts(results: ExperimentResults) -> dict[Key, Row]:
    """Of each point how many runs ``reached`` their target, if it sets one, and of how many the
    energy is known."""
    counts: dict[Key, Row] = {}
    for run in results.rows("runs"):
        aims = [v for n, v in parameters_at(results.entry, run).items() if n.startswith("target_")]
        met, watts = (finite(run.get(f"{n}_mean_run")) for n in ("time_to_target", "energy"))
        key = results.point_key(run)
        own = counts.setdefault(key, {"reached": None, "energy_runs": 0})
        if run.get(LEFT_OUT):
            continue
        own["energy_runs"] += watts
        if met or any(aim is not None for aim in aims):
            own["reached"] = (own["reached"] or 0) + met
    return counts


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


def accuracy_figures(results: ExperimentResults) -> list[Drawing]:
    """Accuracy, error or loss over time, and the losses by epoch, as far as known."""
    epochs = epochs_of(results)
    name = accuracy_curve(results, epochs)
    if name is None:
        return []
    return _over(results, epochs, name) + _losses(results, epochs)


def _chosen(
    results: ExperimentResults, epochs: pd.DataFrame, places: Sequence[int]
) -> Mapping[int, str]:
    """So many of these points as have room, with their labels."""
    chosen = evenly(places)
    first = epochs.drop_duplicates("place").set_index("place").loc[chosen]
    points: list[Any] = first.to_dict("records")
    labels = (shorten(label, 40) for label in labels_of(results, points, 40)[0])
    return dict(zip(chosen, labels, strict=True))


def _over(results: ExperimentResults, epochs: pd.DataFrame, name: str) -> list[Drawing]:
    """One line per point: its mean over repeats, and the repeats themselves thinly."""
    x, y = (curve_column(each, results.axes) for each in ("epoch_ends", name))
    if x not in epochs:
        return []
    means = mean_epochs(epochs, (x, y)).dropna().assign(run_id="", style="")
    known = means["place"].unique().tolist()
    labels = _chosen(results, epochs, known)
    several = epochs.groupby("place")["run_id"].transform("nunique") > 1
    thin = epochs[several].dropna(subset=[x, y]).assign(style="thin")
    every = pd.concat([means, thin])[["place", "run_id", "style", x, y]]
    lines = every[every["place"].isin(labels)].groupby(["place", "run_id"])
    pieces = [part for _, line in lines for part in (line, line.tail(1).assign(**{y: np.nan}))]
    if not pieces:
        return []
    frame = pd.concat(pieces).rename(columns={x: "x", y: "y"}).reset_index(drop=True)
    frame["series"] = frame["place"].map(labels)
    factor, unit = scaled_unit("s", float(frame["x"].max()))
    frame["x"] *= factor
    label = EPOCH_CURVES[name].label
    panel = Lines(frame, Axis(f"Wall time since training began [{unit}]", "zero"),
                  Axis(label, marks=_goals(results, name)))  # fmt: skip
    note = f"Markers: end of each epoch. Thin lines: single repeats.{_dummy_words(results)}"
    lower = label[:1].lower() + label[1:]
    return drawn(results, "accuracy-time", f"{lower} against wall time", note, [panel],
                 len(known) - len(labels))  # fmt: skip


def _goals(results: ExperimentResults, name: str) -> dict[str, float]:
    """The first three values of ``name`` at which training was to stop."""
    parameter = f"target_{name.removeprefix('validation_')}"
    points = [run["point"] for run in results.entry["runs"]]
    goals = {float(point[parameter]) for point in points if finite(point.get(parameter))}
    return {f"target {goal:g}": goal for goal in sorted(goals)[:3]}


def _dummy_words(results: ExperimentResults) -> str:
    dummy = any(not results.learns(row) for row in results.points)
    return " Runs with dummy input are left out: they learn nothing." if dummy else ""


def _losses(results: ExperimentResults, epochs: pd.DataFrame) -> list[Drawing]:
    """Training and validation loss by epoch, side by side."""
    every = epochs["place"].unique().tolist()
    labels = _chosen(results, epochs, every)
    panels = []
    for name in ("loss", "validation_loss"):
        title = curve_column(name, results.axes)
        means = mean_epochs(epochs, [title]).dropna() if title in epochs else pd.DataFrame()
        if len(means):
            means = means[means["place"].isin(labels)]
            frame = pd.DataFrame({"x": means["epoch"] + 1, "y": means[title],
                                  "series": means["place"].map(labels)})  # fmt: skip
            panels.append(Lines(frame, Axis("Epochs trained"), Axis(EPOCH_CURVES[name].label)))
    note = "Means over ranks and repeats; the training loss is that during the epoch."
    return drawn(results, "accuracy-loss", "losses by epoch", note + _dummy_words(results), panels,
                 len(every) - len(labels), columns=max(1, len(panels)))  # fmt: skip


MAKERS = (Maker("epochs", epochs_frame),)
FIGURES = (accuracy_figures,)
SECTION = Section("Accuracy", accuracy_table, lambda _results: [_NOTE])
