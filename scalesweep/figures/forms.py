"""The five forms that figures are made of, each of a frame: lines with bands, dots with intervals,
stacked bars, heat map, scatter.

A form is data until it is drawn. Columns of its frame that are not needed may be missing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize, to_rgb
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, NullLocator

from scalesweep.core.formatting import apart, counted, finite, number, plain, text_of
from scalesweep.figures.theme import (
    FAINT,
    HOLE,
    INK,
    MAX_LINES,
    ORANGE,
    Axis,
    Look,
    fills,
    in_lines,
    log_ticks,
    look,
    percents,
    set_axis,
    tick,
)

Looks = Mapping[str, int]  # place of each series in the order of its figure
# How lines of a style differ from those of means, which have markers and bands.
STYLES: Mapping[str, Mapping[str, Any]] = {
    "": {},
    "ideal": {"marker": "", "linestyle": (0, (5, 3)), "linewidth": 1},
    "predicted": {"linestyle": (0, (2, 2)), "markerfacecolor": "white", "linewidth": 1.2},
    "plain": {"marker": "", "linewidth": 1.2},
    "steps": {"marker": "", "linewidth": 1.2, "drawstyle": "steps-pre"},
    "thin": {"marker": "", "linewidth": 0.7, "alpha": 0.5},
    "dots": {"linestyle": ""},
    "best": {"linestyle": "", "marker": "_", "markersize": 9},
    "faint": {"color": "#8a9099", "linestyle": "", "marker": "o", "markersize": 3, "alpha": 0.4},
    "mean": {"color": "black", "marker": "", "linestyle": (0, (4, 2)), "linewidth": 1.8},
    "grey": {"color": "#c9ced6", "marker": "", "linewidth": 0.8, "linestyle": "-"},
    "marked": {"color": ORANGE, "marker": "^", "linestyle": "", "markersize": 7},
}
MANY_DOTS, FEW_MARKERS = 300, 24
MANY_COLUMNS = 24  # of a heat map, whose cells have no room for numbers
WIDE_RANGE = 20  # times the smallest value: colours go by the logarithm
LABELLED = 0.07  # of the longest bar: a part with room for its number


class Form:
    """What the five have in common: a panel of a figure."""

    frame: pd.DataFrame
    title: str

    @property
    def height(self) -> float:
        """Inches of the panel."""
        return 2.7

    @property
    def wide(self) -> bool:
        """Whether it needs a wide figure: its places have labels or marks of their own."""
        return "x" in self.frame and 16 < self.frame["x"].nunique() < 200 and len(self.series) == 1

    @property
    def series(self) -> list[str]:
        """What has a look of its own, in order."""
        if "series" not in self.frame:
            return [""]
        column = self.frame["series"]
        return list(column.cat.categories if hasattr(column, "cat") else dict.fromkeys(column))

    @property
    def words(self) -> str:
        """What the panel shows, for those who do not see it."""
        name = next(name for name in ("value", "y") if name in self.frame)
        known = pd.to_numeric(self.frame[name], errors="coerce").dropna()
        if known.empty:
            return "nothing"
        ends = f"{number(float(known.min()))} to {number(float(known.max()))}"
        said = f"{self.title + ': ' if self.title else ''}{counted(len(known), 'value')}, {ends}"
        if "label" not in self.frame:
            return said
        top = self.frame.loc[known.idxmax()]
        return f"{said}; the largest: {top.get('part', top.get('series', ''))} at {top['label']}"

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


@dataclass(frozen=True)
class Lines(Form):
    """Lines over ``x``: columns x, y, and as far as there are any low, high, series, style.

    A missing y breaks a line. ``holes``: what became of a place without a result. ``spans``: what
    is shaded between two places, with its look. Of more than MAX_LINES series the rest is grey.
    """

    frame: pd.DataFrame
    x: Axis
    y: Axis
    title: str = ""
    holes: Mapping[Any, str] = field(default_factory=dict)
    spans: Sequence[tuple[str, float, float, str]] = ()
    tall: float = 2.7

    @property
    def height(self) -> float:
        """Inches of the panel."""
        return self.tall

    def draw(self, ax: Axes, looks: Looks) -> None:
        """A line for each series and style; bands of few series, bars of more."""
        frame = self.frame
        words = frame["x"].map(lambda value: not finite(value)).any()
        values = [plain(value) for value in frame["x"]]  # one spelling for what is missing
        places = {value: float(n) for n, value in enumerate(dict.fromkeys(values))}
        at = [places[value] for value in values] if words else frame["x"]
        parts = frame.assign(
            at=at,
            series=frame.get("series", ""),
            style=frame.get("style", ""),
        )
        band = parts["series"].nunique() <= 2
        for (series, style), part in parts.groupby(["series", "style"], sort=False):
            self._line(ax, str(series), str(style), part, looks, band)
        shown = [*_column(parts, "y")]
        set_axis(ax, "y", self.y, shown, [*_column(parts, "low"), *_column(parts, "high")])
        if words:
            labels = apart([text_of(value) for value in places], 24)
            ax.set_xticks(list(places.values()), labels, rotation=30 if len(labels) > 6 else 0)
            ax.set_xlabel(self.x.label)
        else:
            set_axis(ax, "x", self.x, [*_column(parts, "at"), *map(float, self.holes)])
        self._holes(ax)
        for name, first, last, colour in self.spans:
            label = name if name not in ax.get_legend_handles_labels()[1] else None
            ax.axvspan(first, last, color=colour, alpha=0.25, linewidth=0, zorder=0, label=label)

    def _line(
        self, ax: Axes, series: str, style: str, part: pd.DataFrame, looks: Looks, band: bool
    ) -> None:
        place = looks.get(series, 0)
        if place >= MAX_LINES:
            style = "grey"
        drawn = {**look(place), "markeredgecolor": "white", "markeredgewidth": 0.5}
        if len(part) > FEW_MARKERS:
            drawn |= {"markersize": 2.5, "markeredgewidth": 0.2}
        drawn |= STYLES[style]
        if style == "predicted":
            drawn["markeredgecolor"] = drawn["color"]
        named = style in ("", "plain", "dots", "steps", "marked", "faint")
        label = series if named else style if style in ("ideal", "predicted", "mean") else ""
        if label in ax.get_legend_handles_labels()[1] or style == "grey":
            label = ""
        at, low, high = (_column(part, name) for name in ("at", "low", "high"))
        rasterized = style in ("dots", "faint") and len(part) > MANY_DOTS
        ax.plot(at, _column(part, "y"), label=label or None, rasterized=rasterized, **drawn)
        if np.isfinite(low).any():
            if band or style == "mean":
                ax.fill_between(at, low, high, color=drawn["color"], alpha=0.17, linewidth=0)
            if (
                len(part) <= FEW_MARKERS and style != "mean"
            ):  # a lone point between holes has no band
                ax.vlines(at, low, high, color=drawn["color"], linewidth=1, alpha=0.8)

    def _holes(self, ax: Axes) -> None:
        for place, word in self.holes.items():
            ax.axvline(float(place), color=HOLE, linewidth=5, alpha=0.25)
            ax.text(
                float(place), 0.5, word, transform=ax.get_xaxis_transform(), rotation=90,
                ha="center", va="center", fontsize=7.5, color=INK,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
            )  # fmt: skip


@dataclass(frozen=True)
class Dots(Form):
    """Values below each other: columns label, value, and as far as there are any low, high, series,
    note. An axis from 0 makes bars of them."""

    frame: pd.DataFrame
    x: Axis
    title: str = ""

    @property
    def height(self) -> float:
        """Inches of the panel."""
        return 0.55 + 0.27 * self.frame["label"].nunique()

    def draw(self, ax: Axes, looks: Looks) -> None:
        """A row for each label, the first on top."""
        rows = list(dict.fromkeys(self.frame["label"]))
        for row in _rows(self.frame):
            self._row(ax, row, rows.index(row["label"]), looks)
        ends = [*_column(self.frame, "low"), *_column(self.frame, "high")]
        set_axis(ax, "x", self.x, _column(self.frame, "value"), ends)
        left, right = ax.get_xlim()
        if self.x.kind == "zero":
            ax.set_xlim(left, right * 1.15)
        ax.set_yticks(range(len(rows)), [in_lines(label, 44) for label in rows])
        ax.set_ylim(len(rows) - 0.4, -0.7)
        ax.grid(axis="y", visible=False)

    def _row(self, ax: Axes, row: Mapping[str, Any], place: int, looks: Looks) -> None:
        series, value = row.get("series", ""), row["value"]
        style = {**look(looks.get(series, 0)), "linestyle": ""}
        note = row.get("note") or (number(value) if finite(value) else "no value")
        end = value if finite(value) else 0.0
        if finite(value):
            label = series if series not in ax.get_legend_handles_labels()[1] else None
            if self.x.kind == "zero":
                ax.barh(place, value, height=0.62, color=style["color"], alpha=0.8, label=label)
            else:
                ax.plot(value, place, **style, markersize=6, label=label)
            if finite(row.get("low"), row.get("high")):
                ax.hlines(place, row["low"], row["high"], color=INK, linewidth=1.2)
                end = max(end, min(row["high"], value * 1.5))
        where = {"xytext": (6, 0)} if self.x.kind == "zero" else {"xytext": (0, 5), "ha": "center"}
        if self.x.kind != "zero":
            end = value
        if finite(end) and ("series" not in self.frame or self.x.kind == "zero"):
            ax.annotate(note, (end, place), textcoords="offset points", fontsize=7.5,
                        va="center" if self.x.kind == "zero" else "bottom", **where)  # fmt: skip


@dataclass(frozen=True)
class Bars(Form):
    """Stacked bars below each other: columns label, part, value; ``start`` where parts do not begin
    at the end of the one before; low and high of a part's end.

    ``line``: by label a mark across its bar, and what it means. ``ends``: by label the words at its
    end, the sum without them.
    """

    frame: pd.DataFrame
    x: Axis
    looks: Mapping[str, Look] = field(default_factory=dict)
    title: str = ""
    line: tuple[str, Mapping[str, float]] | None = None
    ends: Mapping[str, str] = field(default_factory=dict)

    @property
    def height(self) -> float:
        """Inches of the panel."""
        return 0.6 + 0.32 * self.frame["label"].nunique()

    def draw(self, ax: Axes, looks: Looks) -> None:
        """A bar for each label; a part with room for it has its number."""
        known = fills(self.frame["part"], self.looks)
        labels = list(dict.fromkeys(self.frame["label"]))
        sums = self.frame[self.frame["value"] > 0].groupby("label")["value"].sum()
        longest, reach = float(sums.max()) if len(sums) else 1.0, [0.0]
        for place, label in enumerate(labels):
            ends = {1: 0.0, -1: 0.0}
            for row in _rows(self.frame[self.frame["label"] == label]):
                sign = 1 if row["value"] >= 0 else -1
                start = row.get("start", ends[sign])
                self._part(ax, place, row, start, known[row["part"]], longest)
                ends[sign] = start + row["value"]
                reach += [start, start + row["value"]]
            words = self.ends.get(label, number(ends[1] + ends[-1]))
            ax.annotate(words, (max(reach) if self.ends else ends[1], place), xytext=(5, 0),
                        textcoords="offset points", va="center", fontsize=8)  # fmt: skip
            if self.line and label in self.line[1]:
                at = self.line[1][label]
                reach.append(at)
                ax.plot([at, at], [place - 0.44, place + 0.44], color=INK, linewidth=1.6,
                        label=None if place else self.line[0])  # fmt: skip
        room = max(reach) - min(reach)
        ax.set_xlim(min(reach) - (0.03 * room if min(reach) < 0 else 0), max(reach) + 0.16 * room)
        set_axis(ax, "x", Axis(self.x.label), [])
        ax.set_yticks(range(len(labels)), [in_lines(label, 44) for label in labels])
        ax.set_ylim(len(labels) - 0.4, -0.6)
        ax.grid(axis="y", visible=False)

    def _part(
        self, ax: Axes, place: int, row: Mapping[str, Any], start: float, fill: Look, longest: float
    ) -> None:
        colour, hatch = fill
        edge = FAINT if colour == "#ffffff" else "white"
        label = row["part"] if row["part"] not in ax.get_legend_handles_labels()[1] else None
        if "start" in row:  # the row is named by its part
            label = None
        ax.barh(place, row["value"], left=start, height=0.68, color=colour, hatch=hatch,
                edgecolor=edge, linewidth=0.4, label=label)  # fmt: skip
        if finite(row.get("low"), row.get("high")):
            ax.hlines(place, row["low"], row["high"], color=INK, linewidth=1.1)
        elif "start" not in row and row["value"] >= LABELLED * longest and not hatch:
            ax.text(start + row["value"] / 2, place, number(row["value"]), ha="center",
                    va="center", fontsize=8, color=_ink(to_rgb(colour)))  # fmt: skip


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
    share: bool = False
    marked: Sequence[tuple[Any, Any]] = ()

    @property
    def wide(self) -> bool:
        """Whether its columns have no room in a narrow figure."""
        return bool(self.frame["x"].nunique() > 10)

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
        high = float(np.nanmax(np.abs(grid)))
        power, word = (
            (6, "million ") if high >= 1e8 else (3, "thousand ") if high >= 1e5 else (0, "")
        )
        grid /= 10**power
        colours = colormaps["viridis_r" if self.best == "lower" else "viridis"]
        norm = _colour_range(grid)
        edges = [np.arange(len(side) + 1) - 0.5 for side in (xs, ys)]
        ax.grid(visible=False)
        mesh = ax.pcolormesh(*edges, grid, cmap=colours, norm=norm, edgecolors="white", lw=1.2)
        for i, y in enumerate(ys):
            for j, x in enumerate(xs):
                if not math.isnan(grid[i, j]):
                    if len(xs) <= MANY_COLUMNS:
                        text = f"{100 * grid[i, j]:.0f} %" if self.share else number(grid[i, j])
                        ax.text(j, i, text, ha="center", va="center", fontsize=8,
                                color=_ink(colours(norm(grid[i, j]))))  # fmt: skip
                elif said := cells.get((x, y), {}).get("word"):
                    _hole(ax, j, i, str(said))
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
        bar = ax.figure.colorbar(mesh, ax=ax, fraction=0.05, pad=0.02, aspect=18)
        bar.set_label(f"{word}{self.unit}", fontsize=8.5)
        bar.outline.set_visible(False)
        if isinstance(norm, LogNorm):
            bar.ax.yaxis.set_major_locator(log_ticks(norm.vmin or 1.0, norm.vmax or 10.0))
            bar.ax.yaxis.set_minor_locator(NullLocator())
        bar.ax.yaxis.set_major_formatter(percents if self.share else FuncFormatter(tick))


def _colour_range(values: Any) -> Normalize:
    """Colours by the value, by its logarithm where values differ a lot; of values that differ by
    little they span 10 % at least."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if low > 0 and high > WIDE_RANGE * low:
        return LogNorm(low, high)
    return Normalize(min(low, high - 0.1 * (abs(high) or 1.0)), high)


def _hole(ax: Axes, x: int, y: int, word: str) -> None:
    """A cell without a value: hatched and named, never coloured like a number."""
    ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor="#f4f5f7", edgecolor=HOLE,
                           linewidth=0, hatch="////"))  # fmt: skip
    ax.text(x, y, word.replace("_", "\n").replace(" ", "\n").lower(), ha="center", va="center",
            fontsize=6.5, linespacing=0.95,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})  # fmt: skip


@dataclass(frozen=True)
class Scatter(Form):
    """Dots: columns x, y, and as far as there are any series, size (points^2), label, colour.

    ``curves``: lines over them, as of ``Lines`` but with series that are only in the legend.
    """

    frame: pd.DataFrame
    x: Axis
    y: Axis
    title: str = ""
    curves: pd.DataFrame | None = None

    def draw(self, ax: Axes, looks: Looks) -> None:
        """Dots by series; of many an image, because an element for each is most of a page."""
        curves = self.curves if self.curves is not None else pd.DataFrame()
        parts = self.frame.assign(series=self.frame.get("series", ""))
        for series, part in parts.groupby("series", sort=False):
            colour = part["colour"].iloc[0] if "colour" in part else None
            ax.scatter(
                part["x"], part["y"], s=part.get("size", 14), alpha=0.55,
                linewidths=0, color=colour or look(looks.get(str(series), 0))["color"],
                label=str(series) or None, rasterized=len(part) > MANY_DOTS,
            )  # fmt: skip
        for row in _rows(self.frame) if "label" in self.frame else []:
            if row["label"]:
                ax.annotate(row["label"], (row["x"], row["y"]), (4, 4),
                            textcoords="offset points", fontsize=7.5)  # fmt: skip
        for name, part in curves.groupby("series", sort=False) if len(curves) else []:
            style = {"color": INK, "linewidth": 1.1, **part["style"].iloc[0]}
            ax.plot(part["x"], part["y"], **{"label": str(name) or None, **style})
        for side, axis in (("x", self.x), ("y", self.y)):
            set_axis(ax, side, axis, [*_column(self.frame, side), *_column(curves, side)])
