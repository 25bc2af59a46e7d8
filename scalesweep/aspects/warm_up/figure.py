"""The time of every step from the first one on: how long runs take to become steady."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from scalesweep.aspects.warm_up.table import WarmUp, WarmUpCurve
from scalesweep.core.formatting import counted
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.figures.style import (
    BLUE,
    FAINT,
    NARROW,
    ORANGE,
    WIDE,
    Drawing,
    band_patch,
    caption,
    evenly,
    heading,
    labels_of,
    left_out_words,
    spread_axis,
)
from scalesweep.findings.base import point_key

MAX_PANELS = 6
LOG_FROM = 400  # steps: the first ones of more have no room on a linear axis
_LINES = {
    "declared": (FAINT, (0, (1, 1)), "end of the declared warm-up"),
    "detected": (ORANGE, (0, (5, 1.5)), "steady from here"),
}


def warm_up_figures(results: ExperimentResults) -> list[Drawing]:
    """A panel for each of a few points: the time of a step over the steps."""
    curves: dict[Key, list[WarmUpCurve]] = {}
    for row in results.of(WarmUpCurve):
        curves.setdefault(point_key(results, {**row.point, "source": row.source}), []).append(row)
    points = results.of(WarmUp)
    if not points:
        return []
    chosen = evenly(points, MAX_PANELS)
    noun = chosen[0].of
    head = f"{results.name}: time of each {noun}, warm-up included{results.mark}"
    columns = min(len(chosen), 3)
    lines = math.ceil(len(chosen) / columns)
    figure = Figure(figsize=(NARROW if columns == 1 else WIDE, 1.0 + 2.0 * lines))
    names, shared = labels_of(results, [point.row for point in chosen], 90 // columns - 10)
    heading(figure, head, shared)
    axes = figure.subplots(lines, columns, squeeze=False)
    for ax in axes.ravel()[len(chosen) :]:
        ax.set_axis_off()
    for ax, point, name in zip(axes.ravel(), chosen, names, strict=False):
        _panel(ax, point, curves[point_key(results, point.row)])
        ax.set_title(name, fontsize=8.5, fontweight="normal")
    for ax in axes[:, 0]:
        ax.set_ylabel(f"Time of a {noun} [ms]")
    handles = [Line2D([], [], color=BLUE, label="median"), band_patch("10 % to 90 %")]
    for kind, (colour, dashes, words) in _LINES.items():
        if any(getattr(point, kind) is not None for point in chosen):
            handles.append(Line2D([], [], color=colour, linestyle=dashes, label=words))
    figure.legend(handles=handles, loc="outside lower left", ncols=4, columnspacing=1.2)
    unsteady = sum(point.unsteady > 0 for point in chosen)
    text = caption(
        results, [point.row for point in chosen], [],
        "Median and 10 % to 90 % over ranks and runs; behind step 100 a point may be several.",
        "Steady: from where times stay near the median of the second half of the run.",
        f"{counted(unsteady, 'panel')} with runs whose times still change at their end."
        if unsteady else "",
        left_out_words(len(points) - len(chosen)),
    )  # fmt: skip
    slowest = max(chosen, key=lambda point: point.detected or 0.0)
    alt = f"{head}: {counted(len(chosen), 'panel')}. "
    alt += f"{counted(unsteady, 'point')} not steady. " if unsteady else ""
    alt += f"The longest warm-up is {counted(round(slowest.detected or 0), noun)}, at "
    alt += f"{results.describe(slowest.row)}."
    return [Drawing("warm-up", head, text, alt, figure)]


def _panel(ax: Axes, point: WarmUp, curve: Sequence[WarmUpCurve]) -> None:
    steps = [row.step + (row.steps - 1) / 2 for row in curve]
    low, high = [row.p10_ms for row in curve], [row.p90_ms for row in curve]
    ax.fill_between(steps, low, high, color=FAINT, alpha=0.35, linewidth=0)
    marker = "o" if len(steps) <= 24 else ""
    ax.plot(steps, [row.p50_ms for row in curve], color=BLUE, lw=1.0, marker=marker, markersize=3)
    for kind, (colour, dashes, _) in _LINES.items():
        if (count := getattr(point, kind)) is not None:
            # Between the last step of the warm-up and the first behind it.
            ax.axvline(count + 0.5, color=colour, linewidth=1.2, linestyle=dashes)
    ax.set_xscale("log" if point.count > LOG_FROM else "linear")
    ax.set_xlim(0.5, point.count + 0.5)
    ax.set_xlabel(point.of.capitalize())
    spread_axis(ax, low + high)


FIGURES = (warm_up_figures,)
