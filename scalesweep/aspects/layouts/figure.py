"""The figures of layouts: the best of each scale, and the cost in memory."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from scalesweep.aspects.layouts.table import BestLayout, LayoutPoint
from scalesweep.aspects.layouts.words import best_layouts, layouts_that_ran
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import Drawing, drawn
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis

MAX_SETTINGS, MAX_SCALES = 4, 4
_Ran = Mapping[str, Mapping[int, Sequence[LayoutPoint]]]


def _shown(results: ExperimentResults) -> tuple[dict[str, list[BestLayout]], _Ran]:
    """What is computed, as far as figures have room: the best of its scales, and all that ran."""
    settings = {
        setting: [row for row in rows if row.layout is not None]
        for setting, rows in best_layouts(results).items()
        if any(row.layout is not None for row in rows)
    }
    ran: dict[str, dict[int, list[LayoutPoint]]] = {}
    for layout in layouts_that_ran(results):
        ran.setdefault(layout.setting, {}).setdefault(layout.scale, []).append(layout)
    return dict(list(settings.items())[:MAX_SETTINGS]), ran


def _label(results: ExperimentResults, main: Measure, ran: _Ran) -> str:
    """The metric, of each rank where it is of all."""
    layouts = [row for scales in ran.values() for of in scales.values() for row in of]
    divided = any(layout.per_rank != layout.value for layout in layouts)
    each = f" per {results.scale.removesuffix('s')}" if divided else ""
    return f"{main.label}{each}" + (f" [{main.unit}]" if main.unit else "")


def layout_figures(results: ExperimentResults) -> list[Drawing]:
    """The best of each scale beside the median and the layout that was carried over."""
    settings, ran = _shown(results)
    main = results.main
    if main is None or not any(len(rows) > 1 for rows in settings.values()):
        return []
    label = _label(results, main, ran)
    scale = Axis(f"Number of {results.scale}", "scale")
    panels = [
        Lines(_scales(main, rows, ran[setting]), scale, Axis(label, "log"), setting)
        for setting, rows in settings.items()
    ]
    note = (
        "Grey: layouts that ran. Carried over: the best layout of the next smaller scale, with "
        "more data-parallel ranks."
    )
    return drawn(results, "layouts-scale", "best layout of each scale", note, panels,
                 columns=len(settings))  # fmt: skip


def _scales(
    main: Measure, rows: Sequence[BestLayout], ran: Mapping[int, Sequence[LayoutPoint]]
) -> pd.DataFrame:
    """All layouts, the best, the median, and those carried over."""
    made: list[dict[str, Any]] = [
        {"x": scale, "y": layout.per_rank * main.factor, "series": "a layout", "style": "faint"}
        for scale, of in ran.items()
        for layout in of
    ]
    for row in rows:
        best = ran[row.scale][0].per_rank * main.factor
        at = {"x": row.scale}
        made.append({**at, "y": best, "series": "best", "style": ""})
        made.append({**at, "y": _times(main, best, row.median), "series": "median",
                     "style": "plain"})  # fmt: skip
        if row.carried_loss is not None:
            carried = _times(main, best, 1 - row.carried_loss.value)
            made.append({**at, "y": carried, "series": "carried over", "style": "dots"})
    return pd.DataFrame(made).sort_values("x", kind="stable")


def _times(main: Measure, best: float, share: float) -> float:
    """The value of a layout that reaches a share of the best."""
    return best * share if main.higher else best / share


def front_figures(results: ExperimentResults) -> list[Drawing]:
    """Of each of what is computed the layouts of each scale against their memory."""
    settings, ran = _shown(results)
    main = results.main
    drawings: list[Drawing] = []
    for place, (setting, rows) in enumerate(settings.items() if main else (), 1):
        assert main is not None
        measure = results.measures.get(str(rows[0].memory_metric))
        known = {
            scale: of
            for scale, layouts in sorted(ran[setting].items())
            if len(of := [layout for layout in layouts if layout.memory is not None]) > 1
        }
        if measure is None or not known:
            continue
        rate = _label(results, main, {setting: ran[setting]})
        panels = [
            _front(main, measure, layouts, results.scaled(scale), rate)
            for scale, layouts in list(known.items())[-MAX_SCALES:]
        ]
        what = f"{main.label.lower()} against memory{f', {setting}' if setting else ''}"
        note = "Line: the front, layouts that no other of their scale beats with as little memory."
        drawings += drawn(results, f"layouts-memory-{place}", what, note, panels,
                          columns=min(2, len(panels)))  # fmt: skip
    return drawings


def _front(
    main: Measure, measure: Measure, layouts: Sequence[LayoutPoint], title: str, rate: str
) -> Lines:
    """Dots of the layouts of a scale, and their front as steps."""
    frame = pd.DataFrame(
        {"x": (row.memory or 0.0) * measure.factor, "y": row.per_rank * main.factor,
         "series": "a layout", "style": "faint", "front": bool(row.front)}
        for row in layouts
    )  # fmt: skip
    front = frame[frame["front"]].sort_values("x").assign(series="front", style="front")
    frame = pd.concat([frame, front])
    return Lines(frame, Axis(measure.axis_label, "zero"), Axis(rate, "zero"), title)


FIGURES = (layout_figures, front_figures)
