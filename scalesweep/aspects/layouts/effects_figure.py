"""The figure of what one choice of a layout changes at each scale."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scalesweep.aspects.layouts.effects import LayoutEffect
from scalesweep.aspects.layouts.words import effects_of_layouts
from scalesweep.core.formatting import counted, number
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.style import (
    FAINT,
    INK,
    WIDE,
    Drawing,
    evenly,
    heading,
    log_axis,
    look,
    scale_axis,
)

MAX_SETTINGS, MAX_PARAMETERS, MAX_VALUES = 3, 5, 6
_SHIFT = 1.03  # of the values of a scale, so that their bars do not cover each other

# By what is computed and parameter the rows of its values.
_Panels = Mapping[tuple[str, str], Sequence[LayoutEffect]]


def effect_figures(results: ExperimentResults) -> list[Drawing]:
    """A row for each of what is computed, a panel for each choice: ratios over the scales."""
    panels: dict[tuple[str, str], list[LayoutEffect]] = {}
    for row in effects_of_layouts(results):
        panels.setdefault((row.setting, row.parameter), []).append(row)
    settings = list(dict.fromkeys(setting for setting, _ in panels))[:MAX_SETTINGS]
    names = list(dict.fromkeys(name for _, name in panels))[:MAX_PARAMETERS]
    if results.main is None or not settings:
        return []
    shown = {key: rows for key, rows in panels.items() if key[0] in settings and key[1] in names}
    return [_drawn(results, shown, settings, names)]


def _drawn(
    results: ExperimentResults, panels: _Panels, settings: Sequence[str], names: Sequence[str]
) -> Drawing:
    main = results.main
    assert main is not None
    columns = len(names)
    width = WIDE if columns > 2 else WIDE * 0.62
    figure = Figure(figsize=(width, 0.8 + 2.1 * len(settings)))
    head = f"{results.name}: what one choice changes, all else being equal{results.mark}"
    heading(figure, head)
    grid = figure.subplots(len(settings), columns, squeeze=False, sharex=True, sharey="row")
    scales = sorted({row.scale for rows in panels.values() for row in rows})
    for line, setting in enumerate(settings):
        ends = [
            end
            for name in names
            for row in panels.get((setting, name), [])
            for end in (row.quarter, row.three_quarters)
        ]
        for place, name in enumerate(names):
            ax = grid[line, place]
            rows = panels.get((setting, name), [])
            ax.axhline(1, color=INK, lw=0.9)
            if rows:
                _panel(ax, rows)
                title = f"{name} against {rows[0].base}"
                ax.set_title(title, fontsize=8.5, fontweight="normal")
                ax.legend(
                    fontsize=7, handlelength=1.2, borderaxespad=0.2, labelspacing=0.25, loc="best"
                )
            else:
                ax.text(0.5, 0.5, "no pairs", transform=ax.transAxes, ha="center", color=FAINT)
        log_axis(grid[line, 0], [*ends, 0.9, 1.1])
        word = main.label.lower() if main.label[1:2].islower() else main.label
        grid[line, 0].set_ylabel(f"{setting}\nratio of {word}".strip())
    for ax in grid[-1]:
        scale_axis(ax, scales, results.scale)
    pairs = sum(row.pairs for rows in panels.values() for row in rows)
    better = "more is better" if main.higher else "less is better"
    text = (
        f"Ratio of {main.label.lower()} ({better}) to the layout that has the value in the title "
        "and is the same in all other choices; data-parallel ranks and accumulation follow. "
        f"Marks: median over the pairs of a scale; bars: the middle half of them. "
        f"{counted(pairs, 'pair')}; the table layout_effects has how many each mark is of."
    )
    last = max((row for rows in panels.values() for row in rows), key=lambda row: row.scale)
    alt = (
        f"{head}: for example {last.parameter} {last.value} against {last.base} at "
        f"{results.scaled(last.scale)} gives {number(last.median)} times."
    )
    return Drawing("layouts-effects", head, text, alt, figure, {"where": {}})


def _size(value: str) -> tuple[float, str]:
    """Numbers by size, before names."""
    return (float(value), "") if value.replace(".", "", 1).isdigit() else (math.inf, value)


def _panel(ax: Axes, rows: Sequence[LayoutEffect]) -> None:
    """A line for each value: the median over the pairs of each scale, with their middle half."""
    values = evenly(sorted({row.value for row in rows}, key=_size), MAX_VALUES)
    for place, value in enumerate(values):
        of = [row for row in rows if row.value == value]
        x = [row.scale * _SHIFT ** (place - (len(values) - 1) / 2) for row in of]
        medians = [row.median for row in of]
        low = [row.median - row.quarter for row in of]
        high = [row.three_quarters - row.median for row in of]
        ax.errorbar(x, medians, yerr=[low, high], **look(place), ms=3.5, lw=1.1, elinewidth=0.7,
                    label=value)  # fmt: skip
