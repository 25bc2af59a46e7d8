"""The figures of layouts: the best of each scale, and what it costs in memory."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from scalesweep.aspects.layouts.effects_figure import effect_figures
from scalesweep.aspects.layouts.table import BestLayout, LayoutPoint
from scalesweep.aspects.layouts.words import best_layouts, layouts_that_ran
from scalesweep.core.formatting import counted, number
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.style import (
    BLUE,
    FAINT,
    GREEN,
    HOLE,
    INK,
    ORANGE,
    WIDE,
    Drawing,
    caption,
    heading,
    log_axis,
    points_shown,
    scale_axis,
    scatter,
    tick,
)

MAX_SETTINGS = 4  # what is computed: panels of the first figure, and figures of memory
MAX_PANELS = 8  # scales of a figure of memory, the largest
_COLUMNS = 4
_DOT = 9  # area of a layout's dot, points^2

_Ran = Mapping[str, Mapping[int, Sequence[LayoutPoint]]]


def layout_figures(results: ExperimentResults) -> list[Drawing]:
    """The best of each scale beside the median and the layout that was carried over."""
    settings, ran = _shown(results)
    several = any(len([row for row in rows if row.layout]) > 1 for rows in settings.values())
    if results.main is None or not several:
        return []
    return [_by_scale(results, results.main, settings, ran)]


def front_figures(results: ExperimentResults) -> list[Drawing]:
    """Of each of what is computed the layouts of each scale against their memory."""
    settings, ran = _shown(results)
    main = results.main
    if main is None:
        return []
    drawings = [
        _against_memory(results, main, setting, rows, ran[setting], place)
        for place, (setting, rows) in enumerate(settings.items(), 1)
    ]
    return [drawing for drawing in drawings if drawing is not None]


def _shown(results: ExperimentResults) -> tuple[dict[str, Sequence[BestLayout]], _Ran]:
    """What is computed and has a layout that ran, as far as figures have room: the best of its
    scales, and all that ran."""
    settings = {
        setting: rows
        for setting, rows in best_layouts(results).items()
        if any(row.layout is not None for row in rows)
    }
    ran: dict[str, dict[int, list[LayoutPoint]]] = {}
    for layout in layouts_that_ran(results):
        ran.setdefault(layout.setting, {}).setdefault(layout.scale, []).append(layout)
    return dict(list(settings.items())[:MAX_SETTINGS]), ran


def _by_scale(
    results: ExperimentResults,
    main: Measure,
    settings: Mapping[str, Sequence[BestLayout]],
    ran: _Ran,
) -> Drawing:
    """A column for each of what is computed: the metric, below it the utilisation."""
    mfu = next((rows[0].utilisation_metric for rows in settings.values()), None)
    measure = results.measures.get(mfu) if mfu else None
    height = 3.9 + (1.6 if measure else 0)
    figure = Figure(figsize=(WIDE if len(settings) > 1 else WIDE * 0.62, height))
    head = f"{results.name}: best layout of each scale{results.mark}"
    heading(figure, head, "")
    ratios = [2.2, 1] if measure else [1]
    grid = figure.subplots(
        len(ratios), len(settings), squeeze=False, sharex=True, sharey="row", height_ratios=ratios
    )
    spans = [
        layout.per_rank * main.factor
        for setting in settings
        for layouts in ran[setting].values()
        for layout in layouts
    ]
    scales = sorted({row.scale for rows in settings.values() for row in rows})
    for column, (setting, rows) in enumerate(settings.items()):
        top = grid[0, column]
        _draw_scales(top, main, rows, ran[setting])
        top.set_title(setting or "All layouts", fontsize=8.5, fontweight="normal")
        if measure:
            below = grid[1, column]
            known = [(r.scale, r.utilisation * measure.factor) for r in rows if r.utilisation]
            below.plot(*zip(*known, strict=True), color=BLUE, marker="o") if known else None
    log_axis(grid[0, 0], spans)
    if measure:
        grid[1, 0].set_ylim(bottom=0, auto=True)
        if not measure.unit:
            grid[1, 0].yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
    for ax in grid[-1]:
        scale_axis(ax, scales, results.scale)
    each = f" per {results.scale.removesuffix('s')}" if _divided(ran) else ""
    grid[0, 0].set_ylabel(f"{main.label}{each}" + (f" [{main.unit}]" if main.unit else ""))
    if measure:
        grid[1, 0].set_ylabel(measure.axis_label)
    figure.legend(handles=_legend(settings), loc="outside lower left", ncols=4, columnspacing=1.2)
    points = [row.row for rows in settings.values() for row in rows if row.layout]
    text = caption(
        results, points, [(points and next(iter(settings.values()))[0].phase) or "run"],
        "Each grey dot is a layout that ran. "
        + ("Below: the utilisation of the best. " if measure else "")
        + "Carried over: the best layout of the next smaller scale, with more data-parallel ranks.",
    )  # fmt: skip
    alt = f"{head}: " + "; ".join(
        f"{setting or 'best'} {_value(main, last)} at {results.scaled(last.scale)}"
        for setting, rows in settings.items()
        if (last := [row for row in rows if row.layout][-1])
    )
    return Drawing("layouts-scale", head, text, f"{alt}.", figure, points_shown(results, points))


def _value(main: Measure, row: BestLayout) -> str:
    value = row.value.value * main.factor if row.value else math.nan
    return f"{number(value)} {main.unit}".strip()


def _divided(ran: _Ran) -> bool:
    """Whether the metric is of all ranks, and drawn of each."""
    return any(
        layout.per_rank != layout.value
        for scales in ran.values()
        for layouts in scales.values()
        for layout in layouts
    )


def _draw_scales(
    ax: Axes,
    main: Measure,
    rows: Sequence[BestLayout],
    ran: Mapping[int, Sequence[LayoutPoint]],
) -> None:
    """Dots of all layouts, lines of the best, of the median, and of those carried over."""
    dots = [
        (float(scale), layout.per_rank * main.factor) for scale, of in ran.items() for layout in of
    ]
    scatter(ax, dots, HOLE, _DOT, 0.35, zorder=1)
    best = [(scale, of[0].per_rank * main.factor) for scale, of in ran.items()]
    medians = [(r.scale, ran[r.scale][0].per_rank * main.factor * _times(main, r.median))
               for r in rows if r.layout]  # fmt: skip
    carried = [(r.scale, ran[r.scale][0].per_rank * main.factor * _times(main, 1 - r.carried_loss))
               for r in rows if r.carried_loss is not None]  # fmt: skip
    ax.plot(*zip(*medians, strict=True), color=FAINT, linestyle=":", marker="_", zorder=2)
    if carried:
        ax.plot(*zip(*carried, strict=True), "D", color=ORANGE, markerfacecolor="white", zorder=3)
    ax.plot(*zip(*best, strict=True), color=BLUE, marker="o", zorder=4)


def _times(main: Measure, share: float) -> float:
    """A value over the best one, of its share of the best."""
    return share if main.higher else 1 / share


def _legend(settings: Mapping[str, Sequence[BestLayout]]) -> list[Line2D]:
    handles = [
        Line2D([], [], color=BLUE, marker="o", label="best"),
        Line2D([], [], color=FAINT, linestyle=":", marker="_", label="median"),
    ]
    if any(row.carried_loss is not None for rows in settings.values() for row in rows):
        label = "carried over from the next smaller scale"
        marks: dict[str, Any] = {"color": ORANGE, "markerfacecolor": "white", "linestyle": "none"}
        handles.append(Line2D([], [], marker="D", label=label, **marks))
    return [*handles, Line2D([], [], color=HOLE, marker="o", linestyle="none", label="a layout")]


def _against_memory(
    results: ExperimentResults,
    main: Measure,
    setting: str,
    rows: Sequence[BestLayout],
    ran: Mapping[int, Sequence[LayoutPoint]],
    place: int,
) -> Drawing | None:
    """A panel for each scale: the metric of a rank over its memory, with the front."""
    measure = results.measures.get(str(rows[0].memory_metric))
    known = {
        scale: [layout for layout in layouts if layout.memory is not None]
        for scale, layouts in sorted(ran.items())[-MAX_PANELS:]
    }
    known = {scale: layouts for scale, layouts in known.items() if len(layouts) > 1}
    if measure is None or not known:
        return None
    columns = min(_COLUMNS, len(known))
    lines = math.ceil(len(known) / columns)
    figure = Figure(figsize=(WIDE if columns > 2 else WIDE * 0.62, 0.9 + 2.2 * lines))
    what = f", {setting}" if setting else ""
    head = f"{results.name}: {main.label.lower()} against memory{what}{results.mark}"
    heading(figure, head, "")
    grid = figure.subplots(lines, columns, squeeze=False, sharex=True)
    for ax in grid.flat[len(known) :]:
        ax.set_visible(False)
    for ax, (scale, layouts) in zip(grid.flat, known.items(), strict=False):
        _front(ax, main, measure, layouts)
        ax.set_title(results.scaled(scale), fontsize=8.5, fontweight="normal")
        ax.xaxis.set_major_formatter(FuncFormatter(tick))
        ax.xaxis.set_tick_params(labelbottom=True)
        ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        ax.yaxis.set_major_formatter(FuncFormatter(tick))
        ax.set_ylim(bottom=0)
    grid[0, 0].set_xlim(left=0)
    figure.supxlabel(measure.axis_label, fontsize=9, color=INK)
    each = f" per {results.scale.removesuffix('s')}" if _divided({setting: ran}) else ""
    unit = f" [{main.unit}]" if main.unit else ""
    figure.supylabel(f"{main.label}{each}{unit}", fontsize=9, color=INK)
    points = [layout.row for layouts in known.values() for layout in layouts]
    text = caption(
        results, points, [rows[0].phase],
        "Green: the front, layouts that no other one of their scale beats with as little memory. "
        "Each scale has a vertical axis of its own.",
    )  # fmt: skip
    fronts = [sum(bool(layout.front) for layout in layouts) for layouts in known.values()]
    alt = f"{head}: {counted(len(points), 'layout')}, {sum(fronts)} of them on the fronts."
    return Drawing(f"layouts-memory-{place}", head, text, alt, figure, {"where": {}})


def _front(ax: Axes, main: Measure, measure: Measure, layouts: Sequence[LayoutPoint]) -> None:
    """Dots of the layouts of a scale, and their front as steps."""

    def places(of: Sequence[LayoutPoint]) -> list[tuple[float, float]]:
        pairs = [
            ((layout.memory or 0.0) * measure.factor, layout.per_rank * main.factor)
            for layout in of
        ]
        return sorted(pairs)

    rest = places([layout for layout in layouts if not layout.front])
    front = places([layout for layout in layouts if layout.front])
    scatter(ax, rest, HOLE, _DOT, 0.5)
    x, y = zip(*front, strict=True)
    ax.plot(x, y, color=GREEN, marker="o", markersize=3.5, lw=1.1, drawstyle="steps-post")


FIGURES = (layout_figures, effect_figures, front_figures)
