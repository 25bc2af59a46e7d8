"""Accuracy against wall time and against energy, and the loss by epoch."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.metrics import EPOCH_CURVES, column
from scalesweep.aspects.training.curves import PREFERRED, accuracy_curve, epochs_of, mean_epochs
from scalesweep.aspects.training.table import curve_column
from scalesweep.core.formatting import finite, scaled_unit, shorten
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.figures.drawing import Drawing, drawn, evenly, labels_of
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis


def accuracy_figures(results: ExperimentResults) -> list[Drawing]:
    """Accuracy, error or loss over time and energy, and the losses by epoch, as far as known."""
    epochs = epochs_of(results)
    name = accuracy_curve(results, epochs)
    if name is None:
        return _final_over_energy(results)
    over_energy = _over(results, epochs, name, "energy") or _final_over_energy(results)
    return _over(results, epochs, name, "time") + over_energy + _losses(results, epochs)


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


def _over(results: ExperimentResults, epochs: pd.DataFrame, name: str, what: str) -> list[Drawing]:
    """One line per point: its mean over repeats, and the repeats themselves thinly."""
    over = "epoch_ends" if what == "time" else what
    x, y = (curve_column(each, results.axes) for each in (over, name))
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
    factor, unit = scaled_unit("s" if what == "time" else "J", float(frame["x"].max()))
    frame["x"] *= factor
    words = "wall time" if what == "time" else "energy"
    label = EPOCH_CURVES[name].label
    panel = Lines(frame, Axis(f"{words.capitalize()} since training began [{unit}]", "zero"),
                  Axis(label, marks=_goals(results, name)))  # fmt: skip
    note = f"Markers: end of each epoch. Thin lines: single repeats.{_dummy_words(results)}"
    lower = label[:1].lower() + label[1:]
    return drawn(results, f"accuracy-{what}", f"{lower} against {words}", note, [panel],
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


def _final_over_energy(results: ExperimentResults) -> list[Drawing]:
    """One mark per run: its final accuracy against the energy of the whole program."""
    names = [f"final_{name}" for name in PREFERRED]
    names.insert(1, "test_accuracy")
    final = next((results.measures[name] for name in names if name in results.measures), None)
    energy = results.measures.get("energy")
    if final is None or energy is None:
        return []
    x, y = (column(metric, "mean", "run") for metric in ("energy", final.metric))
    known = [
        row
        for row in results.rows("runs")
        if results.learns(row) and finite(row.get(x), row.get(y))
    ]
    frame = pd.DataFrame(
        {"x": row[x] * energy.factor, "y": row[y], "series": label, "style": "dots"}
        for row, label in zip(known, _labels(results, known), strict=True)
    )
    marks = _goals(results, final.metric.removeprefix("final_"))
    panel = Lines(frame, Axis(f"Energy of the whole run [{energy.unit}]"),
                  Axis(final.label, marks=marks))  # fmt: skip
    note = f"One marker per run; energy of all hosts.{_dummy_words(results)}"
    what = f"{final.label[:1].lower()}{final.label[1:]} against energy"
    return drawn(results, "accuracy-energy", what, note, [panel] if known else [])


FIGURES = (accuracy_figures,)
