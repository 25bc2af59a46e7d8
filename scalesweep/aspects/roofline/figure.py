"""Rooflines: the layers of a model under what the machine could do, and how they move as the local
batch shrinks."""

from collections.abc import Sequence
from typing import Literal

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from scalesweep.analysis.roofline import COMPUTE, LAUNCH, MEMORY, UNRATED
from scalesweep.aspects.roofline.rooflines import PointRoofline, group_names, rooflines
from scalesweep.aspects.roofline.table import LayerRow
from scalesweep.core.formatting import counted, number, percent, scaled_unit, text_of
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
    heading,
    log_ticks,
    points_shown,
    tick,
)
from scalesweep.tables.machine import MEASURED

MOST_FIGURES = 12  # rooflines of an experiment
NAMED = 6  # layers with a name, and a path over the local batches
_AREA, _LEAST_AREA = 1500.0, 12.0  # points squared of a layer that takes all the time; the least
_CLASSES = {
    COMPUTE: (BLUE, "Compute bound"),
    MEMORY: (ORANGE, "Memory bound"),
    LAUNCH: (GREEN, "Launch bound"),
    UNRATED: (FAINT, "No products"),
}


def roofline_figures(results: ExperimentResults) -> list[Drawing]:
    """A roofline for each model (precision, ...); none without ceilings, or layers with FLOP."""
    groups = [group for group in rooflines(results) if group[0].roof and _shown(group[0])]
    several = len(groups) > 1
    return [
        _roofline(results, group, f"roofline-{place}" if several else "roofline")
        for place, group in enumerate(groups[:MOST_FIGURES], 1)
    ]


def _shown(point: PointRoofline) -> list[LayerRow]:
    """The layers that a logarithmic picture has a place for, those that take longest first."""
    return [layer for layer in point.layers if layer.intensity and layer.flops > 0]


def _roofline(results: ExperimentResults, group: Sequence[PointRoofline], name: str) -> Drawing:
    """The layers at the largest local batch: FLOP/s over FLOP/byte, areas by share of the time; a
    line follows those that take longest to the smaller batches."""
    first, roof = group[0], group[0].roof
    assert roof is not None
    shown = _shown(first)
    model = results.entry["fixed"].get("model")
    words = [text_of(first.row.get(each)) for each in group_names(results)]
    what = ", ".join(dict.fromkeys(filter(None, [str(model or ""), *words]))) or "the model"
    batch = "" if first.local_batch is None else f" at a local batch of {first.local_batch}"
    head = f"{results.name}: {what}, layers under the roofline{batch}{results.mark}"
    figure = Figure(figsize=(WIDE, 5.0))
    heading(figure, head)
    ax = figure.subplots()
    paths = {
        layer.layer: [
            each for point in group for each in _shown(point) if each.layer == layer.layer
        ]
        for layer in shown[:NAMED]
    }
    places = [*shown, *(layer for path in paths.values() for layer in path)]
    factor, unit = scaled_unit("FLOP/s", max(roof.flops, *(layer.flops for layer in places)))
    xs = [roof.ridge, *(layer.intensity or 1 for layer in places)]
    ys = [roof.flops * factor, *(layer.flops * factor for layer in places)]
    ends = (min(xs) / 2, max(xs) * 3)
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=(min(ys) / 2, max(ys) * 2))
    for axis, low, high in ((ax.xaxis, *ax.get_xlim()), (ax.yaxis, *ax.get_ylim())):
        axis.set_major_locator(FixedLocator(log_ticks(low, high)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(tick))
    ax.set_xlabel("Arithmetic intensity [FLOP/byte]")
    ax.set_ylabel(f"Rate of a rank [{unit}]")
    line = [ends[0], roof.ridge, ends[1]]
    dash: Literal["-", "--"] = "-" if first.step.roof == MEASURED else "--"
    ax.plot(line, [roof.rate(x) * factor for x in line], color=INK, linestyle=dash, linewidth=1.6)
    total = sum(layer.ms.value for layer in first.layers)
    for layer in shown:
        area = max(_LEAST_AREA, _AREA * layer.ms.value / total)
        at = (layer.intensity or 1, layer.flops * factor)
        ax.scatter(*at, s=area, color=_CLASSES.get(layer.bound or "", (FAINT, ""))[0], alpha=0.55)
    for title, path in paths.items():
        moves = [(layer.intensity or 1, layer.flops * factor) for layer in path]
        ax.plot(*zip(*moves, strict=True), color=INK, linewidth=0.8, marker=".", markersize=3)
        several = f" ×{path[0].count}" if path[0].count > 1 else ""
        ax.annotate(f"{title}{several}", moves[0], (4, 4), textcoords="offset points", fontsize=7.5)
    used = {layer.bound for layer in shown}
    ridge = f"Ridge {number(roof.ridge)} FLOP/byte, {number(roof.flops * factor)} {unit}"
    handles = [Line2D([], [], color=INK, linestyle=dash, label=ridge)]
    handles += [
        Line2D([], [], linestyle="", marker="o", color=colour, alpha=0.6, label=label)
        for kind, (colour, label) in _CLASSES.items()
        if kind in used
    ]
    figure.legend(handles=handles, loc="outside lower left", ncols=5, columnspacing=1.4)
    without = sum(layer.ms.value for layer in first.layers if layer not in shown)
    text = caption(
        results, [point.row for point in group], [],
        "Dots: kinds of layers, forward and backward; areas: their time. Lines: where those that "
        f"take longest move over {counted(len(group), 'local batch', 'local batches')}.",
        "" if first.step.roof == MEASURED else "The ceilings are a data sheet's.",
        f"Without FLOP, and so without a place: {percent(without / total)} of the layers' time."
        if without else "",
    )  # fmt: skip
    alt = (
        f"{head}: {counted(len(shown), 'kind')} of layers. The largest is {shown[0].layer}: "
        f"{number(shown[0].flops * factor)} {unit} at {number(shown[0].intensity)} FLOP/byte."
    )
    where = points_shown(results, [point.row for point in group])
    return Drawing(name, head, text, alt, figure, where)


FIGURES = (roofline_figures,)
