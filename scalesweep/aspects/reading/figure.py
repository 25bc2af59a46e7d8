"""What points read from files, against what plain reads reach."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from scalesweep.aspects.reading.demand_figure import demand_figures
from scalesweep.aspects.reading.table import Reading, readings
from scalesweep.core.formatting import counted, percent, scaled_unit
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.style import (
    BLUE,
    FAINT,
    INK,
    WIDE,
    Drawing,
    caption,
    evenly,
    heading,
    labels_of,
    left_out_words,
    log_ticks,
    points_shown,
    tick,
)

MAX_ROWS = 24
_ROW = 0.27  # inches


def reading_figures(results: ExperimentResults) -> list[Drawing]:
    """Rates of the points against their ceiling, a panel for each state of the page cache."""
    rows = readings(results)
    if not rows:
        return []
    states = list(dict.fromkeys(row.state for row in rows))
    panels = [evenly([row for row in rows if row.state == state], MAX_ROWS) for state in states]
    drawn = [row for panel in panels for row in panel]
    factor, unit = scaled_unit("bytes/s", max(row.ceiling for row in drawn))
    head = f"{results.name}: read rate, and what plain reads reach{results.mark}"
    heights = [len(panel) for panel in panels]
    figure = Figure(figsize=(WIDE, 1.15 + _ROW * sum(heights) + 0.3 * len(heights)))
    points = [row.row for row in drawn]
    names, shared = labels_of(results, points, 44)
    heading(figure, head, shared)
    axes = figure.subplots(len(panels), squeeze=False, height_ratios=heights, sharex=True)[:, 0]
    first = 0
    for ax, panel in zip(axes, panels, strict=True):
        _draw(ax, panel, names[first : first + len(panel)], factor)
        ax.set_title(f"Page cache {panel[0].state}", fontsize=8.5, fontweight="normal")
        first += len(panel)
    low = min(v for row in drawn for v in (row.rate.low, row.rate.value) if v is not None and v > 0)
    high = max(
        v for row in drawn for v in (row.rate.high, row.rate.value, row.ceiling) if v is not None
    )
    span = (low * factor / 1.3, high * factor * 1.3)
    axes[-1].set_xlim(*span)
    axes[-1].set_xticks(log_ticks(*span))
    axes[-1].xaxis.set_minor_locator(NullLocator())
    axes[-1].xaxis.set_major_formatter(FuncFormatter(tick))
    axes[-1].set_xlabel(f"Read rate [{unit}]")
    figure.legend(handles=_legend(drawn), loc="outside lower left", ncols=3, columnspacing=1.2)
    text = caption(
        results, points, [drawn[0].phase],
        "On the right the share of what plain reads reach, with its 95 % interval.",
        left_out_words(len(rows) - len(drawn)),
    )  # fmt: skip
    best = max(drawn, key=lambda row: row.share.value)
    alt = (
        f"{head}: {counted(len(drawn), 'point')}. Most is reached at {results.describe(best.row)}: "
        f"{percent(best.share.value)}."
    )
    return [Drawing("reading", head, text, alt, figure, points_shown(results, points))]


def _legend(rows: Sequence[Reading]) -> list[Line2D]:
    """What the marks mean, of those that there are."""
    dot: dict[str, Any] = {"color": BLUE, "marker": "o", "lw": 1.3}
    handles = [Line2D([], [], label="read from files, with 95 % interval", **dot)]
    if any(not row.from_files for row in rows):
        handles.append(Line2D([], [], mfc="white", label="from a cache of the pipeline", **dot))
    return [
        *handles,
        Line2D([], [], color=INK, linestyle="--", lw=1.1, label="what plain reads reach"),
    ]


def _draw(ax: Axes, rows: Sequence[Reading], names: Sequence[str], factor: float) -> None:
    """A dot per row with its interval, its ceiling as a dashed line, and its share as text."""
    ax.set_xscale("log")
    for place, row in enumerate(rows):
        rate, share = row.rate, row.share
        if rate.low is not None and rate.high is not None and rate.low > 0:
            ax.plot([rate.low * factor, rate.high * factor], [place] * 2, color=BLUE, lw=1.3)
        face = BLUE if row.from_files else "white"
        ax.plot([rate.value * factor], [place], "o", color=BLUE, markerfacecolor=face)
        span = [place - 0.5, place + 0.5]
        ax.plot([row.ceiling * factor] * 2, span, color=INK, linestyle="--", lw=1.1)
        text = percent(share.value, share.low, share.high)
        ax.text(1.01, place, text, transform=ax.get_yaxis_transform(), va="center", fontsize=8)
    ax.set_yticks(range(len(rows)), names)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", colors=INK)
    ax.spines["left"].set_color(FAINT)


FIGURES = (reading_figures, demand_figures)
