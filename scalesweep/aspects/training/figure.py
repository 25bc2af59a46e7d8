"""Accuracy against wall time and against energy, and the loss by epoch."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from scalesweep.analysis.metrics import column
from scalesweep.aspects.training.curves import (
    Curves,
    accuracy_curve,
    column_of,
    curves,
    final_measure,
    label_of,
    targets,
)
from scalesweep.core.formatting import finite, scaled_unit, shorten
from scalesweep.experiment.learning import learns
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.figures.drawing import Drawing, drawn, evenly, labels_of
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis


def accuracy_figures(results: ExperimentResults) -> list[Drawing]:
    """Accuracy, error or loss over time and energy, and the losses by epoch, as far as known."""
    every = curves(results)
    name = accuracy_curve(results, every)
    if name is None:
        return _final_over_energy(results)
    over_energy = _over(results, every, name, "energy") or _final_over_energy(results)
    return _over(results, every, name, "time") + over_energy + _losses(results, every)


def _labels(results: ExperimentResults, points: Sequence[Row]) -> list[str]:
    return [shorten(label, 40) for label in labels_of(results, points, 40)[0]]


def _over(
    results: ExperimentResults, every: Sequence[Curves], name: str, what: str
) -> list[Drawing]:
    """One line per point: its mean over repeats, and the repeats themselves thinly."""
    over = column_of(results, "epoch_ends" if what == "time" else what)
    both = (over, column_of(results, name))
    known = [curve for curve in every if any(None not in pair for pair in curve.mean(both))]
    chosen = evenly(known)
    rows: list[dict[str, Any]] = []
    for curve, label in zip(chosen, _labels(results, [c.point for c in chosen]), strict=True):
        lines = [("", curve.mean(both))]
        if len(curve.repeats) > 1:
            lines += [("thin", [tuple(map(row.get, both)) for row in run]) for run in curve.repeats]
        for style, pairs in lines:
            rows += [{"x": x, "y": y, "series": label, "style": style}
                     for x, y in pairs if finite(x, y)]  # fmt: skip
            rows.append({"x": rows[-1]["x"], "y": None, "series": label, "style": style})
    if not rows:
        return []
    frame = pd.DataFrame(rows).astype({"y": float})
    factor, unit = scaled_unit("s" if what == "time" else "J", float(frame["x"].max()))
    frame["x"] *= factor
    words = "wall time" if what == "time" else "energy"
    goals = {f"target {goal:g}": goal for goal in targets(results, name)[:3]}
    panel = Lines(frame, Axis(f"{words.capitalize()} since training began [{unit}]", "zero"),
                  Axis(label_of(name), marks=goals))  # fmt: skip
    lower = label_of(name)[:1].lower() + label_of(name)[1:]
    note = f"Markers: end of each epoch. Thin lines: single repeats.{_dummy_words(results)}"
    return drawn(results, f"accuracy-{what}", f"{lower} against {words}", note, [panel],
                 len(known) - len(chosen))  # fmt: skip


def _dummy_words(results: ExperimentResults) -> str:
    dummy = any(not learns(results, row) for row in results.points)
    return " Runs with dummy input are left out: they learn nothing." if dummy else ""


def _losses(results: ExperimentResults, every: Sequence[Curves]) -> list[Drawing]:
    """Training and validation loss by epoch, side by side."""
    chosen = evenly(every)
    labels = _labels(results, [curve.point for curve in chosen])
    panels = []
    for name in ("loss", "validation_loss"):
        value = column_of(results, name)
        frame = pd.DataFrame(
            {"x": epoch + 1, "y": loss, "series": label}
            for curve, label in zip(chosen, labels, strict=True)
            for epoch, loss in curve.mean(("epoch", value))
            if epoch is not None and loss is not None
        )
        if len(frame):
            panels.append(Lines(frame, Axis("Epochs trained"), Axis(label_of(name))))
    note = "Means over ranks and repeats; the training loss is that during the epoch."
    return drawn(results, "accuracy-loss", "losses by epoch", note + _dummy_words(results), panels,
                 len(every) - len(chosen), columns=max(1, len(panels)))  # fmt: skip


def _final_over_energy(results: ExperimentResults) -> list[Drawing]:
    """One mark per run: its final accuracy against the energy of the whole program."""
    final, energy = final_measure(results), results.measures.get("energy")
    if final is None or energy is None:
        return []
    x, y = (column(metric, "mean", "run") for metric in ("energy", final.metric))
    known = [
        row
        for row in results.rows("runs")
        if learns(results, row) and finite(row.get(x), row.get(y))
    ]
    frame = pd.DataFrame(
        {"x": row[x] * energy.factor, "y": row[y], "series": label, "style": "dots"}
        for row, label in zip(known, _labels(results, known), strict=True)
    )
    goals = targets(results, final.metric.removeprefix("final_"))[:3]
    marks = {f"target {goal:g}": goal for goal in goals}
    panel = Lines(frame, Axis(f"Energy of the whole run [{energy.unit}]"),
                  Axis(final.label, marks=marks))  # fmt: skip
    note = f"One marker per run; energy of all hosts.{_dummy_words(results)}"
    what = f"{final.label[:1].lower()}{final.label[1:]} against energy"
    return drawn(results, "accuracy-energy", what, note, [panel] if known else [])


FIGURES = (accuracy_figures,)
