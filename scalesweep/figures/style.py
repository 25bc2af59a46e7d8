"""Colours, sizes and axes that all figures share."""

import atexit
import math
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from fontTools import subset
from fontTools.ttLib import TTFont
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from scalesweep.core.formatting import apart, counted, finite, number, shorten, text_of
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Row

WHOLE, COMMON = "DejaVu Sans", "DejaVu Sans Common"
# Latin, Greek, punctuation, and signs such as ± × − ≤ ≈ →
_RANGES = ((0x20, 0x24F), (0x370, 0x3FF), (0x2010, 0x205E), (0x2190, 0x2193), (0x2200, 0x2265))
_WEIGHTS = ("Regular", "Bold")
_FAMILY, _FULL, _POSTSCRIPT = 1, 4, 6  # ids of names


@cache
def families() -> list[str]:
    """Font families for matplotlib; the first call in a process makes the first of them."""
    folder = tempfile.TemporaryDirectory(prefix="scalesweep-fonts-")
    atexit.register(folder.cleanup)
    for weight, whole in zip(_WEIGHTS, whole_fonts(), strict=True):
        path = Path(folder.name) / f"{weight}.ttf"
        _write_subset(whole, path, weight)
        font_manager.fontManager.addfont(path)
    return [COMMON, WHOLE]


def whole_fonts() -> list[str]:
    """Files of the fonts that the others are cut out of, by weight."""
    wanted = [font_manager.FontProperties(family=WHOLE, weight=name.lower()) for name in _WEIGHTS]
    return [font_manager.findfont(font, fallback_to_default=False) for font in wanted]


def _write_subset(whole: str, path: Path, weight: str) -> None:
    """Write the common part of a font under a name of its own."""
    options = subset.Options(glyph_names=True, recalc_timestamp=False)
    options.drop_tables += ["FFTM"]  # of FontForge, no table of the standard's
    with subset.load_font(whole, options) as font:
        cutter = subset.Subsetter(options)
        cutter.populate(unicodes=[code for low, high in _RANGES for code in range(low, high + 1)])
        cutter.subset(font)
        _rename(font, weight)
        font.save(path)


def _rename(font: TTFont, weight: str) -> None:
    names = {_FAMILY: COMMON, _FULL: f"{COMMON} {weight}"}
    names[_POSTSCRIPT] = f"{COMMON.replace(' ', '')}-{weight}"
    for record in font["name"].names:
        if record.nameID in names:
            record.string = names[record.nameID]


# Okabe and Ito's palette, which the common kinds of colour blindness can tell apart; its yellow
# is left out, because it is too faint on white, and its black is for means.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
COLOURS = (BLUE, ORANGE, GREEN, PINK, "#E69F00", "#56B4E9")
MARKERS = ("o", "^", "s", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)))
INK, FAINT, HOLE = "#1f2328", "#6b7280", "#8a9099"
MAX_LINES = len(COLOURS) * 2
FAR_APART = 8
MAX_TICKS = 12
CUT = 1.6  # times the highest mean: where a linear axis cuts intervals off
BEYOND = 4  # times the highest mean: where a logarithmic axis cuts intervals off
_NO_SPREAD = 1e-12  # of the mean: what rounding makes of none

# Narrow figures keep their text readable on a phone; two fit side by side on a wide screen.
NARROW, WIDE = 4.8, 9.2

RC: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titley": 1.0,  # fixed: no search for free space above the axes
    "axes.labelsize": 9,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e6ea",
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "hatch.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    # Names may hold a dollar sign; they are never formulas.
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "scalesweep",
    "pdf.fonttype": 42,
    "savefig.dpi": 150,
    "figure.constrained_layout.use": True,
}


@dataclass
class Drawing:
    """A figure with what the report says about it.

    ``shows`` says which findings it is about, where an experiment has several of its kind:
    ``points`` (values of the varying parameters and the source, of each), ``where`` (values that
    all points have), ``parameter`` (whose values it compares).
    """

    name: str
    title: str
    caption: str
    alt: str
    figure: Figure
    shows: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sketch:
    """Figures that can be drawn: their name, and how. Nothing is drawn before ``draw``.

    ``name`` is the drawing's, where it is a single one.
    """

    name: str
    draw: Callable[[], list[Drawing]]


def sketch(name: str, make: Callable[..., Drawing], *args: Any) -> Sketch:
    """A sketch of the drawing ``name`` that ``make(*args)`` makes."""
    return Sketch(name, partial(_alone, make, args))


def _alone(make: Callable[..., Drawing], args: tuple[Any, ...]) -> list[Drawing]:
    return [make(*args)]


def tick(value: float, _position: object = None) -> str:
    """A tick label: as many digits as the tick has, no more; millions as M."""
    return f"{value / 1e6:,.6g}M" if abs(value) >= 1e6 else f"{value:,.6g}"


def look(index: int) -> dict[str, Any]:
    """Colour, marker and dash of the line ``index``: no two of the first 18 look the same."""
    turn = index // len(COLOURS)
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": DASHES[turn % len(DASHES)],
    }


def scale_axis(ax: Axes, counts: Sequence[int], scale: str, room_beside: float = 0.04) -> None:
    """Logarithmic axis to base 2 whose ticks are rank counts (or devices) that occur.

    ``room_beside``: what is left free at either end, as a share of what lies between.
    """
    ax.set_xscale("log", base=2)
    low, high = min(counts), max(counts)
    room = max(math.log2(high / low), 1.0) / 11  # about twelve labels fit
    ticks: list[int] = []
    for value in sorted(set(counts), reverse=True):  # the largest is always labelled
        if not ticks or math.log2(ticks[-1] / value) >= room:
            ticks.append(value)
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    pad = 2 ** (max(math.log2(high / low), 1.0) * room_beside)
    ax.set_xlim(low / pad, high * pad)
    ax.set_xlabel(f"Number of {scale}")


def log_axis(ax: Axes, values: Sequence[float]) -> None:
    """Logarithmic y axis of positive values, with plain numbers at 1, 3, 10, 30, ... or closer."""
    ax.set_yscale("log")
    low, high = (min(max(value, 1e-250), 1e250) for value in (min(values), max(values)))
    decades = math.log10(high) - math.log10(low)
    pad = max(10 ** (0.06 * decades), 1.05)
    ax.set_ylim(low / pad, high * pad)
    ax.yaxis.set_major_locator(FixedLocator(log_ticks(low / pad, high * pad)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(tick))


def spread_axis(ax: Axes, values: Sequence[float]) -> None:
    """y axis of positive times that scatter, not from 0: logarithmic where the largest is more than
    FAR_APART times the smallest."""
    if max(values) > FAR_APART * min(values):
        log_axis(ax, values)
    else:
        ax.margins(y=0.12)
        ax.yaxis.set_major_formatter(FuncFormatter(tick))


def log_ticks(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis between two positive numbers: some ten, however far apart."""
    decades = math.log10(high) - math.log10(low)
    wide: tuple[float, ...] = (1, 3) if decades <= 4.5 else (1,)
    steps = (1, 1.5, 2, 3, 4, 5, 7) if decades < 0.9 else (1, 2, 5) if decades < 2.2 else wide
    stride = max(1, math.ceil(decades / MAX_TICKS))
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [s * 10.0**power for power in powers if power % stride == 0 for s in steps]
    ticks = [value for value in ticks if low <= value <= high]
    if len(ticks) < 3:
        # A narrow range falls between two steps; evenly spaced ticks label it as well.
        ticks = [value for value in MaxNLocator(5).tick_values(low, high) if value > 0]
    return ticks


def shown_range(levels: Sequence[float]) -> tuple[float, float]:
    """What of intervals an axis with these means (positive ones) has room for.

    Two repeats that differ may have an interval of a hundredfold, which must not hide the rest.
    """
    return min(levels) / BEYOND, max(levels) * BEYOND


def cut_words(spans: Sequence[tuple[float, ...] | None], furthest: float) -> str:
    """What a caption says where an axis has no room for a whole interval."""
    beyond = any(span is not None and span[1] > furthest for span in spans)
    return "Intervals that reach the edge continue beyond it." if beyond else ""


def bounds(measure: Measure, row: Row, phase: str) -> tuple[float, float, bool] | None:
    """Low, high, and whether it is a 95 % interval; mean -/+ std where there is none.

    None where the std is 0 as well: of identical repeats.
    """
    mean = measure.value(row, "mean", phase)
    low, high = measure.value(row, "low", phase), measure.value(row, "high", phase)
    if low is not None and high is not None:
        return low, high, True
    std = measure.value(row, "std", phase)
    if mean is None or std is None or std <= _NO_SPREAD * abs(mean):
        return None
    return mean - std, mean + std, False


def band_words(measure: Measure, rows: Sequence[Row], phase: str) -> str:
    """What the bands of these rows are."""
    kinds = {b[2] for row in rows if (b := bounds(measure, row, phase)) is not None}
    if any(row.get("stated") for row in rows):
        return "95 % interval, stated by the source" if kinds == {True} else "95 % interval, ± std"
    if kinds == {True}:
        return "95 % interval over repeats"
    if kinds == {False}:
        return "± std over epochs and ranks"
    return "95 % interval, ± std where there is none" if kinds else ""


def caption(
    results: ExperimentResults, rows: Sequence[Row], phases: Sequence[str], *more: str
) -> str:
    """Source, repeats, phases and whatever a figure adds, as sentences."""
    sources = sorted({str(row["source"]) for row in rows if row.get("source")})
    repeats = [int(row["repeats"]) for row in rows if row.get("repeats")]
    parts = [f"Source: {', '.join(sources) or 'none'}."]
    if repeats:
        low, high = min(repeats), max(repeats)
        span = str(low) if low == high else f"{low} to {high}"
        parts.append(f"{span} repeat{'' if high == 1 else 's'} per point.")
    words = {
        "init": "First epoch: epoch 0 alone, which pays for cold caches and start-up.",
        "later": "Later epochs: all after epoch 0, taken together.",
        "run": "One number per run, as the program reported it.",
    }
    parts += [words[phase] for phase in phases]
    # Steps left out of the times. Those counted in epochs are the learning rate's.
    parts += [
        f"{name} = {text_of(value)}."
        for name, value in results.entry.get("fixed", {}).items()
        if name.lower().startswith(("warmup", "warm_up"))
        and parameter_of(results.entry, name).get("unit") != "epochs"
    ]
    return " ".join([*parts, *(text for text in more if text)])


def heading(figure: Figure, text: str, detail: str = "") -> None:
    """Title at the upper left, wrapped to the figure's width, and a plainer second part."""
    room = int(figure.get_figwidth() * 11.3)  # characters of this bold type
    lines = textwrap.wrap(text, room, max_lines=2, placeholder=" …")
    lines += [shorten(detail, room)] if detail else []
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=9.5, fontweight="bold")


def in_lines(text: str, room: int) -> str:
    """A label in up to three lines of so many characters."""
    return "\n".join(textwrap.wrap(text, room, max_lines=3, placeholder=" …"))


# So many dots of a panel are one image in it: an element for each would be most of a page.
MANY_DOTS = 300


def scatter(
    ax: Axes,
    places: Sequence[tuple[float, float]],
    colour: str,
    area: float,
    alpha: float,
    **more: Any,
) -> None:
    """Dots without outlines, of ``area`` points^2; of more than ``MANY_DOTS`` an image."""
    x, y = zip(*places, strict=True) if places else ((), ())
    ax.scatter(
        x,
        y,
        s=area,
        color=colour,
        alpha=alpha,
        linewidths=0,
        rasterized=len(places) > MANY_DOTS,
        **more,
    )


def evenly(items: Sequence[Any], limit: int = MAX_LINES) -> list[Any]:
    """At most ``limit`` of these (as many lines as can be distinguished), evenly from all."""
    if len(items) <= limit:
        return list(items)
    return [items[round(i * (len(items) - 1) / (limit - 1))] for i in range(limit)]


def left_out_words(count: int) -> str:
    """What a caption says of points that a figure has no room for."""
    return f"{counted(count, 'more point')} only in the tables." if count > 0 else ""


def legend_columns(figure: Figure, labels: Sequence[str]) -> int:
    """How many columns of a legend with these labels fit side by side, six at most."""
    inches = 0.55 + 0.07 * max(map(len, labels), default=0)
    return max(1, min(6, int(figure.get_figwidth() / inches)))


def values_of(results: ExperimentResults, point: Row) -> str:
    """A point's values without the parameters' names, which are in a title."""
    return shorten(_values(results, point), 44)


def _values(results: ExperimentResults, point: Row) -> str:
    values = [text_of(point.get(name)) for name in results.leaders]
    values += [str(point["source"])] if len(results.sources) > 1 else []
    return ", ".join(values) or "the only point"


def labels_of(
    results: ExperimentResults, points: Sequence[Row], room: int
) -> tuple[list[str], str]:
    """Labels of points, and the parameters' names where the labels have no room for them."""
    several = len(results.sources) > 1
    whole = [
        results.describe(point) + (f" ({point['source']})" if several else "") for point in points
    ]
    if max(map(len, whole), default=0) <= room:
        return whole, ""
    return apart([_values(results, point) for point in points], 44), ", ".join(results.leaders)


def points_shown(results: ExperimentResults, rows: Sequence[Row]) -> dict[str, Any]:
    """``shows`` of a figure of these points alone."""
    names = [*results.axes, "source"]
    return {"points": [{name: row.get(name) for name in names} for row in rows]}


def band_patch(words: str) -> Line2D:
    """Legend entry for the bands."""
    return Line2D([], [], color=FAINT, alpha=0.35, linewidth=7, label=words)


def draw_line(
    ax: Axes,
    xs: Sequence[float],
    ys: Sequence[float | None],
    spans: Sequence[tuple[float, float] | None],
    band: bool = True,
    **style: Any,
) -> None:
    """Line with markers and its spans as a band, or as bars alone where many lines would hide each
    other's; missing values break it instead of being bridged."""
    y = [math.nan if value is None else value for value in ys]
    low = [math.nan if span is None else span[0] for span in spans]
    high = [math.nan if span is None else span[1] for span in spans]
    crowded = len(xs) > 24
    style = {"markersize": 2.5 if crowded else 5, **style}
    ax.plot(xs, y, markeredgecolor="white", markeredgewidth=0.2 if crowded else 0.6, **style)
    if band:
        ax.fill_between(xs, low, high, color=style["color"], alpha=0.18, linewidth=0)
    # A lone point between holes has no band to either side: bars show its interval anyway.
    if not (band and crowded):
        ax.vlines(xs, low, high, color=style["color"], linewidth=1, alpha=0.8)


def mark_holes(ax: Axes, holes: dict[int, str]) -> None:
    """Hatch rank counts without a result and write what became of them."""
    for count, word in holes.items():
        ax.axvspan(
            count / 2**0.22, count * 2**0.22,
            facecolor="none", edgecolor=HOLE, hatch="////", linewidth=0, alpha=0.6,
        )  # fmt: skip
        ax.text(
            count, 0.5, word, transform=ax.get_xaxis_transform(), rotation=90, ha="center",
            va="center", fontsize=7.5, color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
        )  # fmt: skip


# Digits that an axis of a figure in its usual width has room for.
_AXIS_CHARACTERS = 50


def parameter_axis(ax: Axes, values: Sequence[Any], label: str) -> list[float]:
    """Label the x axis with parameter values; returns their positions.

    Numbers are placed at their value (logarithmically if they span more than a factor of 30), words
    next to each other.
    """
    ax.set_xlabel(label)
    numeric = len(values) > 1 and all(finite(value) for value in values)
    if numeric:
        positions = [float(value) for value in values]
        if min(positions) > 0 and max(positions) / min(positions) > 30:
            ax.set_xscale("log", base=2)
            ax.xaxis.set_minor_locator(NullLocator())
    else:
        positions = [float(i) for i in range(len(values))]
    texts = apart([text_of(v) for v in values], 24)
    words = [
        number(v) if isinstance(v, float) else text for v, text in zip(values, texts, strict=True)
    ]
    ticks = list(zip(positions, words, strict=True))
    if numeric:
        ticks = _apart(ticks, math.log2 if ax.get_xscale() == "log" else float)
    ticks = ticks[:: math.ceil(len(ticks) / 12)]
    ax.xaxis.set_major_locator(FixedLocator([p for p, _ in ticks]))
    labels = [label for _, label in ticks]
    ax.xaxis.set_major_formatter(FuncFormatter(lambda _, i: labels[i] if i < len(labels) else ""))
    if not numeric and sum(map(len, labels)) > 36:
        ax.tick_params(axis="x", rotation=30)
        for text in ax.get_xticklabels():
            text.set_horizontalalignment("right")
    return positions


def _apart(
    ticks: Sequence[tuple[float, str]], place: Callable[[float], float]
) -> list[tuple[float, str]]:
    """The ticks whose labels do not overlap: the largest, and what has room on its left."""
    ordered = sorted(ticks, reverse=True)
    span = place(ordered[0][0]) - place(ordered[-1][0])
    kept = ordered[:1]
    for position, label in ordered[1:]:
        room = place(kept[-1][0]) - place(position)
        if room * _AXIS_CHARACTERS >= span * ((len(label) + len(kept[-1][1])) / 2 + 1):
            kept.append((position, label))
    return kept[::-1]
