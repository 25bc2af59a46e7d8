"""Stacked bars: one for each point, the same parts in the same colours, a legend below."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from scalesweep.core.formatting import counted, finite, number, percent, scaled_unit
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.figures.style import (
    FAINT,
    INK,
    WIDE,
    Drawing,
    caption,
    evenly,
    heading,
    labels_of,
    left_out_words,
    legend_columns,
    points_shown,
    tick,
)

MAX_BARS = 24
LABELLED = 0.07  # a part of the longest bar that has room for its number
Look = tuple[str, str]  # colour and hatch


def rows_by_bar(results: ExperimentResults, table: str, column: str) -> list[list[Row]]:
    """The rows of a table with a number above 0 in ``column``, by point and source."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in results.rows(table):
        if finite(row.get(column)) and row[column] > 0:
            groups.setdefault((*results.key(row, results.axes), row["source"]), []).append(row)
    return list(groups.values())


class Bar(NamedTuple):
    """A point as a bar: its ``parts``, a ``mark`` across it, a strip ``within`` some parts."""

    row: Row
    parts: dict[str, float]
    mark: float | None = None
    within: Mapping[str, float] = {}


def point_bars(
    results: ExperimentResults,
    name: str,
    title: str,
    axis: str,
    unit: str,
    bars: Sequence[Bar],
    looks: Mapping[str, Look],
    words: Mapping[str, str],
    notes: Sequence[str] = (),
    marks: str = "",
    strips: str = "",
) -> list[Drawing]:
    """The figure ``name`` with a bar for each point, of at most MAX_BARS; none without bars.

    ``axis``: what is measured, in ``unit``; ``looks`` has the parts in their order, ``words`` what
    they are called, ``marks`` and ``strips`` say what those are.
    """
    if not bars:
        return []
    drawn = evenly(bars, MAX_BARS)
    top = max([sum(v for v in b.parts.values() if v > 0) for b in drawn] + [
        bar.mark for bar in drawn if bar.mark
    ] + [1e-9])  # fmt: skip
    bottom = min(0.0, *(sum(v for v in bar.parts.values() if v < 0) for bar in drawn))
    factor, unit = (1e-3, "s") if unit == "ms" and top >= 1e3 else scaled_unit(unit, top)
    shown = {part: look for part, look in looks.items() if any(part in b.parts for b in drawn)}

    def scaled(values: Mapping[str, float]) -> dict[str, float]:
        return {part: value * factor for part, value in values.items()}

    head = f"{results.name}: {title}{results.mark}"
    figure, ax = stacked_bars(
        head,
        labels_of(results, [bar.row for bar in drawn], 44),
        [scaled(bar.parts) for bar in drawn],
        shown,
        {words[part]: look for part, look in shown.items()},
        (bottom * factor, top * factor),
        (marks, [bar.mark and bar.mark * factor for bar in drawn])
        if any(bar.mark for bar in drawn) else None,
        (strips, [scaled(bar.within) for bar in drawn]) if any(b.within for b in drawn) else None,
    )  # fmt: skip
    ax.set_xlabel(f"{axis} [{unit}]")
    largest, part = max(
        ((bar, part) for bar in drawn for part in bar.parts),
        key=lambda each: each[0].parts[each[1]],
    )
    share = percent(largest.parts[part] / sum(largest.parts.values()))
    alt = f"{head}: {counted(len(drawn), 'bar')}. The largest part is {words[part].lower()} at "
    alt += f"{results.describe(largest.row)}: {share} of its bar."
    rows = [bar.row for bar in bars]
    text = caption(results, rows, [], *notes, left_out_words(len(bars) - len(drawn)))
    return [Drawing(name, head, text, alt, figure, points_shown(results, rows))]


def stacked_bars(
    head: str,
    labels: tuple[list[str], str],
    bars: Sequence[Mapping[str, float]],
    looks: Mapping[str, Look],
    legend: Mapping[str, Look],
    reach: tuple[float, float],
    line: tuple[str, Sequence[float | None]] | None = None,
    within: tuple[str, Sequence[Mapping[str, float]]] | None = None,
) -> tuple[Figure, Axes]:
    """A figure of bars below each other, its legend below them, and its axes without a label.

    ``labels``: of the bars, and what all of them share. ``legend``: what a look means. ``reach``:
    what the bars span, negative parts to the left of 0. ``line``: a mark across each bar that has
    one, and what it means. ``within``: what a strip along the lower edge of parts means, and how
    far it goes in those of each bar.
    """
    names, shared = labels
    words = [*legend, *([line[0]] if line else []), *([within[0]] if within else [])]
    columns = legend_columns(figure := Figure(figsize=(WIDE, 1.0)), words)
    rows = -(-len(words) // columns)
    figure.set_figheight(1.05 + 0.34 * len(bars) + (0.2 if shared else 0) + 0.2 * rows)
    heading(figure, head, shared)
    ax = figure.subplots()
    for place, parts in enumerate(bars):
        _bar(ax, place, parts, looks, reach[1], within[1][place] if within else {})
    ax.set_yticks(range(len(bars)), names)
    ax.set_ylim(len(bars) - 0.4, -0.6)
    ax.set_xlim(reach[0] * 1.1, reach[1] * 1.12)
    ax.grid(axis="y", visible=False)
    ax.xaxis.set_major_formatter(FuncFormatter(tick))
    handles: list[Any] = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=_edge(colour), linewidth=0.4, label=word)
        for word, (colour, hatch) in legend.items()
    ]
    if line:
        style = {"color": INK, "linewidth": 1.6}
        for place, value in enumerate(line[1]):
            if value is not None:
                ax.plot([value, value], [place - 0.44, place + 0.44], **style)  # type: ignore[arg-type]
        handles += ax.plot([], [], label=line[0], **style)  # type: ignore[arg-type]
    if within:
        handles.append(Patch(facecolor=INK, edgecolor="white", linewidth=0.4, label=within[0]))
    figure.legend(handles=handles, loc="outside lower left", ncols=columns, columnspacing=1.2)
    return figure, ax


def _edge(colour: str) -> str:
    return FAINT if colour == "#ffffff" else "white"


def _bar(
    ax: Axes,
    place: int,
    parts: Mapping[str, float],
    looks: Mapping[str, tuple[str, str]],
    top: float,
    within: Mapping[str, float],
) -> None:
    """Draw parts next to each other, negative ones to the left of zero, and their sum at the end.

    A part that takes a good share of ``top`` has its number in it; one that is in ``within`` a
    strip of that length at its lower edge.
    """
    left = below = 0.0
    for name, (colour, hatch) in looks.items():
        value = parts.get(name)
        if value is None:
            continue
        begin = left if value >= 0 else below
        ax.barh(
            place, value, left=begin, height=0.68, color=colour, hatch=hatch,
            edgecolor=_edge(colour), linewidth=0.4,
        )  # fmt: skip
        if within.get(name, 0.0) > 0:
            ax.barh(
                place + 0.29, within[name], left=begin, height=0.1, color=INK, edgecolor="white",
                linewidth=0.4,
            )  # fmt: skip
        if value >= LABELLED * top and not hatch:
            ax.text(
                begin + value / 2, place, number(value), ha="center", va="center", fontsize=8,
                color=_ink(colour),
            )  # fmt: skip
        left, below = (left + value, below) if value >= 0 else (left, below + value)
    ax.annotate(
        number(left + below), (left, place), xytext=(4, 0), textcoords="offset points", va="center",
        fontsize=8, color=INK,
    )  # fmt: skip


def _ink(colour: str) -> str:
    red, green, blue = to_rgb(colour)
    return "#000000" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else "#ffffff"
