"""Colours, sizes and axes that all figures share."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
    PercentFormatter,
)

from scalesweep.core.formatting import finite
from scalesweep.core.paths import RESOURCES

# Okabe and Ito's palette, which the common kinds of colour blindness can tell apart; its yellow
# is too faint for lines on white, and its black is for means.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
COLOURS = (BLUE, ORANGE, GREEN, PINK, "#E69F00", "#56B4E9")
HATCHES = ("", "////", "----", "xxxx")
MARKERS = ("o", "^", "s", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)))
INK, FAINT, HOLE = "#1f2328", "#6b7280", "#8a9099"
MAX_LINES = len(COLOURS) * 2  # that can be told apart
# Narrow figures keep their text readable on a phone; two fit side by side on a wide screen.
NARROW, WIDE = 5.2, 9.2
# Times the smallest value: from where an axis of a kind is logarithmic.
LOG_FROM: Mapping[str, float] = {"scale": 1, "log": 2.5, "values": 8}
CHARACTERS = 50  # of the labels along an axis
HALF = 0.5  # shares from here on have an axis from here on
REACH = 0.6  # of what means span: how far beyond them intervals are shown
Look = tuple[str, str]  # colour and hatch
percents = PercentFormatter(1, decimals=0, symbol=" %")

STYLE = RESOURCES / "figures.mplstyle"  # fonts, sizes, and what is where


@dataclass(frozen=True)
class Axis:
    """An axis of a form: its label with the unit, and where values are on it.

    ``kind``: ``linear`` (near the values), ``zero`` (from 0), ``share`` (percent), ``log``, and
    ``values`` and ``scale`` (ticks at those that occur), logarithmic as ``LOG_FROM`` says.
    ``marks``: lines across, by what they mean.
    """

    label: str = ""
    kind: str = "linear"
    marks: Mapping[str, float] = field(default_factory=dict)


def tick(value: float, _position: object = None) -> str:
    """A tick label: as many digits as the tick has, no more; millions as M."""
    return f"{value / 1e6:,.6g}M" if abs(value) >= 1e6 else f"{value:,.6g}"


def look(index: int) -> dict[str, Any]:
    """Colour, marker and dash of the line ``index``: no two of the first 18 look the same."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": DASHES[index // len(COLOURS) % len(DASHES)],
    }


def fills(names: Iterable[str], known: Mapping[str, Look] | None = None) -> dict[str, Look]:
    """Colour and hatch by part; those that are not ``known`` take turns, the rest is grey."""
    count, own = len(COLOURS), known or {}
    return {
        name: own.get(name, (COLOURS[n % count], HATCHES[n // count % len(HATCHES)]))
        for n, name in enumerate(dict.fromkeys(names))
    }


def set_axis(
    ax: Axes, side: str, axis: Axis, values: Sequence[float], ends: Sequence[float] = ()
) -> None:
    """Scale, limits, ticks and label of the ``side`` (``x`` or ``y``) of ``ax``.

    ``values`` are all seen; of intervals, ``ends``, as much as leaves the values room.
    """
    on, across = (ax.xaxis, ax.axvline) if side == "x" else (ax.yaxis, ax.axhline)
    on.set_label_text(axis.label)
    for place, (words, value) in enumerate(axis.marks.items()):
        label = words if side == "x" else None
        across(value, color=INK, linewidth=1, linestyle=(0, (1 + 4 * place, 2)), label=label)
        if side == "y":
            ax.annotate(
                words, (0, value), (3, 2), ("axes fraction", "data"), "offset points", fontsize=8
            )
    values = sorted({float(v) for v in [*values, *axis.marks.values()] if finite(v)})
    if not values:
        return
    log = values[0] > 0 and values[-1] >= LOG_FROM.get(axis.kind, math.inf) * values[0]
    getattr(ax, f"set_{side}scale")("log" if log else "linear")
    ends = [end for end in ends if finite(end)]
    getattr(ax, f"set_{side}lim")(*_limits(values, ends, log, axis.kind))
    if axis.kind in ("scale", "values"):
        on.set_major_locator(FixedLocator(_apart(values, log)))
    elif log:
        times = values[-1] / values[0]
        subs = (
            (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if times < 300 else (1.0, 3.0) if times < 1e5 else (1.0,)
        )
        on.set_major_locator(LogLocator(10, subs, numticks=12))
    else:
        on.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    on.set_minor_locator(NullLocator())
    on.set_major_formatter(percents if axis.kind == "share" else FuncFormatter(tick))


def _limits(
    values: Sequence[float], ends: Sequence[float], log: bool, kind: str
) -> tuple[float, float]:
    """Where an axis begins and ends: the (sorted) values, and the ends of intervals nearby."""
    low, high = values[0], values[-1]
    reach = REACH * (max(abs(low), abs(high)) or 1.0)
    least, most = (low / 2, high * 2) if log else (low - reach, high + reach)
    shown = [low, high, *(min(max(end, least), most) for end in ends)]
    based = kind in ("zero", "share") and low >= 0
    if based:
        shown.append(0.0 if kind == "zero" or low < HALF else HALF)
    low, high = min(shown), max(shown)
    if log:
        room = max(1.05, (high / low) ** 0.06)
        return low / room, high * room
    room = 0.06 * (high - low or abs(high) or 1.0)
    return 0.0 if based and low == 0.0 else low - room, high + room


def _apart(values: Sequence[float], log: bool) -> list[float]:
    """Ticks at (sorted) values that occur, the largest first, as far as their labels have room."""
    places = [math.log(value) if log else value for value in values]
    room = (places[-1] - places[0]) * (2 + max(len(tick(value)) for value in values)) / CHARACTERS
    kept: list[int] = []
    for n in reversed(range(len(values))):
        if not kept or places[kept[-1]] - places[n] >= room:
            kept.append(n)
    return [values[n] for n in kept]
