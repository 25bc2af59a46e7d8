"""Heat maps of two parameters: real cells with their values, nothing interpolated."""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from scalesweep.analysis.types import Floats
from scalesweep.core.formatting import PHASES, apart, counted, number, text_of
from scalesweep.core.plan_format import parameter_of
from scalesweep.core.status import Status
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.figures.style import (
    HOLE,
    INK,
    NARROW,
    ORANGE,
    WIDE,
    Drawing,
    Sketch,
    caption,
    heading,
    sketch,
    tick,
)

FIRST = "heatmap"
MAX_PLANES = 3
MAX_SIDE = 24
MAX_BESIDE = 10
# Colours are by the logarithm where values differ by more.
WIDE_RANGE = 20


@dataclass(frozen=True)
class Plane:
    """Points that differ in two parameters alone: those of one source that agree in the rest."""

    sides: tuple[str, str]  # vertical, horizontal
    rest: list[str]
    cells: dict[Key, Row]  # finished points by their values of the two

    @property
    def row(self) -> Row:
        """A point of the plane."""
        return next(iter(self.cells.values()))

    def words(self, results: ExperimentResults) -> str:
        """At which values the other parameters are held."""
        words = [results.describe(self.row, self.rest)] if self.rest else []
        if len(results.sources) > 1:
            words.append(str(self.row["source"]))
        return ", ".join(words)

    @property
    def shown(self) -> dict[str, Any]:
        """``shows`` of a figure of the plane."""
        return {"where": {name: self.row.get(name) for name in (*self.rest, "source")}}


def pairs_of(results: ExperimentResults) -> list[tuple[str, str]]:
    """Every two independent parameters, as the vertical and the horizontal side of heat maps.

    Two numbers come first, then those with one parameter of names or switches; of each those
    without the scale and those with it take turns, in the plan's order. The scale is horizontal,
    names are vertical, where their labels have room.
    """
    words = {name for name in results.leaders if not results.numeric(name)}
    order = [name for name in results.leaders if name != results.scale]
    order += [results.scale] if results.scale in results.leaders else []
    turns: Counter[tuple[int, bool]] = Counter()
    ranked = []
    for first, second in combinations(order, 2):
        kind = (len(words.intersection((first, second))), second == results.scale)
        turned = second in words and first not in words
        ranked.append(
            (kind[0], turns[kind], kind[1], (second, first) if turned else (first, second))
        )
        turns[kind] += 1
    return [pair for *_, pair in sorted(ranked, key=lambda entry: entry[:3])]


def planes_of(results: ExperimentResults, sides: tuple[str, str]) -> list[Plane]:
    """The planes of two parameters, one per combination of everything else, the fullest first.

    Only those whose planned points differ in both, some of them in one alone (else no two compare),
    and that have a finished one with the metric that the experiment is about.
    """
    main = results.main
    rest = [name for name in results.leaders if name not in sides]
    place = {name: n for n, name in enumerate(results.leaders)}
    planned: dict[Key, set[Key]] = {}
    for key in results.states:
        there = tuple(key[place[name]] for name in rest)
        planned.setdefault(there, set()).add(tuple(key[place[name]] for name in sides))
    tells = {there for there, cells in planned.items() if _tells(cells)}
    groups: dict[Key, dict[Key, Row]] = {}
    for row in results.points:
        there = results.key(row, rest)
        known = main is not None and any(
            main.value(row, "mean", p) is not None for p in main.phases
        )
        if row.get("repeats") and known and there in tells:
            groups.setdefault((*there, row["source"]), {})[results.key(row, sides)] = row
    planes = [Plane(sides, rest, cells) for cells in groups.values()]
    return sorted(planes, key=lambda plane: -len(plane.cells))


def _tells(cells: Collection[Key]) -> bool:
    """Whether points differ in both sides, and some in one of them alone."""
    counts = [len(set(values)) for values in zip(*cells, strict=True)]
    return 1 < min(counts) < len(cells)


def heat_planes(results: ExperimentResults) -> tuple[list[Plane], int]:
    """The planes that get a heat map, and how many further ones there are.

    The first plane of each pair of numbers comes first, then further ones of the first pair; where
    there is no such pair, the first plane of each pair.
    """
    every = [planes for pair in pairs_of(results) if (planes := planes_of(results, pair))]
    first = [planes[0] for planes in every]
    numeric = sum(all(map(results.numeric, plane.sides)) for plane in first)
    front = first[: numeric or None]
    order = [*front, *(plane for planes in every[:1] for plane in planes[1:]), *first[len(front) :]]
    return order[:MAX_PLANES], max(0, sum(map(len, every)) - MAX_PLANES)


def heatmap_figures(results: ExperimentResults) -> list[Sketch]:
    """A figure for each of the first planes; phases side by side, with the scale on a side
    efficiencies too."""
    main = results.main
    if main is None:
        return []
    planes, left_out = heat_planes(results)
    return [
        sketch(_name(index), _heatmap, results, main, index, plane, left_out)
        for index, plane in enumerate(planes)
    ]


def _name(index: int) -> str:
    return f"{FIRST}-{index + 1}" if index else FIRST


def _axis_values(
    results: ExperimentResults, plane: Plane, planned: Collection[Key]
) -> tuple[list[Any], list[Any]]:
    """The planned values of the vertical and the horizontal side; of many those with a result."""
    ys, xs = (
        [value for value in results.values(name) if value in {key[place] for key in planned}]
        for place, name in enumerate(plane.sides)
    )
    if len(ys) > MAX_SIDE:
        there = {y for y, _ in plane.cells}
        ys = [y for y in ys if y in there][:MAX_SIDE]
    if len(xs) > MAX_SIDE:
        there = {x for y, x in plane.cells if y in ys}
        xs = [x for x in xs if x in there][:MAX_SIDE]
    return ys, xs


@dataclass(frozen=True)
class _Panel:
    """The numbers of a heat map: by the values of (vertical, horizontal), and how they are
    shown."""

    title: str
    label: str
    unit: str
    values: dict[Key, float]
    higher: bool
    ranked: bool  # whether the best is outlined
    share: bool = False

    def text(self, value: float) -> str:
        """What a cell says."""
        return f"{100 * value:.0f} %" if self.share else number(value)


def _panels(results: ExperimentResults, main: Measure, plane: Plane) -> list[_Panel]:
    """The main metric in each phase; along the scale also the efficiency.

    No best is outlined among points that compute different things (models), nor among efficiencies,
    of which every base has 100 %.
    """
    panels = []
    ranked = not any(parameter_of(results.entry, name).get("workload") for name in plane.sides)
    for phase in main.phases:
        means = {
            key: value
            for key, row in plane.cells.items()
            if (value := main.value(row, "mean", phase)) is not None
        }
        panels.append(_Panel(PHASES[phase], main.label, main.unit, means, main.higher, ranked))
    scaled = results.scaled_measure
    if results.scale in plane.sides and scaled is not None:
        same = {name: plane.row.get(name) for name in (*plane.rest, "source")}
        rows = [row for row in results.scaling if same.items() <= row.items()]
        for phase in scaled.phases:
            shares = {
                results.key(row, plane.sides): share
                for row in rows
                if (share := scaled.efficiency(row, phase)[0]) is not None
            }
            title = f"Efficiency, {PHASES[phase]}"
            panels.append(_Panel(title, "Efficiency", "", shares, True, ranked=False, share=True))
    return [panel for panel in panels if panel.values]


def _heatmap(
    results: ExperimentResults, main: Measure, index: int, plane: Plane, left_out: int
) -> Drawing:
    """Heat maps of the main metric over two parameters, a panel for each phase."""
    first, second = plane.sides
    states = _states(results, plane)
    ys, xs = _axis_values(results, plane, states)
    drawn = {(y, x) for y in ys for x in xs}
    # Of many values some are not drawn: those may be all that have an efficiency.
    panels = [each for each in _panels(results, main, plane) if drawn & each.values.keys()]
    # Many columns leave no room for labels side by side: then the panels are stacked.
    stacked = len(xs) > MAX_BESIDE and len(panels) > 1
    columns = 1 if stacked or len(panels) == 1 else 2
    lines = -(-len(panels) // columns)
    height = min(7.5 if lines < 3 else 5.0, 1.3 + 0.42 * len(ys))
    width = WIDE if len(panels) > 1 or len(xs) > MAX_BESIDE else min(WIDE, 2.2 + 0.62 * len(xs))
    figure = Figure(figsize=(max(width, NARROW), height * lines + 0.45))
    words = plane.words(results)
    head = f"{results.name}: {main.label.lower()}{f', {words}' if words else ''}{results.mark}"
    heading(figure, head)
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    parts = []
    for place, (ax, panel) in enumerate(zip(axes, panels, strict=False)):
        best = _draw(ax, panel, (xs, ys), states, columns)
        ax.set_title(panel.title)
        ax.set_xlabel(results.label(second) if place >= len(panels) - columns else "")
        if place % columns == 0:
            ax.set_ylabel(results.label(first))
        if panel.ranked:
            at = results.describe(dict(zip(plane.sides, best, strict=True)), list(plane.sides))
            value = number(panel.values[best])
            word = "highest" if panel.higher else "lowest"
            of = "drawn" if panel.values.keys() - drawn else "measured"
            parts.append(f"{panel.title}: {word} {of} {value} {panel.unit} at {at}")
    for ax in axes[len(panels) :]:
        ax.axis("off")
    cut = any(panel.values.keys() - drawn for panel in panels)
    best_words = (
        f"; outlined: the {'highest' if main.higher else 'lowest'} "
        f"{'of those drawn, others may be better, and it' if cut else 'measured, which'} may not "
        "differ clearly from its neighbours (see the findings)"
        if any(panel.ranked for panel in panels)
        else ""
    )
    more = counted(left_out, "more heat map", "more heat maps")
    text = caption(
        results, list(plane.cells.values()), main.phases,
        f"Each cell is one point, the mean over its repeats in {main.unit or 'its unit'}"
        f"{best_words}.",
        f"Efficiency: relative to the smallest {results.scale_words} of the same series."
        if any(panel.share for panel in panels) else "",
        f"Held: {words}." if plane.rest else "",
        "Hatched: no result, with the reason; the campaign excludes points on purpose."
        if any(word != Status.DONE for word in states.values()) else "",
        f"At most {MAX_SIDE} values per side are drawn; the table has all."
        if max(len(results.values(first)), len(results.values(second))) > MAX_SIDE else "",
        f"{more}, of other parameters or at other values of those held: Explore draws them."
        if left_out and index == MAX_PLANES - 1 else "",
    )  # fmt: skip
    alt = " ".join([f"{head}: {first} by {second}.", *([f"{'; '.join(parts)}."] if parts else [])])
    return Drawing(_name(index), head, text, alt, figure, plane.shown)


def _states(results: ExperimentResults, plane: Plane) -> dict[Key, str]:
    """What became of the cells of a plane: done, a cause, pending..."""
    place = {name: i for i, name in enumerate(results.leaders)}
    wanted = results.key(plane.row, plane.rest)
    words: dict[Key, str] = {}

    def cell(key: Key) -> Key | None:
        if tuple(key[place[name]] for name in plane.rest) != wanted:
            return None
        return tuple(key[place[name]] for name in plane.sides)

    for key in results.excluded:
        if (here := cell(key)) is not None:
            words[here] = Status.EXCLUDED
    for key, state in results.states.items():
        if (here := cell(key)) is not None:
            words[here] = state.word
    return words


def _colour_range(values: Floats) -> Normalize:
    """Colours by the value, by its logarithm where values differ a lot.

    Cells that differ by little get similar colours: these span 10 % at least.
    """
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if low > 0 and high > WIDE_RANGE * low:
        return LogNorm(low, high)
    return Normalize(min(low, high - 0.1 * (abs(high) or 1.0)), high)


def _draw(
    ax: Axes,
    panel: _Panel,
    sides: tuple[list[Any], list[Any]],
    states: dict[Key, str],
    beside: int,
) -> Key:
    """Draw one heat map; returns the (y, x) values of the cell with the best number.

    ``states``: what became of points without a value; ``beside``: how many panels share the width.
    """
    xs, ys = sides
    grid = np.array([[panel.values.get((y, x), math.nan) for x in xs] for y in ys], float)
    colours = colormaps["viridis" if panel.higher else "viridis_r"]
    # Long numbers would not fit their cells.
    top = float(np.nanmax(np.abs(grid)))
    power, word = (6, "million ") if top >= 1e8 else (3, "thousand ") if top >= 1e5 else (0, "")
    grid /= 10**power
    norm = _colour_range(grid)
    edges_x, edges_y = np.arange(len(xs) + 1) - 0.5, np.arange(len(ys) + 1) - 0.5
    ax.grid(False)
    mesh = ax.pcolormesh(
        edges_x, edges_y, grid, cmap=colours, norm=norm,
        edgecolors="white", linewidth=1.2,
    )  # fmt: skip
    longest = max((len(panel.text(v)) for v in grid.ravel() if not math.isnan(v)), default=1)
    room = 72 * (WIDE / beside - 1.5) / len(xs)  # points of a cell's width
    size = max(4.5, min(8.5, room / (0.7 * longest)))
    for i, y in enumerate(ys):
        for j, x in enumerate(xs):
            if math.isnan(grid[i, j]):
                state = states.get((y, x), "not planned")
                _hole(ax, j, i, "no value" if state == Status.DONE else state, size)
            else:
                ink = _contrast(colours(norm(grid[i, j])))
                text = panel.text(grid[i, j])
                ax.text(j, i, text, ha="center", va="center", color=ink, fontsize=size)
    best = np.unravel_index(np.nanargmax(grid if panel.higher else -grid), grid.shape)
    if panel.ranked:
        ax.add_patch(
            Rectangle(
                (float(best[1]) - 0.46, float(best[0]) - 0.46), 0.92, 0.92,
                fill=False, edgecolor=ORANGE, linewidth=2.6,
            )
        )  # fmt: skip
    room_for = max(8, min(24, 60 // len(xs)))
    labels = apart([text_of(x) for x in xs], room_for)
    ax.set_xticks(range(len(xs)), labels)
    ax.set_yticks(range(len(ys)), apart([text_of(y) for y in ys], 18))
    if max(map(len, labels)) * len(labels) > 44:
        ax.tick_params(axis="x", rotation=35)
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    _bar(ax, mesh, panel, word)
    return (ys[int(best[0])], xs[int(best[1])])


def _bar(ax: Axes, mesh: QuadMesh, panel: _Panel, word: str) -> None:
    """The bar of colours; ``word``: what numbers were divided by."""
    assert ax.figure is not None
    bar = ax.figure.colorbar(mesh, ax=ax, fraction=0.05, pad=0.02, aspect=18)
    unit = f" [{word}{panel.unit}]" if word or panel.unit else ""
    bar.set_label(f"{panel.label}{unit}", fontsize=8.5)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, length=2)
    if isinstance(mesh.norm, LogNorm):
        bar.ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        bar.ax.yaxis.set_minor_locator(NullLocator())
    percents = FuncFormatter(lambda value, _position: panel.text(value))
    bar.ax.yaxis.set_major_formatter(percents if panel.share else FuncFormatter(tick))


def _hole(ax: Axes, x: int, y: int, word: str, size: float) -> None:
    """A cell without a value: hatched and named, never coloured like a number."""
    ax.add_patch(
        Rectangle(
            (x - 0.5, y - 0.5), 1, 1, facecolor="#f4f5f7", edgecolor=HOLE, linewidth=0,
            hatch="" if word == "not planned" else "////",
        )
    )  # fmt: skip
    if word != "not planned":
        ax.text(
            x, y, word.replace("_", "\n").replace(" ", "\n").lower(), ha="center", va="center",
            fontsize=min(size, 6.5), color=INK, linespacing=0.95,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        )  # fmt: skip


def _contrast(colour: Sequence[float]) -> str:
    """Black or white, whichever contrasts more (relative luminance as in WCAG 2)."""

    def linear(part: float) -> float:
        return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(float(part)) for part in colour[:3])
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#000000" if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else "#ffffff"
