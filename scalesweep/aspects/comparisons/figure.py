"""The values of a parameter side by side, ratios of two of them and of two sites, and efficiency
against the size of the model."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from scalesweep.analysis.factors import planned_points
from scalesweep.analysis.metrics import column
from scalesweep.analysis.stats import SIGNIFICANT
from scalesweep.config.parameter import VARIABLE_PREFIX
from scalesweep.core.formatting import PHASES, counted, finite, number, percent, shorten, text_of
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.figures.style import (
    COLOURS,
    CUT,
    FAINT,
    INK,
    NARROW,
    WIDE,
    Drawing,
    Sketch,
    bounds,
    caption,
    cut_words,
    heading,
    in_lines,
    look,
    sketch,
    tick,
)
from scalesweep.tables.comparisons import (
    BEST,
    RATIO,
    REFERENCE,
    SITE,
    Choice,
    Comparison,
    choice_of,
    compared_parameters,
)

MAX_PARAMETERS, MAX_PANELS, MAX_BARS, MAX_RATIOS = 4, 12, 40, 36
ROOM = 40  # characters of a label in front of ratios
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "oo")
SIZE = "model_parameters"


@dataclass(frozen=True)
class Bar:
    """A bar: label, mean, its span (None: unknown), its look, and where there is no mean, why."""

    label: str
    mean: float | None
    span: tuple[float, float] | None
    look: int
    note: str = ""


def comparison_figures(results: ExperimentResults) -> list[Sketch]:
    """Bars for each parameter whose values are names or switches, and the ratios of two values."""
    main = results.main
    if main is None:
        return []
    sketches: list[Sketch] = []
    for names in compared_parameters(results.entry)[:MAX_PARAMETERS]:
        groups = _groups(results, names)
        for phase in main.phases:
            part = f"{_file_part(', '.join(names))}-{phase}"
            if any(main.value(row, "mean", phase) for rows in groups.values() for row in rows):
                made = sketch(f"compare-{part}", _bars, results, main, names, phase, groups)
                sketches.append(made)
            if rows := _compared(results, main, names, phase):
                sketches.append(sketch(f"ratio-{part}", _ratios, results, main, names, phase, rows))
    return sketches


def _values(results: ExperimentResults, names: Choice) -> list[Any]:
    """Planned values of a choice, in plan order."""
    return list(dict.fromkeys(choice_of(names, point) for point in planned_points(results.entry)))


def _groups(results: ExperimentResults, names: Choice) -> dict[Key, list[Row]]:
    """Points of one source that differ in one choice only, in the order of its values.

    Those without a result are in every such group.
    """
    rest = [other for other in results.leaders if other not in names]
    groups: dict[Key, list[Row]] = {}
    without: dict[Key, list[Row]] = {}
    for row in results.points:
        key = results.key(row, rest)
        if row.get("repeats"):
            groups.setdefault((*key, row["source"]), []).append(row)
        else:
            without.setdefault(key, []).append(row)
    order = {value: place for place, value in enumerate(_values(results, names))}
    return {
        key: sorted(
            [*rows, *without.get(key[:-1], [])], key=lambda row: order[choice_of(names, row)]
        )
        for key, rows in groups.items()
        if len(rows) + len(without.get(key[:-1], [])) > 1
    }


def _bars(
    results: ExperimentResults,
    main: Measure,
    names: Choice,
    phase: str,
    groups: Mapping[Key, list[Row]],
) -> Drawing:
    """Bars of the main metric by the value of a choice, a panel for each of ``groups``; clear bests
    are marked."""
    rest = [other for other in results.leaders if other not in names]
    name = ", ".join(names)
    best = _clear_bests(results, name, phase, rest)
    looks = {value: place for place, value in enumerate(_values(results, names))}
    panels: dict[str, list[Bar]] = {}
    for key, rows in list(groups.items())[:MAX_PANELS]:
        title = results.describe(rows[0], rest) if rest else ""
        title += f" ({key[-1]})" if len(results.sources) > 1 else ""
        values = [choice_of(names, row) for row in rows]
        panels[title] = [
            _bar(results, main, row, names, phase, looks[value], best.get(key) == text_of(value))
            for row, value in zip(rows[:MAX_BARS], values[:MAX_BARS], strict=True)
        ]
    head = (
        f"{results.name}: {main.label.lower()} by {name}{_phase_words(main, phase)}{results.mark}"
    )
    figure = _panels_of_bars(head, panels, main.axis_label)
    left_out = len(groups) - len(panels)
    text = caption(
        results, [row for rows in groups.values() for row in rows], [phase],
        "Each panel has its own scale. Black lines: 95 % interval of the mean, or ± std for one "
        "repeat; an arrow: the line continues.",
        "Bold: best, its interval clear of all others in its panel." if best else
        "No value is clear of all others in its panel.",
        f"{counted(left_out, 'more panel')} only in the table." if left_out > 0 else "",
        f"At most {MAX_BARS} bars a panel; the table has all values." if len(looks) > MAX_BARS
        else "",
    )  # fmt: skip
    alt = f"{head}: bars in {counted(len(panels), 'panel')}, {len(looks)} values each."
    shows = {"parameter": name}
    return Drawing(f"compare-{_file_part(name)}-{phase}", head, text, alt, figure, shows)


def _clear_bests(
    results: ExperimentResults, name: str, phase: str, rest: Sequence[str]
) -> dict[Key, str]:
    """The best value of each group in which it is clear of each other one."""
    groups: dict[Key, dict[str, bool]] = {}
    for row in results.of(Comparison):
        if (row.parameter, row.phase, row.against, row.statistic) == (name, phase, BEST, None):
            clear = groups.setdefault(
                (*results.key(row.point, rest), row.source), {row.value: True}
            )
            clear[row.value] &= row.p is not None and row.p <= SIGNIFICANT
    return {key: value for key, of in groups.items() for value, clear in of.items() if clear}


def _file_part(name: str) -> str:
    return re.sub(r"\W", "-", name, flags=re.ASCII)


def _phase_words(main: Measure, phase: str) -> str:
    return f", {PHASES[phase]}" if len(main.phases) > 1 else ""


def _bar(
    results: ExperimentResults,
    main: Measure,
    row: Row,
    names: Choice,
    phase: str,
    look_: int,
    best: bool,
) -> Bar:
    followers = [other for name in names for other in results.named_with(name)]
    label = ", ".join(text_of(row[name]) for name in (*names, *followers))
    mean = main.value(row, "mean", phase)
    span = bounds(main, row, phase)
    state = results.states.get(results.key(row))
    note = "best" if best else ""
    if mean is None and state is not None:
        note = "no value" if state.done else state.word.lower().replace("_", " ")
    return Bar(label, mean, span and (span[0], span[1]), look_, note)


def _panels_of_bars(head: str, panels: Mapping[str, Sequence[Bar]], unit: str) -> Figure:
    columns = 1 if len(panels) == 1 else 2
    lines = -(-len(panels) // columns)
    most = max(map(len, panels.values()))
    figure = Figure(figsize=(NARROW if columns == 1 else WIDE, 0.5 + lines * (0.75 + 0.25 * most)))
    heading(figure, head)
    axes = figure.subplots(lines, columns, squeeze=False)
    for ax in axes.flat[len(panels) :]:
        ax.axis("off")
    for index, (ax, (title, bars)) in enumerate(zip(axes.flat, panels.items(), strict=False)):
        _panel(ax, title, bars)
        if index >= len(panels) - columns:
            ax.set_xlabel(unit)
    return figure


def _panel(ax: Axes, title: str, bars: Sequence[Bar]) -> None:
    """Draw the bars of one panel, with their values; intervals are cut where they would dwarf the
    bars."""
    top = 0.0
    # A few repeats have wide intervals, which must not make the bars too short to see.
    furthest = CUT * max(bar.mean or 0.0 for bar in bars)
    for i, bar in enumerate(bars):
        end = bar.mean or 0.0
        if bar.mean is not None:
            # From zero: the length of a bar is its value.
            ax.barh(
                i, bar.mean, height=0.66, color=COLOURS[bar.look % len(COLOURS)], alpha=0.85,
                edgecolor="white", linewidth=0, hatch=HATCHES[bar.look % len(HATCHES)],
            )  # fmt: skip
            if bar.span is not None:
                low, high = max(bar.span[0], 0.0), min(bar.span[1], furthest)
                ax.hlines(i, low, high, color="black", linewidth=1.2)
                if bar.span[1] > furthest:
                    ax.plot(high, i, color="black", marker=">", markersize=4)
                end = max(end, high)
        words = " ".join([*([number(bar.mean)] if bar.mean is not None else []), bar.note])
        ax.annotate(
            words.strip(), (end, i), xytext=(5, 0), textcoords="offset points", va="center",
            fontsize=8, fontweight="bold" if bar.note == "best" else "normal",
        )  # fmt: skip
        top = max(top, end)
    ax.set_xlim(0, (top or 1.0) * 1.28)
    ax.set_yticks(range(len(bars)), [in_lines(bar.label, 26) for bar in bars])
    ax.set_ylim(len(bars) - 0.4, -0.6)
    ax.grid(axis="y", visible=False)
    ax.xaxis.set_major_formatter(FuncFormatter(tick))
    if title:
        ax.set_title(in_lines(title, 46), fontsize=8.5)


def _compared(
    results: ExperimentResults, main: Measure, names: Choice, phase: str
) -> list[Comparison]:
    """Rows of the table of comparisons, where one value is compared with another at several points
    of the rest; else none."""
    rows = [
        row for row in results.of(Comparison)
        if (row.parameter, row.phase, row.metric) == (", ".join(names), phase, main.metric)
        and row.against == REFERENCE and row.statistic is None and row.quantity == RATIO
    ]  # fmt: skip
    rest = [other for other in results.leaders if other not in names]
    return rows if len({row.value for row in rows}) == 1 and rest else []


def _ratios(
    results: ExperimentResults, main: Measure, names: Choice, phase: str, rows: Sequence[Comparison]
) -> Drawing:
    """Ratio of one value over another with its interval, a line per point of the rest."""
    name = ", ".join(names)
    rest = [other for other in results.leaders if other not in names]
    shown = [row for row in rows if row.ratio][:MAX_RATIOS]
    ratios = [row.ratio.value for row in shown if row.ratio]
    over = f"{rows[0].value} over {rows[0].base_value}"
    if name.startswith(VARIABLE_PREFIX):  # whose values say little alone
        over = f"{name.removeprefix(VARIABLE_PREFIX)} {over}"
    head = f"{results.name}: {main.label.lower()}, {over}{_phase_words(main, phase)}{results.mark}"
    labels, named = _ratio_labels(results, rest, shown)
    lines = sum(label.count("\n") for label in labels)
    figure = Figure(figsize=(NARROW, 1.2 + 0.3 * len(shown) + 0.1 * lines))
    heading(figure, head, named)
    ax = figure.subplots()
    furthest = CUT * max(1.0, *ratios)
    for i, (value, row) in enumerate(zip(ratios, shown, strict=True)):
        low, high = (row.ratio.low, row.ratio.high) if row.ratio else (None, None)
        if low is not None and high is not None:
            ax.hlines(i, low, min(high, furthest), color=COLOURS[0], linewidth=1.6)
            if high > furthest:
                ax.plot(furthest, i, color=COLOURS[0], marker=">", markersize=4)
        ax.plot(value, i, "o", color=COLOURS[0], markersize=6)
        ax.annotate(
            number(value), (value, i), xytext=(0, 5), textcoords="offset points",
            ha="center", fontsize=7.5,
        )  # fmt: skip
    ax.axvline(1.0, color=INK, linewidth=1, linestyle=(0, (1, 2)))
    ax.set_yticks(range(len(shown)), labels)
    ax.set_ylim(len(shown) - 0.4, -0.8)
    ax.set_xlabel(f"Ratio, {over}")
    text = caption(
        results, results.points, [phase],
        "Lines: 95 % interval of the ratio of the means, none where a side has one repeat or "
        "identical ones; an arrow: the line continues. Dotted: no difference.",
        f"{counted(len(rows) - len(shown), 'more ratio')} only in the table."
        if len(rows) > len(shown) else "",
    )  # fmt: skip
    alt = f"{head}: from {number(min(ratios))} to {number(max(ratios))}."
    shows = {"parameter": name}
    prefix = "sites" if name == SITE else f"ratio-{_file_part(name)}"
    return Drawing(f"{prefix}-{phase}", head, text, alt, figure, shows)


def _ratio_labels(
    results: ExperimentResults, rest: Sequence[str], rows: Sequence[Comparison]
) -> tuple[list[str], str]:
    """Labels of points, and the parameters' names where the labels have no room for them."""
    several = len(results.sources) > 1
    whole = [
        results.describe(row.point, rest) + (f" ({row.source})" if several else "") for row in rows
    ]
    if max(map(len, whole)) <= ROOM:
        return whole, ""
    values = [
        ", ".join([*(text_of(row.point[name]) for name in rest), *([str(row.source)] * several)])
        for row in rows
    ]
    return [in_lines(text, ROOM) for text in values], ", ".join(rest)


def size_figures(results: ExperimentResults) -> list[Sketch]:
    """Efficiency at the largest scale against the number of trained parameters of each model."""
    main = results.main
    size = column(SIZE, "mean", "run")
    if main is None:
        return []
    sketches = []
    for phase in main.phases:
        last = [
            (row, series.short, main.efficiency(row, phase))
            for series in results.series
            for row in series.rows[-1:]
            if len(series.rows) > 1 and finite(row.get(size))
        ]
        points = [(row[size], label, row, eff) for row, label, eff in last if eff[0] is not None]
        if len({x for x, *_ in points}) > 1:
            sketches.append(sketch(f"size-{phase}", _sizes, results, main, phase, points))
    return sketches


def _sizes(
    results: ExperimentResults, main: Measure, phase: str, points: Sequence[tuple[Any, ...]]
) -> Drawing:
    """The efficiency of series at their largest scale over the size of the model.

    ``points``: size, label, table row, and (efficiency, low, high) of each.
    """
    head = (
        f"{results.name}: efficiency by size of the model{_phase_words(main, phase)}{results.mark}"
    )
    figure = Figure(figsize=(WIDE, 3.8))
    heading(figure, head)
    ax = figure.subplots()
    handles = []
    furthest = CUT * max(1.0, *(values[0] for *_, values in points))
    for index, (x, label, row, (value, low, high)) in enumerate(points):
        style = look(index)
        if low is not None and high is not None:
            ax.vlines(
                x, min(low, furthest), min(high, furthest), color=style["color"], linewidth=1.4
            )
        ax.plot(x, value, color=style["color"], marker=style["marker"], linestyle="none")
        words = f"{shorten(label, 34)}, {results.scaled(results.scale_of(row))}"
        style["linestyle"] = "none"
        handles.append(Line2D([], [], label=words, **style))
    ax.set_xscale("log")
    ax.axhline(1.0, color=FAINT, linewidth=1, linestyle=(0, (5, 3)))
    ax.set_xlabel("Trained parameters of the model")
    ax.xaxis.set_major_formatter(FuncFormatter(_power))
    ax.xaxis.set_minor_locator(NullLocator())
    _size_ticks(ax, sorted({x for x, *_ in points}))
    ax.set_ylabel("Efficiency")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.0f} %"))
    ends = [min(end, furthest) for *_, values in points for end in values if end is not None]
    ax.set_ylim(0, max(1.1, *ends) * 1.05)
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.02))
    text = caption(
        results, [row for _, _, row, _ in points], [phase],
        f"Efficiency of each series at its largest {results.scale_words}, relative to its "
        "smallest. Lines: 95 % interval of the ratio, none where a side has one repeat or "
        "identical ones.",
        cut_words([e[1:] for *_, e in points if e[2] is not None], furthest),
    )  # fmt: skip
    texts = [f"{label} {percent(*eff)}" for _, label, _, eff in points[:8]]
    return Drawing(f"size-{phase}", head, text, f"{head}: {'; '.join(texts)}.", figure)


def _size_ticks(ax: Axes, sizes: Sequence[float]) -> None:
    """Ticks at the sizes that occur, where they have room for their labels."""
    span = math.log(sizes[-1] / sizes[0])
    ticks: list[float] = []
    for size in sizes:
        if not ticks or math.log(size / ticks[-1]) > span / 14:
            ticks.append(size)
    ax.xaxis.set_major_locator(FixedLocator(ticks))


def _power(value: float, _position: object = None) -> str:
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g}{letter}"
    return f"{value:g}"


def site_figures(results: ExperimentResults) -> list[Drawing]:
    """The first other site over this one, at the points that both have measured."""
    main = results.main
    rows = [row for row in results.of(Comparison) if row.question == SITE]
    return [
        _ratios(results, main, (SITE,), phase, mine)
        for phase in (main.phases if main else ())
        if main and (mine := [row for row in rows if row.phase == phase])
        and (mine := [row for row in mine if row.value == mine[0].value])
    ]  # fmt: skip


FIGURES = (site_figures,)
