"""Stacked bars: one for each point, the same parts in the same colours."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from scalesweep.core.formatting import scaled_unit
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.figures.drawing import MAX_BARS, Drawing, drawn, evenly, labels_of
from scalesweep.figures.forms import Bars
from scalesweep.figures.theme import Axis, Look


class Bar(NamedTuple):
    """A point as a bar: its ``parts``, and a ``mark`` across it."""

    row: Row
    parts: dict[str, float]
    mark: float | None = None


def point_bars(
    results: ExperimentResults,
    name: str,
    what: str,
    axis: str,
    unit: str,
    bars: Sequence[Bar],
    looks: Mapping[str, Look],
    words: Mapping[str, str],
    note: str,
    marks: str = "",
) -> list[Drawing]:
    """The figure ``name`` with a bar for each point, of at most MAX_BARS; none without bars.

    ``axis``: what is measured, in ``unit``; ``words``: what parts are called, if not by name.
    """
    shown = evenly(bars, MAX_BARS)
    longest = max((sum(bar.parts.values()) for bar in shown), default=1.0)
    factor, unit = (1e-3, "s") if unit == "ms" and longest >= 1e3 else scaled_unit(unit, longest)
    labels, shared = labels_of(results, [bar.row for bar in shown])
    named = list(zip(labels, shown, strict=True))
    frame = pd.DataFrame(
        {"label": label, "part": words.get(part, part), "value": value * factor}
        for label, bar in named
        for part, value in bar.parts.items()
    )
    lines = {label: bar.mark * factor for label, bar in named if bar.mark}
    fills = {words.get(part, part): fill for part, fill in looks.items()}
    panel = Bars(frame, Axis(f"{axis} [{unit}]"), fills, line=(marks, lines) if lines else None)
    return drawn(results, name, what, note, [panel] if len(frame) else [], len(bars) - len(shown),
                 detail=shared)  # fmt: skip
