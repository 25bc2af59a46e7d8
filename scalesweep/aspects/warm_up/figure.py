"""The rate of every step from the first one on: how long runs take to become steady."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

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
    log_axis,
    tick,
)

MAX_PANELS = 6
LOG_FROM = 400  # steps: the first ones of more have no room on a linear axis
FAR = 4.0  # times the steady step: where a linear axis of times would hide all others
_DECLARED, _DETECTED = (0, (1, 1)), (0, (5, 1.5))


def warm_up_figures(results: ExperimentResults) -> list[Drawing]:
    """A panel for each of a few points: samples/s (or the time of a step) over the steps."""
    points = results.of(WarmUp)
    if not points:
        return []
    curves: dict[Key, list[WarmUpCurve]] = {}
    for row in results.of(WarmUpCurve):
        curves.setdefault(row.key, []).append(row)
    chosen = evenly([point for point in points if point.key in curves], MAX_PANELS)
    rates = all(point.samples is not None for point in chosen)
    noun = chosen[0].of if len({point.of for point in chosen}) == 1 else "step or epoch"
    unit = _unit(results)
    head = f"{results.name}: {'rate' if rates else 'time'} of each {noun}, warm-up included"
    head += results.mark
    columns = 1 if len(chosen) == 1 else 2 if len(chosen) in (2, 4) else 3
    lines = math.ceil(len(chosen) / columns)
    figure = Figure(figsize=(NARROW if columns == 1 else WIDE, 1.0 + 2.0 * lines))
    names, shared = labels_of(
        results, [point.row for point in chosen], {1: 60, 2: 46, 3: 30}[columns]
    )
    heading(figure, head, shared)
    axes = figure.subplots(lines, columns, squeeze=False)
    for ax in axes.ravel()[len(chosen) :]:
        ax.set_axis_off()
    for ax, point, name in zip(axes.ravel(), chosen, names, strict=False):
        _panel(ax, point, curves[point.key], rates)
        ax.set_title(name, fontsize=8.5, fontweight="normal")
    for ax in axes[:, 0]:
        ax.set_ylabel(f"{unit.capitalize()}/s, all ranks" if rates else f"Time of a {noun} [ms]")
    for place, point in enumerate(chosen):
        if place + columns >= len(chosen):
            axes.ravel()[place].set_xlabel(point.of.capitalize())
    figure.legend(handles=_handles(chosen), loc="outside lower left", ncols=4, columnspacing=1.2)
    text = caption(
        results, [point.row for point in chosen], [],
        f"Median and band from the 10 % to the 90 % quantile over ranks and runs, "
        f"the first {noun} included.",
        f"All {unit} of a {noun} over the time that a rank takes for it." if rates else "",
        "Long runs are thinned: behind step 100, a point is several steps that follow each other."
        if any(row.steps > 1 for point in chosen for row in curves[point.key]) else "",
        *_said(chosen),
        left_out_words(len(points) - len(chosen)),
    )  # fmt: skip
    slowest = max(chosen, key=lambda point: point.detected or 0.0)
    steady = all(point.detected is not None and not point.unsteady for point in chosen)
    alt = f"{head}: {counted(len(chosen), 'panel')}. " + (
        f"The longest warm-up is {slowest.detected:,g} {slowest.of}s, at "
        f"{results.describe(slowest.row)}."
        if slowest.detected else f"The first {noun} is steady in all of them."
        if steady else "Not all runs become steady."
    )  # fmt: skip
    return [Drawing("warm-up", head, text, alt, figure)]


def _unit(results: ExperimentResults) -> str:
    """What is counted: images, where a metric of the experiment is of images."""
    of_images = any("images/s" in measure.unit for measure in results.measures.values())
    return "images" if of_images else "samples"


def _said(points: Sequence[WarmUp]) -> list[str]:
    """What a caption says of the lines."""
    unsteady = sum(point.unsteady > 0 for point in points)
    return [
        "Steady: from where times stay near the median of the second half of the run.",
        f"{counted(unsteady, 'panel')} with runs whose times still change at their end."
        if unsteady else "",
    ]  # fmt: skip


def _handles(points: Sequence[WarmUp]) -> list[Line2D]:
    handles = [Line2D([], [], color=BLUE, label="median"), band_patch("10 % to 90 %")]
    if any(point.declared is not None for point in points):
        words = "end of the declared warm-up"
        handles.append(Line2D([], [], color=FAINT, linestyle=_DECLARED, label=words))
    if any(point.detected is not None for point in points):
        handles.append(Line2D([], [], color=ORANGE, linestyle=_DETECTED, label="steady from here"))
    return handles


def _panel(ax: Axes, point: WarmUp, curve: Sequence[WarmUpCurve], rates: bool) -> None:
    def shown(ms: float) -> float:
        return (point.samples or 0.0) / ms * 1e3 if rates else ms

    steps = [row.step + (row.steps - 1) / 2 for row in curve]
    middle = [shown(row.p50_ms) for row in curve]
    ends = [sorted((shown(row.p10_ms), shown(row.p90_ms))) for row in curve]
    ax.fill_between(
        steps, [low for low, _ in ends], [high for _, high in ends], color=FAINT, alpha=0.35,
        linewidth=0,
    )  # fmt: skip
    few = len(steps) <= 24
    ax.plot(steps, middle, color=BLUE, linewidth=1.0, marker="o" if few else "", markersize=3)
    # Between the last step of the warm-up and the first behind it.
    if point.declared is not None:
        ax.axvline(point.declared + 0.5, color=FAINT, linewidth=1.2, linestyle=_DECLARED)
    if point.detected is not None:
        ax.axvline(point.detected + 0.5, color=ORANGE, linewidth=1.2, linestyle=_DETECTED)
    if point.count > LOG_FROM:
        ax.set_xscale("log")
        ends_of = [10**power for power in range(math.ceil(math.log10(point.count)) + 1)]
        ax.xaxis.set_major_locator(FixedLocator(ends_of))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(tick))
        ax.set_xlim(0.5, point.count + 0.5)
    else:
        ax.set_xlim(0.5 - 0.02 * point.count, point.count + 0.5)
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    if not rates and max(middle) > FAR * (point.steady_ms or middle[-1]):
        log_axis(ax, [value for pair in ends for value in pair])
    else:
        ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter(FuncFormatter(tick))


FIGURES = (warm_up_figures,)
