"""What points read from files, against what plain reads reach."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from scalesweep.core.formatting import counted, percent, scaled_unit
from scalesweep.experiment.readings import Reading, readings
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


def reading_figures(study: ExperimentResults) -> list[Drawing]:
    """Rates of the points against their ceiling, a panel for each state of the page cache."""
    found = readings(study)
    if not found:
        return []
    states = list(dict.fromkeys(one.state for one in found))
    panels = [evenly([one for one in found if one.state == state], MAX_ROWS) for state in states]
    some = [one for those in panels for one in those]
    factor, unit = scaled_unit("bytes/s", max(one.ceiling for one in some))
    head = f"{study.name}: read rate, and what plain reads reach{study.mark}"
    rows = [len(those) for those in panels]
    figure = Figure(figsize=(WIDE, 1.15 + _ROW * sum(rows) + 0.3 * len(rows)))
    names, shared = labels_of(study, [one.row for one in some], 44)
    heading(figure, head, shared)
    axes = figure.subplots(len(panels), squeeze=False, height_ratios=rows, sharex=True)[:, 0]
    first = 0
    for ax, those in zip(axes, panels, strict=True):
        _draw(ax, those, names[first : first + len(those)], factor)
        ax.set_title(f"Page cache {those[0].state}", fontsize=8.5, fontweight="normal")
        first += len(those)
    low = min(v for one in some for v in (one.low, one.rate) if v is not None and v > 0)
    high = max(v for one in some for v in (one.high, one.rate, one.ceiling) if v is not None)
    span = (low * factor / 1.3, high * factor * 1.3)
    axes[-1].set_xlim(*span)
    axes[-1].set_xticks(log_ticks(*span))
    axes[-1].xaxis.set_minor_locator(NullLocator())
    axes[-1].xaxis.set_major_formatter(FuncFormatter(tick))
    axes[-1].set_xlabel(f"Read rate [{unit}]")
    figure.legend(handles=_legend(some), loc="outside lower left", ncols=3, columnspacing=1.2)
    text = caption(
        study, [one.row for one in some], [some[0].phase],
        "On the right the share of what plain reads reach, with its 95 % interval.",
        left_out_words(len(found) - len(some)),
    )  # fmt: skip
    best = max(some, key=lambda one: one.share)
    alt = (
        f"{head}: {counted(len(some), 'point')}. Most is reached at {study.describe(best.row)}: "
        f"{percent(best.share)}."
    )
    return [Drawing("reading", head, text, alt, figure, points_shown(study, [o.row for o in some]))]


def _legend(some: Sequence[Reading]) -> list[Line2D]:
    """What the marks mean, of those that there are."""
    dot: dict[str, Any] = {"color": BLUE, "marker": "o", "lw": 1.3}
    handles = [Line2D([], [], label="read from files, with 95 % interval", **dot)]
    if any(not one.from_files for one in some):
        handles.append(Line2D([], [], mfc="white", label="from a cache of the pipeline", **dot))
    return [
        *handles,
        Line2D([], [], color=INK, linestyle="--", lw=1.1, label="what plain reads reach"),
    ]


def _draw(ax: Axes, those: Sequence[Reading], names: Sequence[str], factor: float) -> None:
    """A dot per row with its interval, its ceiling as a dashed line, and its share as text."""
    ax.set_xscale("log")
    for place, one in enumerate(those):
        if one.low is not None and one.high is not None and one.low > 0:
            ax.plot([one.low * factor, one.high * factor], [place] * 2, color=BLUE, lw=1.3)
        face = BLUE if one.from_files else "white"
        ax.plot([one.rate * factor], [place], "o", color=BLUE, markerfacecolor=face)
        span = [place - 0.5, place + 0.5]
        ax.plot([one.ceiling * factor] * 2, span, color=INK, linestyle="--", lw=1.1)
        text = percent(one.share, one.share_low, one.share_high)
        ax.text(1.01, place, text, transform=ax.get_yaxis_transform(), va="center", fontsize=8)
    ax.set_yticks(range(len(those)), names)
    ax.set_ylim(len(those) - 0.5, -0.5)
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", colors=INK)
    ax.spines["left"].set_color(FAINT)
