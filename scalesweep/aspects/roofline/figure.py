"""Rooflines: the layers of a model under what the machine could do, and how they move as the local
batch shrinks."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from scalesweep.analysis.roofline import COMPUTE, LAUNCH, MEMORY, UNRATED
from scalesweep.aspects.roofline.table import LayerRow, PointRoofline, group_names, rooflines
from scalesweep.core.formatting import number, scaled_unit, text_of
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import Drawing, drawn
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis
from scalesweep.tables.machine import MEASURED

MOST_FIGURES = 12  # rooflines of an experiment
NAMED = 6  # layers with a name, and a path over the local batches
_AREA, _LEAST_AREA = 1500.0, 12.0  # points squared of a layer that takes all the time; the least
_CLASSES = {
    COMPUTE: "Compute bound", MEMORY: "Memory bound", LAUNCH: "Launch bound",
    UNRATED: "No products",
}  # fmt: skip


def roofline_figures(results: ExperimentResults) -> list[Drawing]:
    """A roofline for each model (precision, ...); none without ceilings, or layers with FLOP."""
    groups = [group for group in rooflines(results) if group[0].roof and _shown(group[0])]
    several = len(groups) > 1
    return [
        drawing
        for place, group in enumerate(groups[:MOST_FIGURES], 1)
        for drawing in _roofline(results, group, f"roofline-{place}" if several else "roofline")
    ]


def _named(layer: LayerRow) -> str:
    return f"{layer.layer} ×{layer.count}" if layer.count > 1 else layer.layer


def _shown(point: PointRoofline) -> list[LayerRow]:
    """The layers that a logarithmic picture has a place for, those that take longest first."""
    return [layer for layer in point.layers if layer.intensity and layer.flops > 0]


def _roofline(
    results: ExperimentResults, group: Sequence[PointRoofline], name: str
) -> list[Drawing]:
    """The layers at the largest local batch: FLOP/s over FLOP/byte, areas by share of the time; a
    line follows those that take longest to the smaller batches."""
    first, roof = group[0], group[0].roof
    assert roof is not None
    shown = _shown(first)
    factor, unit = scaled_unit("FLOP/s", max(roof.flops, *(layer.flops for layer in shown)))
    total = sum(layer.ms.value for layer in first.layers)
    frame = pd.DataFrame(
        {"x": layer.intensity, "y": layer.flops * factor,
         "size": max(_LEAST_AREA, _AREA * layer.ms.value / total),
         "label": _named(layer) if place < NAMED else "",
         "series": _CLASSES.get(layer.bound or "", "other"), "style": "dots"}
        for place, layer in enumerate(shown)
    )  # fmt: skip
    moves: list[dict[str, Any]] = [
        {"series": layer.layer, "x": each.intensity, "y": each.flops * factor, "style": "thin"}
        for layer in shown[:NAMED]
        for point in group
        for each in _shown(point)
        if each.layer == layer.layer
    ]
    ridge = f"Ridge {number(roof.ridge)} FLOP/byte, {number(roof.flops * factor)} {unit}"
    xs = [roof.ridge, *frame["x"], *(move["x"] for move in moves)]
    line: list[dict[str, Any]] = [
        {"series": ridge, "x": x, "y": roof.rate(x) * factor, "style": "plain"}
        for x in (min(xs) / 2, roof.ridge, max(xs) * 3)
    ]
    model = results.entry["fixed"].get("model")
    words = [str(model or ""), *(text_of(first.row.get(each)) for each in group_names(results))]
    what = ", ".join(dict.fromkeys(filter(None, words))) or "the model"
    batch = "" if first.local_batch is None else f" at a local batch of {first.local_batch}"
    panel = Lines(pd.concat([frame, pd.DataFrame(line + moves)]),
                  Axis("Arithmetic intensity [FLOP/byte]", "log"),
                  Axis(f"Rate of a rank [{unit}]", "log"))  # fmt: skip
    note = (
        "Dots: kinds of layers, forward and backward; areas: their time. Thin lines: where those "
        "that take longest move over the local batches."
    )
    note += "" if first.step.roof == MEASURED else " The ceilings are a data sheet's."
    return drawn(results, name, f"{what}, layers under the roofline{batch}", note, [panel])


FIGURES = (roofline_figures,)
