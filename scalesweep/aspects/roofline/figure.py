"""Rooflines: the layers of a model under what the machine could do, and how they move as the
local batch shrinks."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from scalesweep.analysis.roofline import COMPUTE, LAUNCH, MEMORY, UNRATED, Roof
from scalesweep.aspects.roofline.rooflines import PointRoofline, group_names, rooflines
from scalesweep.aspects.roofline.table import LayerRow
from scalesweep.core.formatting import counted, listed, number, percent, scaled_unit, text_of
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.style import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    WIDE,
    Drawing,
    caption,
    evenly,
    heading,
    log_ticks,
    points_shown,
    tick,
)
from scalesweep.tables.ceilings import DATASHEET, MEASURED

MOST_FIGURES = 12  # rooflines of an experiment
MOST_LABELS = 8
MOST_MOVES = 6  # layers that are followed over the batches
_AREA = 1500.0  # points squared of a layer that takes all the time
_LEAST_AREA = 12.0
_MOVED_AREA = 110.0  # at most, so that dots of one layer do not hide each other
_HALO = withStroke(linewidth=2, foreground="white")  # names stay readable on dots and lines
_INCHES = (8.4, 3.9)  # what the axes take of a figure, about
_CLASSES = {
    COMPUTE: (BLUE, "Compute bound"),
    MEMORY: (ORANGE, "Memory bound"),
    LAUNCH: (GREEN, "Launch bound"),
    UNRATED: (FAINT, "No products"),
}
_MOVES = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9")
_STATED: Mapping[str, tuple[Any, str]] = {
    MEASURED: ("-", "Measured ceilings"),
    DATASHEET: ((0, (5, 2.5)), "Data sheet's peaks"),
}


def roofline_figures(results: ExperimentResults) -> list[Drawing]:
    """For each model (precision, ...) the roofline at its largest local batch, and the moves.

    None where neither ceilings nor peaks are known, or no layer has FLOP.
    """
    groups = [group for group in rooflines(results) if group[0].roofs and _shown(group[0])]
    drawings = []
    for number_, group in enumerate(groups[:MOST_FIGURES], 1):
        name = f"roofline-{number_}" if len(groups) > 1 else "roofline"
        drawings.append(_roofline(results, group[0], name))
        batches = {point.local_batch for point in group}
        if len(batches) > 1:
            drawings.append(_moves(results, group, f"{name}-batch"))
    return drawings


def _shown(point: PointRoofline) -> list[LayerRow]:
    """The layers that a logarithmic picture has a place for, those that take longest first."""
    layers = [layer for layer in point.layers if layer.intensity and layer.flops > 0]
    return sorted(layers, key=lambda layer: -layer.ms.value)


def _title(results: ExperimentResults, point: PointRoofline) -> str:
    """What the roofline is of: the parameters that tell it from others, and its local batch."""
    names = group_names(results)
    parts = [text_of(point.row.get(name)) for name in names]
    if "model" not in names and (model := results.entry["fixed"].get("model")):
        parts.insert(0, str(model))
    return ": ".join(dict.fromkeys([results.name, ", ".join(parts) or "the model"]))


def _roofline(results: ExperimentResults, point: PointRoofline, name: str) -> Drawing:
    """The layers of a point under its roofs: FLOP/s over FLOP/byte, areas by share of the time."""
    shown = _shown(point)
    figure = Figure(figsize=(WIDE, 5.0))
    batch = "" if point.local_batch is None else f" at a local batch of {point.local_batch}"
    head = f"{_title(results, point)}, layers under the roofline{batch}{results.mark}"
    heading(figure, head)
    ax = figure.subplots()
    factor, unit = _axes(ax, [point], [(layer.intensity or 1, layer.flops) for layer in shown])
    _roofs(ax, point, factor, unit)
    for layer in shown:
        colour, _ = _CLASSES.get(layer.bound or "", (FAINT, ""))
        ax.scatter(
            [layer.intensity or 1], [layer.flops * factor], s=_area(layer, point), color=colour,
            alpha=0.55, edgecolors="white", linewidths=0.8, zorder=3,
        )  # fmt: skip
    _labels(ax, point, shown, factor)
    used = [kind for kind in _CLASSES if any(layer.bound == kind for layer in shown)]
    handles = [
        Line2D([], [], linestyle="", marker="o", color=_CLASSES[kind][0], alpha=0.6,
               label=_CLASSES[kind][1])
        for kind in used
    ]  # fmt: skip
    figure.legend(
        handles=[*_roof_handles([point]), *handles], loc="outside lower left", ncols=5,
        columnspacing=1.4,
    )  # fmt: skip
    without = [layer for layer in point.layers if layer not in shown]
    spent = sum(layer.ms.value for layer in without) / sum(layer.ms.value for layer in point.layers)
    text = caption(
        results, [point.row], [],
        "Each dot is a kind of layer, forward and backward; its area is the time that all layers "
        "of the kind take.",
        _ceiling_words(point),
        f"Without FLOP, and so without a place here: {percent(spent)} of the layers' time."
        if without else "",
        "Dots above the roof: arrays that stay in caches, or ceilings measured too low."
        if _above(point, shown) else "",
    )  # fmt: skip
    alt = (
        f"{head}: {counted(len(shown), 'kind')} of layers. The largest is {shown[0].layer}: "
        f"{number(shown[0].flops * factor)} {unit} at {number(shown[0].intensity)} FLOP/byte."
    )
    return Drawing(name, head, text, alt, figure, points_shown(results, [point.row]))


def _moves(results: ExperimentResults, group: Sequence[PointRoofline], name: str) -> Drawing:
    """The layers that take longest, from the largest local batch to the smallest."""
    by_batch: dict[int | None, PointRoofline] = {}
    for point in group:
        by_batch.setdefault(point.local_batch, point)
    points = evenly(list(by_batch.values()), 8)
    first, last = points[0], points[-1]
    names = [layer.layer for layer in _shown(first)[:MOST_MOVES]]
    paths = {
        name_of_layer: [
            (layer, point)
            for point in points
            for layer in _shown(point)
            if layer.layer == name_of_layer and layer.intensity
        ]
        for name_of_layer in names
    }
    figure = Figure(figsize=(WIDE, 5.0))
    batches = f"{first.local_batch} to {last.local_batch}"
    head = (
        f"{_title(results, first)}, layers as the local batch shrinks from {batches}{results.mark}"
    )
    heading(figure, head)
    ax = figure.subplots()
    places = [(layer.intensity or 1, layer.flops) for path in paths.values() for layer, _ in path]
    factor, unit = _axes(ax, points, places)
    shares = {point.ranks_on_node for point in points}
    _roofs(ax, first, factor, unit)
    if len(shares) > 1:
        _roofs(ax, last, factor, unit, faint=True)
    handles = []
    for colour, (name_of_layer, path) in zip(_MOVES, paths.items(), strict=False):
        xs = [layer.intensity or 1 for layer, _ in path]
        ys = [layer.flops * factor for layer, _ in path]
        ax.plot(xs, ys, color=colour, linewidth=1.3, alpha=0.8, zorder=2)
        for place, ((layer, point), x, y) in enumerate(zip(path, xs, ys, strict=True)):
            area = min(_area(layer, point), _MOVED_AREA)
            # Full at the largest batch, hollow at the smallest.
            end = place == len(path) - 1
            ax.scatter(
                [x], [y], s=area, facecolors="white" if end else colour,
                edgecolors=colour, alpha=1.0 if end else 0.75, linewidths=1.3, zorder=3,
            )  # fmt: skip
            if end or not place:
                ax.annotate(
                    str(point.local_batch), (x, y), xytext=(8, -3), textcoords="offset points",
                    fontsize=7.5, ha="left", color=colour, path_effects=[_HALO],
                )  # fmt: skip
        several = f" ({path[0][0].count})" if path[0][0].count > 1 else ""
        handles.append(Line2D([], [], color=colour, marker="o", label=f"{name_of_layer}{several}"))
    figure.legend(
        handles=[*_roof_handles(points), *handles], loc="outside lower left", ncols=4,
        columnspacing=1.4,
    )  # fmt: skip
    text = caption(
        results, [point.row for point in points], [],
        f"The {counted(len(names), 'kind')} of layers that take longest at the largest local "
        f"batch; hollow: at the smallest. Local batches: "
        f"{listed([str(point.local_batch) for point in points], 8)}.",
        _ceiling_words(first),
        f"Faint: the share of a rank where {last.ranks_on_node} share a node."
        if len(shares) > 1 else "",
    )  # fmt: skip
    alt = f"{head}: {', '.join(names)}."
    return Drawing(name, head, text, alt, figure, points_shown(results, [p.row for p in points]))


def _area(layer: LayerRow, point: PointRoofline) -> float:
    return max(_LEAST_AREA, _AREA * layer.ms.value / sum(each.ms.value for each in point.layers))


def _axes(
    ax: Axes, points: Sequence[PointRoofline], places: Sequence[tuple[float, float]]
) -> tuple[float, str]:
    """Logarithmic axes with room for dots, ridges and roofs; factor and unit of the rates."""
    roofs = [roof for point in points for roof in point.roofs.values()]
    xs = [x for x, _ in places] + [roof.ridge for roof in roofs]
    ys = [y for _, y in places] + [roof.flops for roof in roofs]
    factor, unit = scaled_unit("FLOP/s", max(ys))
    left, right = min(xs) / 2, max(xs) * 3
    bottom, top = min(ys) * factor / 2, max(ys) * factor * 2
    ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
    for axis, low, high in ((ax.xaxis, left, right), (ax.yaxis, bottom, top)):
        axis.set_major_locator(FixedLocator(log_ticks(low, high)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(tick))
    ax.set_xlabel("Arithmetic intensity [FLOP/byte]")
    ax.set_ylabel(f"Rate of a rank [{unit}]")
    return factor, unit


def _roofs(ax: Axes, point: PointRoofline, factor: float, unit: str, faint: bool = False) -> None:
    """The roofs over a rank, and the names of their ridges."""
    left, right = ax.get_xlim()
    for stated, roof in point.roofs.items():
        dash, _ = _STATED[stated]
        xs = [left, roof.ridge, right]
        ax.plot(
            xs, [roof.rate(x) * factor for x in xs], linestyle=dash, zorder=1,
            color=FAINT if faint or stated == DATASHEET else INK,
            linewidth=1.0 if faint else 1.6, alpha=0.6 if faint else 1.0,
        )  # fmt: skip
        if not faint:
            label = f"ridge {number(roof.ridge)} FLOP/byte, {number(roof.flops * factor)} {unit}"
            ax.annotate(
                label, (roof.ridge, roof.flops * factor), xytext=(2, 4),
                textcoords="offset points", fontsize=7.5, ha="left",
                color=FAINT if stated == DATASHEET else INK,
            )  # fmt: skip


def _roof_handles(points: Sequence[PointRoofline]) -> Iterator[Line2D]:
    for stated, (dash, label) in _STATED.items():
        if any(stated in point.roofs for point in points):
            colour = FAINT if stated == DATASHEET else INK
            yield Line2D([], [], color=colour, linestyle=dash, linewidth=1.6, label=label)


def _ceiling_words(point: PointRoofline) -> str:
    """What the ceilings are shares of."""
    if MEASURED not in point.roofs:
        return "No ceilings were measured: the data sheet's are rarely attainable."
    if point.ranks_on_node > 1:
        return f"Ceilings are a rank's share of a node: 1/{point.ranks_on_node}."
    return ""


def _above(point: PointRoofline, shown: Sequence[LayerRow]) -> bool:
    """Whether a layer is faster than the measured ceilings allow, by more than 5 %."""
    roof: Roof | None = point.roofs.get(MEASURED)
    return roof is not None and any(
        layer.flops > 1.05 * roof.rate(layer.intensity or 1) for layer in shown
    )


# Begin, end and height of what is drawn, and half of how high it is, as shares of the axes.
_Box = tuple[float, float, float, float]


def _labels(ax: Axes, point: PointRoofline, shown: Sequence[LayerRow], factor: float) -> None:
    """Names of the first few dots next to them, where no other name and no dot is in the way."""
    places = [_place(ax, point, layer, factor) for layer in shown]
    taken: list[_Box] = [(x - right, x + right, y, up) for x, y, right, up in places]
    for roof in point.roofs.values():  # the names of ridges
        x, y = _shares(ax, roof.ridge, roof.flops * factor)
        taken.append((x, x + 0.28, y + 0.03, 0.03))
    for layer, (x, y, right, up) in list(zip(shown, places, strict=True))[:MOST_LABELS]:
        several = f" ×{layer.count}" if layer.count > 1 else ""
        text = f"{layer.layer}{several}"
        width, high = 0.007 * len(text), 0.017
        ways = (
            *((0, -up - high, "center"), (right, 0, "left"), (-right, 0, "right")),
            *((0, up + high, "center"), (0, -up - 3 * high, "center")),
        )
        for dx, dy, align in ways:
            begin = x + dx - {"left": 0.0, "center": width / 2, "right": width}[align]
            here: _Box = (begin, begin + width, y + dy, high)
            inside = begin > 0 and begin + width < 1 and 0.02 < y + dy < 0.98
            if inside and not any(_overlap(here, other) for other in taken):
                ax.text(
                    x + dx, y + dy, text, transform=ax.transAxes, ha=align, va="center",
                    fontsize=7.5, color=INK, zorder=4, path_effects=[_HALO],
                )  # fmt: skip
                taken.append(here)
                break


def _place(
    ax: Axes, point: PointRoofline, layer: LayerRow, factor: float
) -> tuple[float, float, float, float]:
    """Where a dot is and how far its edge is to the right and up, as shares of the axes."""
    x, y = _shares(ax, layer.intensity or 1, layer.flops * factor)
    away = math.sqrt(_area(layer, point) / math.pi) + 2  # points
    return x, y, away / _INCHES[0] / 72, away / _INCHES[1] / 72


def _shares(ax: Axes, x: float, y: float) -> tuple[float, float]:
    """Where a point of logarithmic axes is, as shares of them."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    return math.log(x / left) / math.log(right / left), math.log(y / bottom) / math.log(
        top / bottom
    )


def _overlap(box: _Box, other: _Box) -> bool:
    beside = box[1] <= other[0] or other[1] <= box[0]
    return not beside and abs(box[2] - other[2]) < box[3] + other[3] - 1e-9


FIGURES = (roofline_figures,)
