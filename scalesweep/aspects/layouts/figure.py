"""The figure of layouts: the best of each scale among all that ran."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from scalesweep.aspects.layouts.table import BestLayout, LayoutPoint, best_layouts, layouts_that_ran
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import Drawing, drawn
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis

MAX_SETTINGS = 4


def layout_figures(results: ExperimentResults) -> list[Drawing]:
    """Of each thing that is computed the best of each scale beside the median and all that ran."""
    main, ran = results.main, layouts_that_ran(results)
    settings = {
        setting: known
        for setting, rows in best_layouts(results).items()
        if (known := [row for row in rows if row.layout is not None])
    }
    if main is None or not any(len(rows) > 1 for rows in settings.values()):
        return []
    # The metric, of each rank where it is of all.
    divided = any(layout.per_rank != layout.value for layout in ran)
    each = f" per {results.scale.removesuffix('s')}" if divided else ""
    label = f"{main.label}{each}" + (f" [{main.unit}]" if main.unit else "")
    scale = Axis(f"Number of {results.scale}", "scale")
    panels = []
    for setting, rows in list(settings.items())[:MAX_SETTINGS]:
        frame = _scales(main, rows, [layout for layout in ran if layout.setting == setting])
        panels.append(Lines(frame, scale, Axis(label, "log"), setting))
    return drawn(results, "layouts-scale", "best layout of each scale", "Grey: layouts that ran.",
                 panels, columns=len(panels))  # fmt: skip


def _scales(main: Measure, rows: Sequence[BestLayout], ran: Sequence[LayoutPoint]) -> pd.DataFrame:
    """All layouts, the best and the median."""
    made: list[dict[str, Any]] = [
        {"x": layout.scale, "y": layout.per_rank, "series": "a layout", "style": "faint"}
        for layout in ran
    ]
    best = {layout.scale: layout.per_rank for layout in ran if layout.place == 1}
    for row in rows:
        median = best[row.scale] * row.median ** (1 if main.higher else -1)
        at = {"x": row.scale}
        made.append({**at, "y": best[row.scale], "series": "best", "style": ""})
        made.append({**at, "y": median, "series": "median", "style": "plain"})
    return (
        pd.DataFrame(made)
        .assign(y=lambda frame: frame["y"] * main.factor)
        .sort_values("x", kind="stable")
    )


FIGURES = (layout_figures,)
