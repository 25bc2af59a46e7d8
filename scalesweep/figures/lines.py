"""Lines over one parameter: grouped by a second one, or alone."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from scalesweep.core.formatting import PHASES, apart, counted, finite, number, text_of
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.figures.heatmap import MAX_PLANES, Plane, pairs_of, planes_of
from scalesweep.figures.style import (
    BLUE,
    CUT,
    HOLE,
    INK,
    MAX_LINES,
    NARROW,
    ORANGE,
    WIDE,
    Drawing,
    Sketch,
    band_words,
    bounds,
    caption,
    cut_words,
    draw_line,
    heading,
    look,
    parameter_axis,
    sketch,
    tick,
)

MAX_BARS = 40


def group_figures(results: ExperimentResults) -> list[Sketch]:
    """One figure per phase and plane of the first two parameters other than the scale, of which one
    is a number: over A by B, and over B by A."""
    main = results.main
    pairs = [
        sides
        for sides in pairs_of(results)
        if results.scale not in sides and any(map(results.numeric, sides))
    ]
    planes = next((planes for pair in pairs if (planes := planes_of(results, pair))), [])
    if main is None:
        return []
    left_out = max(0, len(planes) - MAX_PLANES)
    return [
        sketch(_group_name(index, phase), _grouped, results, main, phase, index, plane, left_out)
        for index, plane in enumerate(planes[:MAX_PLANES])
        for phase in main.phases
        if any(main.value(row, "mean", phase) is not None for row in plane.cells.values())
    ]


def _group_name(index: int, phase: str) -> str:
    return f"groups{f'-{index + 1}' if index else ''}-{phase}"


def _grouped(
    results: ExperimentResults, main: Measure, phase: str, index: int, plane: Plane, left_out: int
) -> Drawing:
    """Lines over each of the two parameters, with a line per value of the other one."""
    first, second = plane.sides
    words = plane.words(results)
    figure = Figure(figsize=(WIDE, 3.9))
    head = f"{results.name}: {main.label.lower()} by {first} and {second}, {PHASES[phase]}"
    head += f"{f', {words}' if words else ''}{results.mark}"
    heading(figure, head)
    axes = figure.subplots(1, 2, sharey=True)
    values = {
        key: value
        for key, row in plane.cells.items()
        if (value := main.value(row, "mean", phase)) is not None
    }
    swapped = {(b, a): value for (a, b), value in values.items()}
    cut = _group_panel(axes[0], results, (second, first), swapped)
    cut = _group_panel(axes[1], results, (first, second), values) or cut
    axes[0].set_ylabel(main.axis_label)
    axes[0].yaxis.set_major_formatter(FuncFormatter(tick))
    more = counted(left_out, "more combination", "more combinations")
    text = caption(
        results, list(plane.cells.values()), [phase],
        "Coloured: means over repeats. Black: mean over the lines at each value, with a band of "
        "± their standard deviation (ddof 0), which shows the effect of the other parameter, "
        "not the uncertainty of a point. Lines break where a point has no result.",
        f"At most {MAX_LINES} lines are drawn; mean and band include all." if cut else "",
        f"{more} only in the table." if left_out and index == MAX_PLANES - 1 else "",
    )  # fmt: skip
    low, high = min(values.values()), max(values.values())
    alt = (
        f"{head}: lines over {second} grouped by {first} and the other way round; "
        f"values from {number(low)} to {number(high)} {main.unit}."
    )
    return Drawing(_group_name(index, phase), head, text, alt, figure, plane.shown)


def _group_panel(
    ax: Axes, results: ExperimentResults, names: tuple[str, str], values: dict[Key, float]
) -> bool:
    """Lines over ``names[0]``, one per value of ``names[1]``; whether some were left out."""
    over, by = names
    xs = [x for x in results.values(over) if any(key[0] == x for key in values)]
    groups = [g for g in results.values(by) if any(key[1] == g for key in values)]
    positions = parameter_axis(ax, xs, results.label(over))
    handles: list[Any] = []
    labels = apart([text_of(group) for group in groups[:MAX_LINES]], 20)
    for index, (group, label) in enumerate(zip(groups, labels, strict=False)):
        style = look(index)
        ys = [values.get((x, group)) for x in xs]
        draw_line(ax, positions, ys, [None] * len(xs), **style)
        handles.append(Line2D([], [], label=label, **style))
    columns = [[v for g in groups if (v := values.get((x, g))) is not None] for x in xs]
    means = [sum(column) / len(column) for column in columns]
    stds = [
        math.sqrt(sum((v - mean) ** 2 for v in column) / len(column))
        for column, mean in zip(columns, means, strict=True)
    ]
    ax.plot(positions, means, color="black", linestyle=(0, (4, 2)), linewidth=1.8, zorder=4)
    ax.fill_between(
        positions,
        [m - s for m, s in zip(means, stds, strict=True)],
        [m + s for m, s in zip(means, stds, strict=True)],
        color="black", alpha=0.13, linewidth=0, zorder=0,
    )  # fmt: skip
    handles += [
        Line2D([], [], color="black", linestyle=(0, (4, 2)), linewidth=1.8, label="mean"),
        Line2D([], [], color="black", alpha=0.15, linewidth=7, label="± std"),
    ]
    ax.legend(
        handles=handles, title=by, title_fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.02)
    )
    return len(groups) > MAX_LINES


def single_figures(results: ExperimentResults) -> list[Drawing]:
    """One figure for one varying parameter, its phases in panels."""
    main = results.main
    if main is None or not results.grid:
        return []
    name = results.grid[0]
    if all(finite(value) for value in results.values(name)):
        finished = [row for row in results.points if row.get("repeats")]
        return [_single_lines(results, main, name, finished)]
    return [_single_bars(results, main, name, results.points)]


def _title(results: ExperimentResults, main: Measure, name: str) -> str:
    return f"{results.name}: {main.label.lower()} by {name}{results.mark}"


def _single_caption(
    results: ExperimentResults, main: Measure, rows: Sequence[Row], note: str = ""
) -> str:
    band = band_words(main, rows, main.phases[-1])
    holes = [results.describe(dict(zip(results.leaders, key, strict=True))) + f": {state.word}"
             for key, state in results.states.items() if not state.done]  # fmt: skip
    return caption(
        results, rows, main.phases,
        f"Bars: {band}." if band else "",
        next((words for phase in main.phases if (words := _cut_words(main, rows, phase))), ""),
        f"Without a result: {'; '.join(holes[:5])}{' and more' if len(holes) > 5 else ''}."
        if holes else "",
        note,
    )  # fmt: skip


def _alt(main: Measure, head: str, rows: Sequence[Row]) -> str:
    parts = []
    for phase in main.phases:
        means = [v for row in rows if (v := main.value(row, "mean", phase)) is not None]
        parts.append(
            f"{PHASES[phase]} from {number(min(means))} to {number(max(means))} {main.unit}"
        )
    return f"{head}: {'; '.join(parts)}."


def _single_lines(results: ExperimentResults, main: Measure, name: str, rows: list[Row]) -> Drawing:
    """Lines of the main metric over the one parameter that varies, a panel for each phase."""
    head = _title(results, main, name)
    phases = main.phases
    figure = Figure(figsize=(NARROW, 1.3 + 2.1 * len(phases)))
    heading(figure, head)
    axes = figure.subplots(len(phases), 1, sharex=True, squeeze=False)[:, 0]
    by_source: dict[str, dict[Any, Row]] = {}
    for row in rows:
        by_source.setdefault(str(row["source"]), {})[results.key(row, [name])[0]] = row
    values = results.values(name)
    for ax, phase in zip(axes, phases, strict=True):
        positions = parameter_axis(ax, values, results.label(name))
        furthest = _furthest(main, rows, phase)
        for index, (source, by_value) in enumerate(by_source.items()):
            rows_ = [by_value.get(value, {}) for value in values]
            spans = [
                b and (max(b[0], -furthest), min(b[1], furthest))
                for b in (bounds(main, row, phase) for row in rows_)
            ]
            style = look(index) if len(by_source) > 1 else look(0 if phase == "init" else 1)
            means = [main.value(row, "mean", phase) for row in rows_]
            draw_line(ax, positions, means, spans, **style, label=source)
        if len(by_source) > 1:
            ax.legend()
        for position, value in zip(positions, values, strict=True):
            state = results.states.get((value,))
            if state is not None and not state.done:
                ax.axvline(position, color=HOLE, linewidth=0.8, linestyle=(0, (1, 2)))
                ax.text(
                    position, 0.5, state.word, transform=ax.get_xaxis_transform(), rotation=90,
                    ha="center", va="center", fontsize=7.5, color=INK,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
                )  # fmt: skip
        ax.set_title(PHASES[phase])
        ax.set_ylabel(main.axis_label)
        ax.yaxis.set_major_formatter(FuncFormatter(tick))
    for ax in axes[:-1]:
        ax.set_xlabel("")
    text = _single_caption(results, main, rows)
    return Drawing("parameter", head, text, _alt(main, head, rows), figure)


def _furthest(main: Measure, rows: Sequence[Row], phase: str) -> float:
    """Up to where intervals are drawn: a few repeats may have very wide ones."""
    return CUT * max((abs(main.value(row, "mean", phase) or 0.0) for row in rows), default=0.0)


def _cut_words(main: Measure, rows: Sequence[Row], phase: str) -> str:
    spans = [bounds(main, row, phase) for row in rows]
    return cut_words(spans, _furthest(main, rows, phase))


def _label(ax: Axes, x: float, y: float, text: str) -> None:
    """Text just right of a point; a leading space would be lost in SVG."""
    ax.annotate(text, (x, y), xytext=(6, 0), textcoords="offset points", va="center", fontsize=8)


def _single_bars(results: ExperimentResults, main: Measure, name: str, rows: list[Row]) -> Drawing:
    """Bars of the main metric by the one parameter that varies, a panel for each phase."""
    head = _title(results, main, name)
    phases = main.phases
    left_out = max(0, len(rows) - MAX_BARS)
    shown = rows[:MAX_BARS]
    figure = Figure(figsize=(NARROW, len(phases) * (0.75 + 0.27 * len(shown)) + 0.4))
    heading(figure, head)
    axes = figure.subplots(len(phases), 1, squeeze=False)[:, 0]
    several = len(results.sources) > 1
    labels = apart(
        [
            ", ".join([text_of(row[n]) for n in (name, *results.named_with(name))])
            + (f" ({row['source']})" if several and row["source"] else "")
            for row in shown
        ],
        34,
    )
    for ax, phase in zip(axes, phases, strict=True):
        colour = BLUE if phase == "init" else ORANGE
        label = partial(_label, ax)
        top = 0.0
        furthest = _furthest(main, shown, phase)
        for i, row in enumerate(shown):
            mean = main.value(row, "mean", phase)
            if mean is None:
                state = results.states[results.key(row)]
                word = "no value" if state.done else state.word
                label(0.0, i, word)
                continue
            span = bounds(main, row, phase)
            # From zero: the length of a bar is its value.
            ax.barh(i, mean, height=0.62, color=colour, alpha=0.8)
            end = mean
            if span is not None:
                high = min(span[1], furthest)
                ax.hlines(i, max(span[0], 0.0), high, color="black", linewidth=1.2)
                if span[1] > furthest:
                    ax.plot(high, i, color="black", marker=">", markersize=4)
                end = max(mean, high)
            label(end, i, number(mean))
            top = max(top, end)
        ax.set_xlim(0, (top or 1.0) * 1.16)
        ax.set_yticks(range(len(shown)), labels)
        ax.set_ylim(len(shown) - 0.4, -0.6)
        ax.grid(axis="y", visible=False)
        ax.set_title(PHASES[phase])
        ax.set_xlabel(main.axis_label)
        ax.xaxis.set_major_formatter(FuncFormatter(tick))
    note = f"{counted(left_out, 'more value')} only in the table." if left_out else ""
    if (label_ := results.label(name)) != name:  # with a unit, or what follows it
        note = f"Labels: {label_}. {note}".strip()
    text = _single_caption(results, main, rows, note)
    return Drawing("parameter", head, text, _alt(main, head, rows), figure)
