"""Figure of the ratios: a dot and its interval for each point, on a logarithmic axis."""

import math
from collections.abc import Sequence
from statistics import median
from typing import Any, cast

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from scalesweep.compare.significance import IMPROVED, UNCLEAR, WORSE, Change
from scalesweep.core.formatting import PHASES, counted, number, shorten
from scalesweep.figures.files import svg_text
from scalesweep.figures.style import BLUE, FAINT, INK, ORANGE, RC, WIDE, Drawing, heading, log_ticks
from scalesweep.figures.svg import tidy_svg

MAX_DOTS = 40
# A few repeats may have intervals of a hundredfold, which must not hide all others. Around
# the ratios the axis has room for _ROOM times their spread, or _USUAL times a typical half width.
_ROOM, _USUAL = 2.5, 1.5
_LABEL = 58
_FURTHEST = 690.0  # natural logarithm of what an axis can show
_LOOKS = {IMPROVED: (BLUE, "^"), WORSE: (ORANGE, "v"), UNCLEAR: (FAINT, "o")}
_STEPS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)


def forest(
    changes: Sequence[Change], labels: Sequence[str], name: str
) -> tuple[Drawing, str] | None:
    """The drawing of the ratios of one metric and phase, and its SVG; None without a ratio.

    ``labels`` name the points, in the order of ``changes``. Of more than 40 points those whose
    intervals lie farthest from 1 are drawn, in their order.
    """
    there = [
        (change, label) for change, label in zip(changes, labels, strict=True) if change.ratio > 0
    ]
    if not there:
        return None
    ranked = sorted(range(len(there)), key=lambda i: _clearance(there[i][0]), reverse=True)
    shown = [there[i] for i in sorted(ranked[:MAX_DOTS])]
    with mpl.rc_context(cast(Any, RC)):
        drawing = _draw(shown, len(there), name)
        svg = svg_text(drawing.figure)
    return drawing, tidy_svg(svg, f"{name}-", drawing.alt)


def _clearance(change: Change) -> float:
    """How far the nearer end of an interval lies from 1, on the logarithm; less where it holds 1,
    and least without one."""
    if math.isnan(change.low):
        return -math.inf
    return max(_log(change.low), -_log(change.high))


def _log(ratio: float) -> float:
    """Natural logarithm, within what an axis can show."""
    if ratio <= 0:
        return -_FURTHEST
    return max(-_FURTHEST, min(math.log(ratio), _FURTHEST))


def _draw(shown: Sequence[tuple[Change, str]], of: int, name: str) -> Drawing:
    """The figure of some changes of one quantity, a row for each with its label; ``of``: how many
    there are in all."""
    first = shown[0][0]
    sources = {change.pair.source for change, _ in shown}
    mark = f" ({first.pair.source})" if len(sources) == 1 and sources != {"measured"} else ""
    head = f"{first.quantity.label}, {PHASES[first.phase]}: new over base{mark}"
    figure = Figure(figsize=(WIDE, 1.35 + 0.24 * len(shown)))
    heading(figure, head)
    ax = figure.subplots()
    low, high = _range([change for change, _ in shown])
    for place, (change, _) in enumerate(shown):
        _dot(ax, place, change, (low, high))
    ax.axvline(1.0, color=INK, linewidth=1, linestyle=(0, (1, 2)))
    _ratio_axis(ax, low, high)
    better = "right" if first.quantity.better == "higher" else "left"
    ax.set_xlabel(f"Ratio of the means, new / base ({first.quantity.better} is better: {better})")
    ax.set_yticks(range(len(shown)), [shorten(label, _LABEL) for _, label in shown])
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.grid(axis="y", visible=False)
    kinds = [verdict for verdict in _LOOKS if any(change.verdict == verdict for change, _ in shown)]
    handles = [
        Line2D([], [], linestyle="none", color=_LOOKS[v][0], marker=_LOOKS[v][1], label=v)
        for v in kinds
    ]
    figure.legend(handles=handles, loc="outside lower right", ncols=len(handles))
    tally = ", ".join(f"{sum(o.verdict == v for o, _ in shown)} {v}" for v in kinds)
    text = (
        "Lines: 95 % interval of the ratio of the means, none where a side has one repeat or "
        "identical ones; an arrow: the line continues. Dotted: no difference. Each interval is for "
        "its point alone."
    )
    if of > len(shown):
        text += (
            f" Of {of:,} points, the {len(shown)} whose intervals lie farthest from 1 are drawn; "
            f"{counted(of - len(shown), 'more point')} only in the tables."
        )
    ratios = [change.ratio for change, _ in shown]
    alt = (
        f"{head}: {counted(len(shown), 'point')}, {tally}; ratios from {number(min(ratios))} to "
        f"{number(max(ratios))}. The table of points has the numbers."
    )
    return Drawing(name, head, text, alt, figure)


def _dot(ax: Axes, place: int, change: Change, span: tuple[float, float]) -> None:
    colour, marker = _LOOKS[change.verdict]
    if not math.isnan(change.low):
        low, high = max(change.low, span[0]), min(change.high, span[1])
        ax.hlines(place, low, high, color=colour, linewidth=1.5)
        for end, beyond, arrow in ((low, change.low < low, "<"), (high, change.high > high, ">")):
            if beyond:
                ax.plot(end, place, color=colour, marker=arrow, markersize=4)
    ax.plot(change.ratio, place, marker, color=colour, markersize=6, markeredgecolor="white",
            markeredgewidth=0.5)  # fmt: skip


def _range(shown: Sequence[Change]) -> tuple[float, float]:
    """What the axis shows: all ratios, and of their intervals what has room."""
    ratios = [change.ratio for change in shown] + [1.0]
    ends = [end for change in shown for end in (change.low, change.high) if end > 0]
    least, most = _log(min(ratios)), _log(max(ratios))
    halves = [(_log(change.high) - _log(change.low)) / 2 for change in shown if change.high > 0]
    room = max(_ROOM * (most - least), _USUAL * median(halves) if halves else 0.02)
    low = max(min([least, *map(_log, ends)]), least - room)
    high = min(max([most, *map(_log, ends)]), most + room)
    pad = max(0.04 * (high - low), 0.005)
    return math.exp(low - pad), math.exp(high + pad)


def _ratio_axis(ax: Axes, low: float, high: float) -> None:
    """Logarithmic axis of ratios with plain numbers: 0.5, 0.8, 1, 1.25 ... or closer."""
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    if math.log10(high) - math.log10(low) > 2:
        ticks = log_ticks(low, high)
    else:
        ticks = sorted({step * 10.0**ten for ten in (-2, 0, 2) for step in _STEPS})
    ticks = [tick for tick in ticks if low <= tick <= high]
    if len(ticks) < 4:
        positions = MaxNLocator(7, steps=[1, 2, 5, 10]).tick_values(low, high)
        ticks = [float(tick) for tick in positions if low <= tick <= high]
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
