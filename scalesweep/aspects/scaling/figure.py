"""Throughput over ranks with its ideal, and the efficiency below."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from scalesweep.analysis.metrics import column
from scalesweep.aspects.prediction.drawn import HOLLOW, draw_predicted
from scalesweep.core.formatting import PHASES, apart, counted, finite, number, percent, shorten
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Row, Series
from scalesweep.figures.style import (
    BLUE,
    CUT,
    FAINT,
    INK,
    MAX_LINES,
    ORANGE,
    Drawing,
    Sketch,
    band_patch,
    band_words,
    bounds,
    caption,
    cut_words,
    draw_line,
    heading,
    log_axis,
    look,
    mark_holes,
    points_shown,
    scale_axis,
    shown_range,
    sketch,
)

MAX_SERIES_FIGURES = 4
BESIDE = 0.04  # of the axis: how far the series of an overview are moved from their counts


def scaling_figures(results: ExperimentResults) -> list[Sketch]:
    """One figure per series and phase, after an overview where there are several series."""
    main = results.main
    if main is None:
        return []
    sketches: list[Sketch] = []
    for phase in main.phases:
        series = [
            series
            for series in results.series
            if any(main.efficiency(row, phase)[0] is not None for row in series.rows)
        ]
        if len(series) > 1:
            sketches.append(sketch(f"overview-{phase}", _overview, results, main, series, phase))
        if len(series) > 2 and max(len(series.rows) + len(series.holes) for series in series) < 3:
            continue  # two counts each: the overview has all that there is to see
        for index, line in enumerate(series[:MAX_SERIES_FIGURES]):
            suffix = f"-{index + 1}" if len(series) > 1 else ""
            left_out = len(series) - MAX_SERIES_FIGURES
            note = (
                f"{counted(left_out, 'further series', 'further series')} "
                "only in the overview and the table."
                if left_out > 0 and index == MAX_SERIES_FIGURES - 1
                else ""
            )
            name = f"scaling{suffix}-{phase}"
            sketches.append(sketch(name, _one_series, results, main, line, phase, name, note))
    # Overviews first, then series by series with its phases side by side.
    return sorted(sketches, key=lambda d: ("overview" not in d.name, d.name.rpartition("-")[0]))


def _panels(title: str, detail: str = "") -> tuple[Figure, Axes, Axes]:
    figure = Figure(figsize=(5.4, 4.0))
    heading(figure, title, detail)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[0.6, 0.4])
    return figure, upper, lower


def _efficiency_axis(ax: Axes, values: Sequence[float], target: float) -> None:
    """Axis of efficiencies and the ends of their intervals, as far as these are drawn."""
    low = min([*values, 0.5])
    high = max([*values, 1.05])
    ax.set_ylim(max(0.0, low - 0.07), high + 0.05)
    ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:,.4g} %"))
    ax.axhline(1.0, color=FAINT, linewidth=1, linestyle=(0, (5, 3)))
    ax.axhline(target, color=INK, linewidth=1, linestyle=(0, (1, 2)))
    ax.set_ylabel("Efficiency")


def _draw_efficiency(
    ax: Axes,
    results: ExperimentResults,
    rows: Sequence[Row],
    xs: list[int],
    measure: Measure,
    phase: str,
    places: Sequence[float],
    furthest: float,
    style: dict[str, Any],
) -> list[float]:
    """Draw the efficiencies at counts ``xs`` at ``places``, and intervals up to ``furthest``;
    returns the values to be seen."""
    by_count = {results.scale_of(row): measure.efficiency(row, phase) for row in rows}
    limits = [by_count.get(x, (None, None, None)) for x in xs]
    spans = [
        (min(low, furthest), min(high, furthest)) if low is not None and high is not None else None
        for _, low, high in limits
    ]
    values = [value for value, _, _ in limits]
    draw_line(ax, places, values, spans, **style)
    return [v for v in values if v is not None] + [end for span in spans if span for end in span]


def _furthest(rows: Sequence[Row], measures: Sequence[Measure], phase: str) -> float:
    """Up to where intervals of efficiencies are drawn: beyond all values, ideal included."""
    values = [item.efficiency(row, phase)[0] or 0.0 for row in rows for item in measures]
    return CUT * max([1.0, *values])


def _cut(
    spans: Sequence[tuple[float, ...] | None], levels: Sequence[float]
) -> tuple[list[tuple[float, float] | None], str]:
    """Spans of rates as far as an axis that shows ``levels`` has room for them, and a caption's
    words if some have none."""
    low, high = shown_range(levels)
    drawn = [
        None if b is None else (min(max(b[0], low), high), min(max(b[1], low), high)) for b in spans
    ]
    return drawn, cut_words(spans, high)


def _one_series(
    results: ExperimentResults, main: Measure, series: Series, phase: str, name: str, note: str
) -> Drawing:
    """A series over the scale: the main metric with its ideal above, the efficiency below; holes
    say why a count has no result."""
    scaling = (
        f"{results.entry['scaling']} scaling" if results.entry["scaling"] != "none" else "scaling"
    )
    head = f"{results.name}: {scaling}, {PHASES[phase]}{results.mark}"
    figure, upper, lower = _panels(head, series.label)
    xs = sorted({*map(results.scale_of, series.rows), *series.holes})
    by_count = {results.scale_of(row): row for row in series.rows}
    handles: list[Line2D] = []
    levels: list[float] = []
    effs: list[float] = []
    shown = []
    cut = ""
    if main.metric == "total_throughput" and (local := results.measures.get("local_throughput")):
        shown.append((local, "Per rank", BLUE, "o"))
    shown.append((main, "Total" if shown else main.label, ORANGE, "^"))
    furthest = _furthest(series.rows, [measure for measure, *_ in shown], phase)
    for measure, label, colour, marker in shown:
        rows = [by_count.get(x, {}) for x in xs]
        style: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": "-"}
        values = [bounds(measure, row, phase) for row in rows]
        means = [measure.value(row, "mean", phase) for row in rows]
        ideals = [row.get(column(f"{measure.stem}_ideal", "", phase)) for row in rows]
        pairs = [(x, y * measure.factor) for x, y in zip(xs, ideals, strict=True) if finite(y)]
        here = [*(m for m in means if m is not None and m > 0), *(y for _, y in pairs if y > 0)]
        spans, cut = _cut(values, here or [1.0])
        draw_line(upper, xs, means, spans, **style)
        upper.plot(
            [x for x, _ in pairs], [y for _, y in pairs],
            color=colour, linestyle=(0, (5, 3)), linewidth=1,
        )  # fmt: skip
        levels += [*here, *(v for s in spans if s for v in s)]
        handles.append(Line2D([], [], label=label, **style))
        effs += _draw_efficiency(
            lower, results, series.rows, xs, measure, phase, xs, furthest, style
        )
    beyond = draw_predicted(upper, lower, results, main, series, phase)
    if beyond.counts:
        levels += beyond.levels
        effs += beyond.efficiencies
        handles.append(Line2D([], [], color=ORANGE, label="Predicted", **HOLLOW))
    handles.append(Line2D([], [], color=FAINT, linestyle=(0, (5, 3)), linewidth=1, label="Ideal"))
    handles.append(
        Line2D(
            [],
            [],
            color=INK,
            linestyle=(0, (1, 2)),
            linewidth=1,
            label=f"{100 * results.target:g} %",
        )
    )
    band = band_words(main, series.rows, phase)
    if band:
        handles.append(band_patch(band))
    log_axis(upper, levels or [1.0, 10.0])
    upper.set_ylabel("samples/s" if len(shown) > 1 else main.unit or main.axis_label)
    _efficiency_axis(lower, effs, results.target)
    scale_axis(lower, sorted({*xs, *beyond.counts}), results.scale)
    for ax in (upper, lower):
        mark_holes(ax, series.holes)
    figure.legend(handles=handles, loc="outside lower left", ncols=3, columnspacing=1.2)
    base = results.scale_of(series.rows[0])
    text = caption(
        results, series.rows, [phase],
        f"Band: {band}." if band else "",
        cut,
        f"Efficiency and ideal (dashed) are relative to {results.scaled(base)}.",
        "Bands of the efficiency: 95 % interval of the ratio, none where a side has one repeat or "
        "identical ones."
        if effs else "",
        "Hatched: planned, but without a result." if series.holes else "",
        beyond.caption,
        note,
    )  # fmt: skip
    last = series.rows[-1]
    end = results.scale_of(last)
    value, low, high = main.efficiency(last, phase)
    alt = (
        f"{head}. {series.label} {main.label} over {base} to {results.scaled(end)}; "
        f"at {results.scaled(end)} {number(main.value(last, 'mean', phase))} {main.unit}, "
        f"efficiency {percent(value, low, high)}."
    )
    return Drawing(name, head, text, alt, figure, points_shown(results, series.rows))


def _aside(index: int, of: int, counts: Sequence[int]) -> float:
    """Factor by which the counts of a series are moved, so that it lies next to the others."""
    span = max(math.log2(counts[-1] / counts[0]), 1.0)
    share = index / (of - 1) - 0.5 if of > 1 else 0.0
    return float(2 ** (2 * share * min(BESIDE, 0.008 * of) * span))


def _overview(
    results: ExperimentResults, main: Measure, series: Sequence[Series], phase: str
) -> Drawing:
    """All series over the scale in one figure: the main metric above, efficiencies below; those
    that end highest have colours."""
    head = f"{results.name}: all series, {PHASES[phase]}{results.mark}"
    figure, upper, lower = _panels(head)
    # Too many lines cannot be distinguished: those that end highest keep their colours.
    ranked = sorted(series, key=lambda series: -(main.value(series.rows[-1], "mean", phase) or 0))
    chosen = [series for series in series if any(series is other for other in ranked[:MAX_LINES])]
    handles: list[Line2D] = []
    levels: list[float] = []
    effs: list[float] = []
    every = sorted({results.scale_of(row) for series in series for row in series.rows})
    rows = [row for series in series for row in series.rows]
    furthest = _furthest(rows, [main], phase)
    cut = ""
    seen = [mean for row in rows if (mean := main.value(row, "mean", phase) or 0.0) > 0]
    for line in [line for line in series if line not in chosen]:
        xs = [results.scale_of(row) for row in line.rows]
        means = [main.value(row, "mean", phase) or float("nan") for row in line.rows]
        upper.plot(xs, means, color="#c9ced6", linewidth=0.8, zorder=1)
        ratios = [main.efficiency(row, phase)[0] or float("nan") for row in line.rows]
        lower.plot(xs, ratios, color="#c9ced6", linewidth=0.8, zorder=1)
        levels += [mean for mean in means if mean > 0]
        effs += [ratio for ratio in ratios if ratio > 0]
    labels = apart([line.short for line in chosen], 44)
    for index, line in enumerate(chosen):
        style = look(index)
        xs = sorted({*map(results.scale_of, line.rows), *line.holes})
        by_count = {results.scale_of(row): row for row in line.rows}
        values = [main.value(by_count.get(x, {}), "mean", phase) for x in xs]
        spans, more = _cut([bounds(main, by_count.get(x, {}), phase) for x in xs], seen or [1.0])
        cut = cut or more
        # Side by side, so that the intervals of each can be seen.
        places = [x * _aside(index, len(chosen), every) for x in xs]
        draw_line(upper, places, values, spans, band=False, **style)
        levels += [value for value in values if value is not None and value > 0]
        levels += [end for span in spans if span for end in span]
        effs += _draw_efficiency(
            lower, results, line.rows, xs, main, phase, places, furthest, {**style, "band": False}
        )
        handles.append(Line2D([], [], label=labels[index], **style))
    log_axis(upper, levels or [1.0, 10.0])
    upper.set_ylabel(main.unit or main.axis_label)
    _efficiency_axis(lower, effs, results.target)
    scale_axis(lower, every, results.scale, room_beside=2 * BESIDE)
    widest = max(len(series.short) for series in chosen)
    columns = 1 if widest > 30 else 2 if widest > 16 else 3
    figure.legend(
        handles=handles, loc="outside lower left", ncols=columns, columnspacing=1.2,
        title=shorten(", ".join(results.series_labels), 60), title_fontsize=8, alignment="left",
    )  # fmt: skip
    figure.set_figheight(5.2 + 0.165 * max(0, -(-len(handles) // columns) - 1))
    left_out = len(series) - len(chosen)
    band = band_words(main, rows, phase)
    text = caption(
        results, rows, [phase],
        f"Each efficiency is relative to the smallest {results.scale_words} of its series, so "
        "lines may differ in height above and coincide below. "
        f"Dotted: {100 * results.target:g} %.",
        f"Bars: {band}; lines are side by side so that all are seen. Where bars overlap, these "
        f"repeats do not rank the series. {cut}".strip() if band else "",
        f"Grey: {left_out:,} more series, lower at their largest {results.scale_words}."
        if left_out else "",
    )  # fmt: skip
    span = f"{every[0]} to {results.scaled(every[-1])}"
    alt = f"{head}: {main.label} and efficiency of {len(series)} series over {span}."
    return Drawing(f"overview-{phase}", head, text, alt, figure)
