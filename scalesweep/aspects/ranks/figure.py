"""Step times of every rank at the largest scale, those that are slower marked and named."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from scalesweep.analysis.rank_stats import (
    ALONE,
    EPOCH,
    INPUT,
    OF_STEPS,
    READING,
    STEP,
    STEP_INPUT,
    STEP_WORK,
    WORK,
)
from scalesweep.analysis.types import Floats
from scalesweep.aspects.ranks.stragglers import HIDDEN, Straggler, Times, rank_times, stragglers
from scalesweep.core.formatting import counted, listed, number, shorten
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.style import (
    BLUE,
    FAINT,
    INK,
    NARROW,
    ORANGE,
    WIDE,
    Drawing,
    caption,
    heading,
    points_shown,
    spread_axis,
)

MAX_FIGURES = 2
MAX_BOXES = 64  # more ranks are drawn as bands
MAX_LABELS = 6
FEW = 20  # values of a rank, of which a quantile near the end is the end
WIDE_FROM = 17
TITLES = {
    WORK: "own time of an epoch",
    INPUT: "wait for input in an epoch",
    STEP_WORK: "own time of a step",
    STEP_INPUT: "wait for input in a step",
    STEP: "step time",
    EPOCH: "epoch time",
}


def rank_figures(results: ExperimentResults) -> list[Drawing]:
    """A figure for each kind of time, of the point with most ranks (one with stragglers first)."""
    best: dict[str, tuple[Times, list[Straggler]]] = {}
    for times in rank_times(results):
        here = (times, stragglers(times))
        known = best.setdefault(times.kind, here)
        if not known[1] and here[1] and times.ranks == known[0].ranks:
            best[times.kind] = here
    # Two ranks that wait equally long for input show nothing.
    shown = [
        (times, slow)
        for times, slow in best.values()
        if times.ranks > 2 or times.kind not in READING or slow
    ]
    return [_drawn(results, *pair) for pair in shown[:MAX_FIGURES]]


def _drawn(results: ExperimentResults, times: Times, slow: Sequence[Straggler]) -> Drawing:
    """The spread of a time over the ranks, those of ``slow`` marked: boxes, or bands for many
    ranks."""
    what = TITLES[times.kind]
    where = results.describe(times.row) if results.axes else counted(times.ranks, "rank")
    head = f"{results.name}: {what} by rank, {where}{results.mark}"
    figure = Figure(figsize=(WIDE if times.ranks >= WIDE_FROM else NARROW, 3.7))
    heading(figure, head)
    ax = figure.subplots()
    names = ("p05", "p25", "median", "p75", "p95")
    quantiles = {name: times.middle(name) for name in names}
    factor, unit = (1e3, "ms") if max(map(np.max, quantiles.values())) < 0.1 else (1.0, "s")
    quantiles = {name: values * factor for name, values in quantiles.items()}
    named = {rank for straggler in slow for rank in straggler.ranks}
    draw = _boxes if times.ranks <= MAX_BOXES else _bands
    handles = draw(ax, quantiles, named)
    spread_axis(ax, [float(quantiles["p05"].min()), float(quantiles["p95"].max())])
    if times.ranks > 2:
        middle = float(np.median(quantiles["median"]))
        style: dict[str, Any] = {"color": FAINT, "linewidth": 1, "linestyle": (0, (5, 1.5))}
        ax.axhline(middle, zorder=0, **style)
        handles.append(Line2D([], [], label="median of all", **style))
    _labels(ax, slow, quantiles["p95"])
    ax.set_xlabel("Rank")
    ax.set_ylabel(f"{what[:1].upper()}{what[1:]} [{unit}]")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlim(-0.7, times.ranks - 0.3)
    columns = len(handles) if times.ranks >= WIDE_FROM else 2
    figure.legend(handles=handles, loc="outside lower left", ncols=columns, columnspacing=1.2)
    text = caption(results, [times.row | {"repeats": len(times.runs)}], [], *_words(times, slow))
    medians = quantiles["median"]
    alt = (
        f"{head}: medians of {counted(times.ranks, 'rank')} from {number(float(medians.min()))} to "
        f"{number(float(medians.max()))} {unit}. {_named(slow)}"
    )
    shows = points_shown(results, [times.row])
    return Drawing(f"ranks-{times.kind}", head, text, alt, figure, shows)


def _boxes(ax: Axes, quantiles: dict[str, Floats], named: set[int]) -> list[Any]:
    """A line, a bar and a mark for each rank; legend entries."""
    count = quantiles["median"].size
    width = max(2.0, min(9.0, 180 / count))
    size = 4.0 if count > 32 else 6.0
    handles: list[Any] = []
    for colour, marker, word, places in _groups(count, named):
        ends = [quantiles[name][places] for name in ("p05", "p95", "p25", "p75")]
        ax.vlines(places, ends[0], ends[1], color=colour, linewidth=1)
        ax.vlines(places, ends[2], ends[3], color=colour, linewidth=width, alpha=0.45)
        style: dict[str, Any] = {
            "color": colour, "marker": marker, "linestyle": "none",
            "markersize": 7 if colour == ORANGE else size,
            "markeredgecolor": "white", "markeredgewidth": 0.5,
        }  # fmt: skip
        ax.plot(places, quantiles["median"][places], zorder=3, **style)
        handles.append(Line2D([], [], label=word, **style))
    handles.append(Line2D([], [], color=BLUE, alpha=0.45, linewidth=6, label="25 to 75 %"))
    handles.append(Line2D([], [], color=BLUE, linewidth=1, label="5 to 95 %"))
    return handles


def _bands(ax: Axes, quantiles: dict[str, Floats], named: set[int]) -> list[Any]:
    """Bands over the ranks, with a mark at those that are named; legend entries."""
    ranks = np.arange(quantiles["median"].size)
    handles: list[Any] = []
    for low, high, alpha, word in (
        ("p05", "p95", 0.2, "5 to 95 %"),
        ("p25", "p75", 0.45, "25 to 75 %"),
    ):
        edges = (quantiles[low], quantiles[high])
        ax.fill_between(ranks, *edges, color=BLUE, alpha=alpha, linewidth=0)
        handles.insert(0, Line2D([], [], color=BLUE, alpha=alpha, linewidth=6, label=word))
    ax.plot(ranks, quantiles["median"], color=INK, linewidth=0.7)
    handles.insert(0, Line2D([], [], color=INK, linewidth=0.7, label="median of a rank"))
    places = sorted(named)
    if places:
        style: dict[str, Any] = {
            "color": ORANGE, "marker": "^", "markersize": 7, "linestyle": "none",
            "markeredgecolor": "white", "markeredgewidth": 0.5,
        }  # fmt: skip
        ax.vlines(
            places, quantiles["p05"][places], quantiles["p95"][places], color=ORANGE, linewidth=1
        )
        ax.plot(places, quantiles["median"][places], zorder=3, **style)
        handles.append(Line2D([], [], label="slower than the others", **style))
    return handles


def _groups(count: int, named: set[int]) -> list[tuple[str, str, str, list[int]]]:
    """Colour, marker, words and ranks of those that are not named and those that are."""
    others = [rank for rank in range(count) if rank not in named]
    groups = [(BLUE, "o", "median of a rank", others)]
    groups += [(ORANGE, "^", "slower than the others", sorted(named))] if named else []
    return groups


def _labels(ax: Axes, slow: Sequence[Straggler], tops: Floats) -> None:
    """Write who is slow over its mark; of a host over the highest of its ranks."""
    for straggler in [straggler for straggler in slow if straggler.ranks][:MAX_LABELS]:
        rank = max(straggler.ranks, key=lambda rank: float(tops[rank]))
        late = rank > 0.8 * tops.size
        ax.annotate(
            shorten(_who(straggler), 30), (rank, float(tops[rank])), xytext=(0, 4),
            textcoords="offset points", ha="right" if late else "left", va="bottom", fontsize=8,
            color=INK,
        )  # fmt: skip


def _who(straggler: Straggler) -> str:
    if straggler.rank is None:
        return f"host {straggler.host}"
    return f"rank {straggler.rank}" + (f", {straggler.host}" if straggler.host else "")


def _words(times: Times, slow: Sequence[Straggler]) -> list[str]:
    """What a caption says of the values, and of those that are marked."""
    least, most = min(times.steps), max(times.steps)
    noun = "step" if times.kind in OF_STEPS else "epoch"
    values = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    runs = len(times.runs)
    parts = [
        f"Quantiles of {values} {noun if most == 1 else noun + 's'} for each rank,",
        f"each the median over {runs:,} runs." if runs > 1 else "of one run.",
        "Warm-up steps are left out." if times.kind in OF_STEPS else
        "The first epoch is left out where there are more.",
        "With so few values, 5 and 95 % are nearly the smallest and largest." if most < FEW else "",
    ]  # fmt: skip
    return [
        *parts,
        _named(slow),
        "" if slow or times.kind in ALONE else f"{HIDDEN[:1].upper()}{HIDDEN[1:]}.",
    ]


def _named(slow: Sequence[Straggler]) -> str:
    if not slow:
        return "No rank is slower than the others by the rule in docs/methods/intervals.md."
    named = [f"{_who(straggler)} ({number(straggler.ratio)} times)" for straggler in slow]
    return f"Slower than the others: {listed(named, MAX_LABELS)}."


FIGURES = (rank_figures,)
