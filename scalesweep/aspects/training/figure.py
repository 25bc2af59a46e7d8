"""Accuracy against wall time, and the loss by epoch."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.metrics import EPOCH_CURVES
from scalesweep.aspects.training.table import accuracy_curve, curve_column, epochs_of, mean_epochs
from scalesweep.core.formatting import finite, scaled_unit, shorten
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.figures.drawing import Drawing, drawn, evenly, labels_of
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis


def accuracy_figures(results: ExperimentResults) -> list[Drawing]:
    """Accuracy, error or loss over time, and the losses by epoch, as far as known."""
    epochs = epochs_of(results)
    name = accuracy_curve(results, epochs)
    if name is None:
        return []
    return _over(results, epochs, name) + _losses(results, epochs)


def _labels(results: ExperimentResults, points: Sequence[Row]) -> list[str]:
    return [shorten(label, 40) for label in labels_of(results, points, 40)[0]]


def _chosen(
    results: ExperimentResults, epochs: pd.DataFrame, places: Sequence[int]
) -> Mapping[int, str]:
    """So many of these points as have room, with their labels."""
    chosen = evenly(places)
    first = epochs.drop_duplicates("place").set_index("place").loc[chosen]
    points: list[Any] = first.to_dict("records")
    return dict(zip(chosen, _labels(results, points), strict=True))


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


FIGURES = (accuracy_figures,)
