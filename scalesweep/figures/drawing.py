"""A figure as data: forms in panels, with what the report says about them."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scalesweep.core.formatting import apart, counted, shorten, text_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.figures.forms import Form, Lines
from scalesweep.figures.theme import MAX_LINES, NARROW, WIDE

MAX_BARS = 24
FEW = 6  # names that have room in a panel


@dataclass
class Drawing:
    """Panels that fill ``columns`` row by row; nothing is drawn before ``figure`` is asked for."""

    name: str
    title: str
    caption: str
    panels: Sequence[Form]
    columns: int = 1
    detail: str = ""

    @property
    def alt(self) -> str:
        """What it shows, for those who do not see it."""
        return f"{self.title}. {self.caption}"

    @cached_property
    def figure(self) -> Figure:
        """The figure, drawn once; series look alike in all panels, with one legend."""
        lines = -(-len(self.panels) // self.columns)
        heights = [
            max(panel.height for panel in self.panels[line * self.columns :][: self.columns])
            for line in range(lines)
        ]
        width = WIDE if self.columns > 1 or any(panel.wide for panel in self.panels) else NARROW
        figure = Figure(figsize=(width, 1.0))
        axes = figure.subplots(lines, self.columns, squeeze=False, height_ratios=heights).ravel()
        self.draw_on(axes)
        for ax, panel in zip(axes, self.panels, strict=False):
            ax.set_title(shorten(panel.title, int(84 / self.columns)))
        for ax in axes[len(self.panels) :]:
            ax.axis("off")
        room = int(width * 11.3)  # characters of this bold type
        text = textwrap.wrap(self.title, room, max_lines=2, placeholder=" …")
        text += [shorten(self.detail, room)] if self.detail else []
        figure.suptitle("\n".join(text), x=0.01, ha="left", fontsize=9.5, fontweight="bold")
        rows = self._legend(figure)
        figure.set_figheight(0.5 + sum(heights) + 0.19 * rows + (0.18 if self.detail else 0))
        return figure

    def draw_on(self, axes: Iterable[Axes]) -> None:
        """Draw the first panels, one on each of these axes, without titles and legend."""
        names = dict.fromkeys(name for panel in self.panels for name in panel.series)
        for ax, panel in zip(axes, self.panels, strict=False):
            # Of more than can be told apart each panel has looks of its own.
            known = names if len(names) <= MAX_LINES else panel.series
            panel.draw(ax, {name: place for place, name in enumerate(known)})

    def _legend(self, figure: Figure) -> int:
        """One legend: of few lines in the first panel, else below all; how many rows are there."""
        handles: dict[str, Any] = {}
        for ax in figure.axes:
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
                handles.setdefault(shorten(label, 44), handle)
        if not handles:
            return 0
        last = ("ideal", "predicted")
        handles = dict(sorted(handles.items(), key=lambda item: item[0] in last))
        if self.columns == 1 and len(handles) <= FEW and isinstance(self.panels[0], Lines):
            figure.axes[0].legend(list(handles.values()), list(handles), loc="best")
            return 0
        inches = 0.55 + 0.07 * max(map(len, handles))
        columns = max(1, min(6, int(figure.get_figwidth() / inches)))
        figure.legend(list(handles.values()), list(handles), loc="outside lower left",
                      ncols=columns, columnspacing=1.2)  # fmt: skip
        return -(-len(handles) // columns)


def drawn(
    results: ExperimentResults,
    name: str,
    what: str,
    note: str,
    panels: Sequence[Form],
    left_out: int = 0,
    **more: Any,
) -> list[Drawing]:
    """A figure of an experiment, in a list; none without a value. ``left_out``: without room."""
    if not any(len(panel.frame) for panel in panels):
        return []
    cut = f" {counted(left_out, 'more point')} only in the tables." if left_out > 0 else ""
    return [Drawing(name, f"{results.name}: {what}{results.mark}", note + cut, panels, **more)]


def evenly(items: Sequence[Any], limit: int = MAX_LINES) -> list[Any]:
    """At most ``limit`` of these, evenly from all."""
    if len(items) <= limit:
        return list(items)
    return [items[round(i * (len(items) - 1) / (limit - 1))] for i in range(limit)]


def labels_of(
    results: ExperimentResults, points: Sequence[Row], room: int = 44
) -> tuple[list[str], str]:
    """Labels of points, and the parameters' names where the labels have no room for them."""
    several = len(results.sources) > 1
    ends = [f" ({point['source']})" if several else "" for point in points]
    whole = [results.describe(point) + end for point, end in zip(points, ends, strict=True)]
    if max(map(len, whole), default=0) <= room:
        return whole, ""
    values = [
        ", ".join(text_of(point.get(name)) for name in results.leaders) + end
        for point, end in zip(points, ends, strict=True)
    ]
    return apart(values, room), ", ".join(results.leaders)


def bounds(measure: Any, row: Row, phase: str) -> tuple[float | None, float | None]:
    """The 95 % interval of a mean; mean -/+ std where there is none, and None where that is 0."""
    mean, low, high = (measure.value(row, stat, phase) for stat in ("mean", "low", "high"))
    if low is not None and high is not None:
        return low, high
    std = measure.value(row, "std", phase)
    if mean is None or std is None or std <= 1e-12 * abs(mean):
        return None, None
    return mean - std, mean + std


def interval(estimate: Any, factor: float = 1.0, name: str = "value") -> Mapping[str, float | None]:
    """An estimate of a declared table as ``name``, ``low`` and ``high`` of a frame's row."""
    ends = {name: estimate.value, "low": estimate.low, "high": estimate.high}
    return {end: None if value is None else value * factor for end, value in ends.items()}
