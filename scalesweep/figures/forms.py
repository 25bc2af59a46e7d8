"""The four forms that figures are made of, each of a frame: lines (or dots) with intervals, values
below each other, bars, heat map.

A form is data until it is drawn. Columns of its frame that are not needed may be missing.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize, to_rgb
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator

from scalesweep.core.formatting import apart, finite, number, plain, text_of
from scalesweep.figures.theme import (
    FAINT,
    HOLE,
    INK,
    MAX_LINES,
    ORANGE,
    Axis,
    Look,
    fills,
    look,
    set_axis,
    tick,
)

Looks = Mapping[str, int]  # place of each series in the order of its figure
# How lines of a style differ from those of means, which have markers and intervals.
STYLES: Mapping[str, Mapping[str, Any]] = {
    "": {},
    "ideal": {"marker": "", "linestyle": (0, (5, 3)), "linewidth": 1},
    "predicted": {"linestyle": (0, (2, 2)), "markerfacecolor": "white", "linewidth": 1.2},
    "plain": {"marker": "", "linewidth": 1.2},
    "steps": {"marker": "", "linewidth": 1.2, "drawstyle": "steps-pre"},
    "front": {"markersize": 3.5, "drawstyle": "steps-post"},
    "thin": {"marker": "", "linewidth": 0.7, "alpha": 0.5},
    "dots": {"linestyle": ""},
    "best": {"linestyle": "", "marker": "_", "markersize": 9},
    "grey": {"color": "#c9ced6", "marker": "", "linewidth": 0.8, "linestyle": "-"},
    "marked": {"color": ORANGE, "marker": "^", "linestyle": "", "markersize": 7},
}
_UNNAMED = ("thin", "best", "grey")  # styles that the legend leaves out
_BY_STYLE = ("ideal", "predicted")  # and those that it names by themselves
MANY_DOTS, FEW_MARKERS = 300, 24
MANY_COLUMNS = 24  # of a heat map, whose cells have no room for numbers
WIDE_RANGE = 20  # times the smallest value: colours go by the logarithm
PALE = 0.28  # opacity of a pale part
LABELLED = 0.07  # of the longest bar: a part with room for its number
BEYOND = 1.5  # of the longest bar: how far intervals are shown


class Form:
    """What the forms have in common: a panel of a figure."""

    frame: pd.DataFrame
    title: str

    @property
    def height(self) -> float:
        """Inches of the panel."""
        raise NotImplementedError

    @property
    def wide(self) -> bool:
        """Whether it needs a wide figure: its places have labels or marks of their own."""
        return "x" in self.frame and 10 < self.frame["x"].nunique() < 200 and len(self.series) == 1

    @property
    def series(self) -> list[str]:
        """What has a look of its own, in order."""
        if "series" not in self.frame:
            return [""]
        column = self.frame["series"]
        return list(column.cat.categories if hasattr(column, "cat") else dict.fromkeys(column))

    def draw(self, ax: Axes, looks: Looks) -> None:
        """Draw onto ``ax``."""
        raise NotImplementedError


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(k): v for k, v in row.items()} for row in frame.to_dict("records")]


def _column(part: pd.DataFrame, name: str) -> list[float]:
    """A column's numbers; NaN where there are none."""
    if name not in part:
        return [math.nan] * len(part)
    return [float(v) for v in pd.to_numeric(part[name], errors="coerce")]


def _once(ax: Axes, label: str) -> str | None:
    """A label that the legend has not yet."""
    return label if label and label not in ax.get_legend_handles_labels()[1] else None


@dataclass(frozen=True)
class Lines(Form):
    """Lines over ``x``: columns x, y, and as far as there are any low, high, series, style; of dots
    size (points^2) and label.

    A missing y breaks a line. ``holes``: what became of a place without a result. ``spans``: what
    is shaded between two places, with its look. Of more than MAX_LINES series the rest is grey.
    """

    frame: pd.DataFrame
    x: Axis
    y: Axis
    title: str = ""
    holes: Mapping[Any, str] = field(default_factory=dict)
    spans: Sequence[tuple[str, float, float, str]] = ()
    height: float = 2.7

    def draw(self, ax: Axes, looks: Looks) -> None:
        """A line for each series and style, with bars of its intervals."""
        frame = self.frame
        words = frame["x"].map(lambda value: not finite(value)).any()
        values = [plain(value) for value in frame["x"]]  # one spelling for what is missing
        places = {value: float(n) for n, value in enumerate(dict.fromkeys(values))}
        parts = frame.assign(
            at=[places[value] for value in values] if words else frame["x"],
            series=frame.get("series", ""),
            style=frame["style"].fillna("") if "style" in frame else "",
        )
        for (series, style), part in parts.groupby(["series", "style"], sort=False):
            self._line(ax, str(series), str(style), part, looks)
        ends = [*_column(parts, "low"), *_column(parts, "high")]
        set_axis(ax, "y", self.y, _column(parts, "y"), ends)
        if words:
            labels = apart([text_of(value) for value in places], 24)
            ax.set_xticks(list(places.values()), labels, rotation=30 if len(labels) > 6 else 0)
            ax.set_xlabel(self.x.label)
        else:
            set_axis(ax, "x", self.x, [*_column(parts, "at"), *map(float, self.holes)])
        for place, word in self.holes.items():
            ax.axvline(float(place), color=HOLE, linewidth=5, alpha=0.25)
            ax.text(float(place), 0.5, word, transform=ax.get_xaxis_transform(), rotation=90,
                    ha="center", va="center", fontsize=7.5, color=INK,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})  # fmt: skip
        for name, first, last, colour in self.spans:
            label = _once(ax, name)
            ax.axvspan(first, last, color=colour, alpha=0.25, linewidth=0, zorder=0, label=label)

    def _line(self, ax: Axes, series: str, style: str, part: pd.DataFrame, looks: Looks) -> None:
        place = looks.get(series, 0)
        style = "grey" if place >= MAX_LINES else style
        drawn = {**look(place), "markeredgecolor": "white", "markeredgewidth": 0.5, **STYLES[style]}
        if len(part) > FEW_MARKERS:
            drawn |= {"markersize": 2.5, "markeredgewidth": 0.2}
        if style == "predicted":
            drawn["markeredgecolor"] = drawn["color"]
        name = "" if style in _UNNAMED else style if style in _BY_STYLE else series
        label, rasterized = _once(ax, name), style == "dots" and len(part) > MANY_DOTS
        at, y, low, high = (_column(part, name) for name in ("at", "y", "low", "high"))
        if "size" in part and style == "dots":
            ax.scatter(at, y, s=part["size"], color=drawn["color"], alpha=0.55, lw=0, label=label)
        else:
            ax.plot(at, y, label=label, rasterized=rasterized, **drawn)
        if len(part) > FEW_MARKERS and np.isfinite(low).any():
            ax.fill_between(at, low, high, color=drawn["color"], alpha=0.17, linewidth=0)
        elif np.isfinite(low).any():
            ax.vlines(at, low, high, color=drawn["color"], linewidth=1, alpha=0.8)
        for x, value, text in zip(at, y, part.get("label", ()), strict=False):
            if isinstance(text, str):
                ax.annotate(text, (x, value), (4, 4), textcoords="offset points", fontsize=7.5)


@dataclass(frozen=True)
class Dots(Form):
    """Values below each other: columns label, value, and as far as there are any low, high,
    series."""

    frame: pd.DataFrame
    x: Axis
    title: str = ""

    @property
    def height(self) -> float:
        """Inches of the panel."""
        return 0.55 + 0.27 * self.frame["label"].nunique()

    def draw(self, ax: Axes, looks: Looks) -> None:
        """A row for each label, the first on top."""
        labels = list(dict.fromkeys(self.frame["label"]))
        for row in _rows(self.frame):
            place, series, value = labels.index(row["label"]), row.get("series", ""), row["value"]
            style = look(looks.get(series, 0)) | {"linestyle": ""}
            ax.plot(value, place, **style, label=_once(ax, series))
            if finite(row.get("low"), row.get("high")):
                ax.hlines(place, row["low"], row["high"], color=INK, linewidth=1.2)
            if "series" not in self.frame:
                ax.annotate(number(value), (value, place), (0, 5), textcoords="offset points",
                            fontsize=7.5, ha="center", va="bottom")  # fmt: skip
        ends = [*_column(self.frame, "low"), *_column(self.frame, "high")]
        set_axis(ax, "x", self.x, _column(self.frame, "value"), ends)
        _label_rows(ax, labels)


def _label_rows(ax: Axes, labels: Sequence[str]) -> None:
    lines = (textwrap.wrap(label, 44, max_lines=3, placeholder=" …") for label in labels)
    ax.set_yticks(range(len(labels)), ["\n".join(label) for label in lines])
    ax.set_ylim(len(labels) - 0.4, -0.7)
    ax.grid(axis="y", visible=False)


@dataclass(frozen=True)
class Bars(Form):
    """Bars below each other: columns label, value, and as far as there are any part, of which
    several are stacked; low and high of a part's end; ``start`` where parts do not begin at the end
    of the one before; ``lost``: the others are pale; ``note`` at the end, instead of the sum.

    ``line``: by label a mark across its bar, and what it means.
    """

    frame: pd.DataFrame
    x: Axis
    looks: Mapping[str, Look] = field(default_factory=dict)
    title: str = ""
    line: tuple[str, Mapping[str, float]] | None = None

    @property
    def height(self) -> float:
        """Inches of the panel."""
        return 0.6 + 0.32 * self.frame["label"].nunique()

    def draw(self, ax: Axes, looks: Looks) -> None:
        """A bar for each label; of several parts each with room for it has its number."""
        frame = self.frame.assign(part=self.frame.get("part", ""))
        known = fills(frame["part"], self.looks)
        lost = set(frame["part"][frame["lost"]]) if "lost" in frame else set()
        sums = frame[frame["value"] > 0].groupby("label")["value"].sum()
        longest = float(sums.max()) if len(sums) else 1.0
        reach = [0.0]
        labels = list(dict.fromkeys(frame["label"]))
        for place, label in enumerate(labels):
            parts = frame[frame["label"] == label]
            ends, far = {1: 0.0, -1: 0.0}, [0.0]
            rows = [row for row in _rows(parts) if finite(row["value"])]
            for row in rows:
                sign = 1 if row["value"] >= 0 else -1
                start = row.get("start", ends[sign])
                ends[sign] = start + row["value"]
                colour, hatch = known[row["part"]]
                if pale := not row.get("lost", True):
                    hatch, row["named"] = "", row["part"] in lost
                roomy = len(rows) > 1 and row["value"] >= LABELLED * longest
                self._part(ax, place, row, start, (colour, hatch), roomy, pale)
                # No interval makes bars short.
                high = row["high"] if finite(row.get("high")) else 0.0
                far += [start, ends[sign], min(high, BEYOND * longest)]
            words = number(ends[1] + ends[-1]) if rows else "no value"
            words = next(filter(None, parts.get("note", ())), words)
            ax.annotate(words, (max(far), place), xytext=(5, 0), textcoords="offset points",
                        va="center", fontsize=8)  # fmt: skip
            reach += [*far, *ends.values()]
            if self.line and label in self.line[1]:
                at = self.line[1][label]
                reach.append(at)
                ax.plot([at, at], [place - 0.44, place + 0.44], color=INK, linewidth=1.6,
                        label=_once(ax, self.line[0]))  # fmt: skip
        room = max(reach) - min(reach) or 1.0
        ax.set_xlim(min(reach) - (0.03 * room if min(reach) < 0 else 0), max(reach) + 0.16 * room)
        set_axis(ax, "x", self.x, [])
        _label_rows(ax, labels)

    def _part(
        self, ax: Axes, place: int, row: Mapping[str, Any], start: float, fill: Look, roomy: bool,
        pale: bool,
    ) -> None:  # fmt: skip
        colour, hatch = fill
        own = "start" in row  # the row is named by its part
        label = "" if own or row.get("named") else row["part"]
        ax.barh(place, row["value"], left=start, height=0.68, color=colour, hatch=hatch,
                edgecolor=FAINT if colour == "#ffffff" else "white", linewidth=0.4,
                alpha=PALE if pale else 1, label=_once(ax, label))  # fmt: skip
        if finite(row.get("low"), row.get("high")):
            ax.hlines(place, row["low"], row["high"], color=INK, linewidth=1.1)
        elif roomy and not own and not hatch:
            ink = INK if pale else _ink(to_rgb(colour))
            ax.text(start + row["value"] / 2, place, number(row["value"]), ha="center",
                    va="center", fontsize=8, color=ink)  # fmt: skip


def _ink(colour: Sequence[float]) -> str:
    """Black or white, whichever can be read on a colour (relative luminance as in WCAG 2)."""
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in colour[:3]]
    luminance = float(np.dot(linear, (0.2126, 0.7152, 0.0722)))
    return "#000000" if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else "#ffffff"


@dataclass(frozen=True)
class Heat(Form):
    """Cells of two parameters: columns x, y, value, and ``word``: why a cell has none.

    ``best``: ``higher`` or ``lower``, whichever is outlined; ``marked``: cells (x, y) with a frame.
    """

    frame: pd.DataFrame
    x: Axis
    y: Axis
    unit: str = ""
    title: str = ""
    best: str = ""
    marked: Sequence[tuple[Any, Any]] = ()

    @property
    def height(self) -> float:
        """Inches of the panel."""
        return min(7.0, 0.9 + 0.4 * self.frame["y"].nunique())

    def draw(self, ax: Axes, looks: Looks) -> None:
        """Cells with their values, holes hatched with their word; nothing is interpolated."""
        xs, ys = (list(dict.fromkeys(self.frame[side])) for side in ("x", "y"))
        cells = {(row["x"], row["y"]): row for row in _rows(self.frame)}
        values = [[cells.get((x, y), {}).get("value", math.nan) for x in xs] for y in ys]
        grid = np.array(values, float)
        low, high = float(np.nanmin(grid)), float(np.nanmax(grid))
        wide = low > 0 and high > WIDE_RANGE * low
        # Of values that differ by little the colours span 10 % at least.
        norm = LogNorm(low, high) if wide else Normalize(min(low, high - 0.1 * abs(high)), high)
        colours = colormaps["viridis_r" if self.best == "lower" else "viridis"]
        edges = [np.arange(len(side) + 1) - 0.5 for side in (xs, ys)]
        ax.grid(visible=False)
        mesh = ax.pcolormesh(*edges, grid, cmap=colours, norm=norm, edgecolors="white", lw=1.2)
        for (i, j), value in np.ndenumerate(grid):
            if math.isnan(value):
                _hole(ax, j, i, str(cells.get((xs[j], ys[i]), {}).get("word", "")))
            elif len(xs) <= MANY_COLUMNS:
                text = tick(float(f"{value:.3g}"))
                ax.text(j, i, text, ha="center", va="center", fontsize=8,
                        color=_ink(colours(norm(value))))  # fmt: skip
        frames = [(xs.index(x), ys.index(y)) for x, y in self.marked]
        if self.best:
            at = np.nanargmin(grid) if self.best == "lower" else np.nanargmax(grid)
            frames.append((int(at) % len(xs), int(at) // len(xs)))
        for x, y in frames:
            ax.add_patch(Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, fill=False, edgecolor=ORANGE,
                                   linewidth=2.4 if len(xs) <= MANY_COLUMNS else 1))  # fmt: skip
        labels = [apart([text_of(value) for value in side], 18) for side in (xs, ys)]
        every = [-(-len(side) // MANY_COLUMNS) for side in (xs, ys)]
        turn = 35 if sum(map(len, labels[0][:: every[0]])) > 44 else 0
        ax.set_xticks(range(0, len(xs), every[0]), labels[0][:: every[0]], rotation=turn)
        ax.set_yticks(range(0, len(ys), every[1]), labels[1][:: every[1]])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set(xlabel=self.x.label, ylabel=self.y.label)
        assert ax.figure is not None
        ticks, words = LogLocator(10, (1.0, 3.0)) if wide else None, FuncFormatter(tick)
        bar = ax.figure.colorbar(
            mesh, ax=ax, fraction=0.05, pad=0.02, label=self.unit, format=words, ticks=ticks
        )
        bar.minorticks_off()
        bar.outline.set_visible(False)


def _hole(ax: Axes, x: int, y: int, word: str) -> None:
    """A cell without a value: hatched and named, never coloured like a number."""
    if word:
        ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor="#f4f5f7", edgecolor=HOLE,
                               linewidth=0, hatch="////"))  # fmt: skip
        ax.text(x, y, word.replace("_", "\n").replace(" ", "\n").lower(), ha="center", va="center",
                fontsize=6.5, linespacing=0.95,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})  # fmt: skip
