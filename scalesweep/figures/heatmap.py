"""Heat maps of two parameters: real cells with their values, nothing interpolated."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter

from scalesweep.core.formatting import PHASES, counted, number, shorten, text_of
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

MAX_COMBINATIONS = 3
MAX_SIDE = 24
MAX_BESIDE = 10


def combinations(
    results: ExperimentResults,
) -> Iterator[tuple[int, str, list[str], dict[Key, Row], int]]:
    """The planes of the first two grid parameters, one per combination of everything else.

    Yields (number, description, names of the rest, rows by the values of the two, left out).
    """
    pair = results.grid[:2]
    rest = [name for name in results.leaders if name not in pair]
    groups: dict[Key, list[Row]] = {}
    for row in results.points:
        if row.get("repeats"):
            groups.setdefault((*results.key(row, rest), row["source"]), []).append(row)
    left_out = max(0, len(groups) - MAX_COMBINATIONS)
    for index, (key, rows) in enumerate(list(groups.items())[:MAX_COMBINATIONS]):
        words = [results.describe(rows[0], rest)] if rest else []
        if len({k[-1] for k in groups}) > 1:
            words.append(str(key[-1]))
        yield index, ", ".join(words), rest, {results.key(row, pair): row for row in rows}, left_out


def heatmap_figures(results: ExperimentResults) -> list[Sketch]:
    """One figure per combination of the parameters beyond the first two; phases side by side."""
    main = results.main
    if main is None:
        return []
    return [
        sketch(
            f"heatmap{f'-{index + 1}' if index else ''}",
            _heatmap, results, main, index, words, rest, cells, left_out,
        )
        for index, words, rest, cells, left_out in combinations(results)
    ]  # fmt: skip


def _axis_values(
    results: ExperimentResults, name: str, cells: dict[Key, Row], place: int
) -> list[Any]:
    values = results.values(name)
    if len(values) <= MAX_SIDE:
        return values
    finished = {key[place] for key in cells}
    return [value for value in values if value in finished][:MAX_SIDE]


def _heatmap(
    results: ExperimentResults,
    main: Measure,
    index: int,
    words: str,
    rest: list[str],
    cells: dict[Key, Row],
    left_out: int,
) -> Drawing:
    """Heat maps of the main metric over the first two parameters of the grid, a panel for each
    phase.

    ``cells``: table rows by (first, second) value; ``rest``: the parameters that are the same in
    all.
    """
    first, second = results.grid[:2]
    ys = _axis_values(results, first, cells, 0)
    xs = _axis_values(results, second, cells, 1)
    row = next(iter(cells.values()))
    states = _states(results, row, rest)
    phases = main.phases
    height = min(7.5, 1.3 + 0.42 * len(ys))
    # Many columns leave no room for labels side by side: then the phases are stacked.
    stacked = len(xs) > MAX_BESIDE and len(phases) > 1
    shape = (len(phases), 1) if stacked else (1, len(phases))
    width = WIDE if len(phases) > 1 or len(xs) > MAX_BESIDE else min(WIDE, 2.2 + 0.62 * len(xs))
    figure = Figure(figsize=(max(width, NARROW), height * shape[0] + 0.45))
    head = f"{results.name}: {main.label.lower()}{f', {words}' if words else ''}{results.mark}"
    heading(figure, head)
    axes = figure.subplots(*shape, squeeze=False).ravel()
    parts = []
    for ax, phase in zip(axes, phases, strict=True):
        best = _panel(ax, main, phase, (xs, ys), cells, states, 1 if stacked else len(phases))
        ax.set_title(PHASES[phase])
        ax.set_xlabel(results.label(second) if not stacked or ax is axes[-1] else "")
        if stacked or ax is axes[0]:
            ax.set_ylabel(results.label(first))
        if best is not None:
            value = number(main.value(cells[best], "mean", phase))
            parts.append(
                f"{PHASES[phase]}: {'highest' if main.higher else 'lowest'} measured "
                f"{value} {main.unit} at {results.describe(cells[best], [first, second])}"
            )
    more = counted(left_out, "more combination", "more combinations")
    text = caption(
        results, list(cells.values()), phases,
        f"Each cell is one point, the mean over its repeats in {main.unit or 'its unit'}; "
        f"outlined: the {'highest' if main.higher else 'lowest'} measured, which may not "
        "differ clearly from its neighbours (see the findings).",
        "Hatched: no result, with the reason; the campaign excludes points on purpose."
        if any(word != Status.DONE for word in states.values()) else "",
        f"At most {MAX_SIDE} values per side are drawn; the table has all."
        if max(len(results.values(first)), len(results.values(second))) > MAX_SIDE else "",
        f"{more} of {', '.join(rest)} only in the table."
        if left_out and index == MAX_COMBINATIONS - 1 else "",
    )  # fmt: skip
    alt = f"{head}: {first} by {second}. {'; '.join(parts)}."
    name = f"heatmap{f'-{index + 1}' if index else ''}"
    return Drawing(name, head, text, alt, figure, plane_shown(row, rest))


def plane_shown(row: Row, rest: Sequence[str]) -> dict[str, Any]:
    """``shows`` of a figure of the plane that ``row`` lies in."""
    return {"where": {name: row.get(name) for name in (*rest, "source")}}


def _states(results: ExperimentResults, row: Row, rest: Sequence[str]) -> dict[Key, str]:
    """What became of the cells of the plane that ``row`` lies in: done, a cause, pending..."""
    pair = results.grid[:2]
    place = {name: i for i, name in enumerate(results.leaders)}
    wanted = results.key(row, rest)
    words: dict[Key, str] = {}

    def cell(key: Key) -> Key | None:
        if tuple(key[place[name]] for name in rest) != wanted:
            return None
        return tuple(key[place[name]] for name in pair)

    for key in results.excluded:
        if (here := cell(key)) is not None:
            words[here] = Status.EXCLUDED
    for key, state in results.states.items():
        if (here := cell(key)) is not None:
            words[here] = state.word
    return words


def _panel(
    ax: Axes,
    main: Measure,
    phase: str,
    sides: tuple[list[Any], list[Any]],
    cells: dict[Key, Row],
    states: dict[Key, str],
    beside: int,
) -> Key | None:
    """Draw one heat map; returns the (y, x) values of the cell with the best number.

    ``states``: what became of points without a value; ``beside``: how many panels share the width.
    """
    xs, ys = sides
    grid = np.full((len(ys), len(xs)), math.nan)
    for i, y in enumerate(ys):
        for j, x in enumerate(xs):
            row = cells.get((y, x))
            value = main.value(row, "mean", phase) if row else None
            grid[i, j] = math.nan if value is None else value
    colours = colormaps["viridis" if main.higher else "viridis_r"]
    # Long numbers would not fit their cells.
    top = float(np.nanmax(np.abs(grid)))
    power, word = (6, "million ") if top >= 1e8 else (3, "thousand ") if top >= 1e5 else (0, "")
    grid /= 10**power
    low, high = float(np.nanmin(grid)), float(np.nanmax(grid))
    # Cells that differ by little get similar colours: these span 10 % at least.
    norm = Normalize(min(low, high - 0.1 * (abs(high) or 1.0)), high)
    edges_x, edges_y = np.arange(len(xs) + 1) - 0.5, np.arange(len(ys) + 1) - 0.5
    ax.grid(False)
    mesh = ax.pcolormesh(
        edges_x, edges_y, grid, cmap=colours, norm=norm,
        edgecolors="white", linewidth=1.2,
    )  # fmt: skip
    longest = max((len(number(v)) for v in grid.ravel() if not math.isnan(v)), default=1)
    room = 72 * (WIDE / beside - 1.5) / len(xs)  # points of a cell's width
    size = max(4.5, min(8.5, room / (0.7 * longest)))
    for i, y in enumerate(ys):
        for j, x in enumerate(xs):
            if math.isnan(grid[i, j]):
                _hole(ax, j, i, states.get((y, x), "not planned"), size)
            else:
                ink = _contrast(colours(norm(grid[i, j])))
                text = number(grid[i, j])
                ax.text(j, i, text, ha="center", va="center", color=ink, fontsize=size)
    best = np.unravel_index(np.nanargmax(grid if main.higher else -grid), grid.shape)
    ax.add_patch(
        Rectangle(
            (float(best[1]) - 0.46, float(best[0]) - 0.46), 0.92, 0.92,
            fill=False, edgecolor=ORANGE, linewidth=2.6,
        )
    )  # fmt: skip
    room_for = max(8, min(24, 60 // len(xs)))
    labels = [shorten(text_of(x), room_for) for x in xs]
    ax.set_xticks(range(len(xs)), labels)
    ax.set_yticks(range(len(ys)), [shorten(text_of(y), 18) for y in ys])
    if sum(map(len, labels)) > 44:
        ax.tick_params(axis="x", rotation=35)
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    assert ax.figure is not None
    bar = ax.figure.colorbar(mesh, ax=ax, fraction=0.05, pad=0.02, aspect=18)
    unit = f" [{word}{main.unit}]" if word or main.unit else ""
    bar.set_label(f"{main.label}{unit}", fontsize=8.5)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, length=2)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(tick))
    return (ys[int(best[0])], xs[int(best[1])])


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
