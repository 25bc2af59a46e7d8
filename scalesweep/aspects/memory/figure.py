"""The figure ``memory``: measured peaks over what the model expects."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from scalesweep.aspects.memory.table import GIB, OUT_OF_MEMORY, MemoryFitRow, MemoryRow
from scalesweep.core.formatting import counted, number, percent
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.style import (
    BLUE,
    FAINT,
    INK,
    ORANGE,
    WIDE,
    Drawing,
    caption,
    evenly,
    heading,
    log_axis,
    log_ticks,
    points_shown,
    tick,
)

MAX_POINTS = 600  # of each kind


def memory_figures(results: ExperimentResults) -> list[Drawing]:
    """Measured against expected bytes, with runs out of memory at the device's."""
    rows, fits = results.of(MemoryRow), results.of(MemoryFitRow)
    measured = evenly([row for row in rows if row.measured is not None], MAX_POINTS)
    if not measured or not fits:
        return []
    failed = evenly(
        [row for row in rows if row.outcome == OUT_OF_MEMORY and row.device], MAX_POINTS
    )
    head = f"{results.name}: measured memory of a rank, and what the model expects{results.mark}"
    figure = Figure(figsize=(WIDE, 4.2))
    heading(figure, head)
    ax = figure.subplots()
    _draw(ax, measured, failed, fits[0].spread)
    figure.legend(loc="outside lower left", ncols=3, columnspacing=1.2)
    drawn = [row.row for row in (*measured, *failed)]
    text = caption(
        results, drawn, [],
        "Each point is predicted by a fit without it. Dashed: measured as expected, and two "
        "standard deviations of residuals on either side.",
        "Crosses: runs out of memory, at what the rank that needs the most was predicted to need "
        "and at what its device has."
        if failed else "",
    )  # fmt: skip
    near = fits[0].error or math.nan
    alt = f"{head}: {counted(len(measured), 'peak')}, half of them within {percent(near)}."
    return [Drawing("memory", head, text, alt, figure, points_shown(results, drawn))]


def _draw(
    ax: Axes, measured: Sequence[MemoryRow], failed: Sequence[MemoryRow], spread: float
) -> None:
    """Draw dots, crosses, the line of equals with its band, and the device."""
    expected = [row.expected / GIB for row in measured]
    peaks = [(row.measured or math.nan) / GIB for row in measured]
    needed = [row.needed / GIB for row in failed]
    devices = [(row.device or math.nan) / GIB for row in failed]
    values = [*expected, *peaks, *needed]
    ends = [min(values) / 1.15, max(values) * 1.15]
    band = math.exp(2 * spread)
    ax.fill_between(
        ends, [v / band for v in ends], [v * band for v in ends], color=FAINT, alpha=0.35, lw=0
    )
    ax.plot(ends, ends, color=INK, linestyle="--", lw=1)
    ax.scatter(expected, peaks, s=14, color=BLUE, alpha=0.7, lw=0, label="measured peak")
    if failed:
        ax.scatter(needed, devices, s=22, color=ORANGE, marker="x", lw=1, label="out of memory")
    known = {row.device for row in measured if row.device} | {row.device for row in failed}
    if len(known) == 1:
        device = (known.pop() or math.nan) / GIB
        if ends[0] < device < 3 * ends[1]:
            label = f"the device has {number(device)} GiB"
            ax.axhline(device, color=INK, linestyle=":", lw=1.1, label=label)
            ends[1] = max(ends[1], 1.15 * device)
    ax.set_xscale("log")
    log_axis(ax, [*peaks, *devices])
    ax.set_xlim(*ends)
    ax.xaxis.set_major_locator(FixedLocator(log_ticks(*ends)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(tick))
    ax.set_xlabel("Expected by the model [GiB]")
    ax.set_ylabel("Measured [GiB]")


FIGURES = (memory_figures,)
