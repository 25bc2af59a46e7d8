"""Times of every rank at the largest scale, those that are slower marked and named."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from scalesweep.analysis.rank_stats import READING
from scalesweep.aspects.ranks.findings import WORDS
from scalesweep.aspects.ranks.table import RankRow, StragglerRow
from scalesweep.core.formatting import counted, listed, number, shorten
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.style import (
    BLUE,
    FAINT,
    INK,
    ORANGE,
    WIDE,
    Drawing,
    caption,
    heading,
    points_shown,
    spread_axis,
)
from scalesweep.findings.base import point_key

MAX_FIGURES, MAX_LABELS = 2, 6


def rank_figures(results: ExperimentResults) -> list[Drawing]:
    """A figure for each kind of time, of the point with most ranks (one with stragglers first)."""
    judged = results.of(StragglerRow)
    judged.sort(key=lambda row: (-row.of if row.rank is not None else 0, not row.named))
    kinds = {row.time: row for row in reversed(judged) if row.of > 2 or row.named
             or row.time not in READING}  # fmt: skip
    return [_drawn(results, row) for row in reversed(kinds.values())][:MAX_FIGURES]


def _drawn(results: ExperimentResults, of: StragglerRow) -> Drawing:
    """Medians, 25 to 75 % and 5 to 95 % of a time over the ranks."""
    key = (*point_key(results, of.row), of.time)

    def here(row: RankRow | StragglerRow) -> bool:
        return (*point_key(results, row.row), row.time) == key

    rows = [row for row in results.of(RankRow) if here(row)]
    slow = [row for row in results.of(StragglerRow) if here(row) and row.named]
    ranks, runs = max(row.rank for row in rows) + 1, len({row.run_id for row in rows})
    names = ("p05", "p25", "median", "p75", "p95")
    values = np.array([[getattr(row, name) for name in names] for row in rows])
    bands = np.median(values.reshape(runs, ranks, len(names)), axis=0).T  # [quantile, rank]
    factor, unit = (1e3, "ms") if bands.max() < 0.1 else (1.0, "s")
    bands *= factor
    what = WORDS[of.time]
    where = results.describe(of.row) if results.axes else counted(ranks, "rank")
    head = f"{results.name}: {what} by rank, {where}{results.mark}"
    figure = Figure(figsize=(WIDE, 3.4))
    heading(figure, head)
    ax = figure.subplots()
    late = sorted({int(rank) for row in slow for rank in row.step_ranks.split(", ")})
    _draw(ax, bands, late)
    for row in slow[:MAX_LABELS]:
        rank = int(row.step_ranks.split(", ")[0])
        side: dict[str, Any] = {"ha": "right" if rank > 0.8 * ranks else "left", "va": "bottom"}
        ax.annotate(
            shorten(_who(row), 30), (rank, bands[-1, rank]), xytext=(0, 4), fontsize=8, color=INK,
            textcoords="offset points", **side,
        )  # fmt: skip
    spread_axis(ax, [float(bands.min()), float(bands.max())])
    ax.set_xlabel("Rank")
    ax.set_ylabel(f"{what[:1].upper()}{what[1:]} [{unit}]")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlim(-0.7, ranks - 0.3)
    figure.legend(loc="outside lower left", ncols=4, columnspacing=1.2)
    texts = [f"{_who(row)} ({number(row.ratio.value)} times)" for row in slow]
    said = f"Slower than the others: {listed(texts, MAX_LABELS)}." if slow else (
        "No rank is slower than the others by the rule in docs/methods/intervals.md."
    )  # fmt: skip
    text = caption(
        results, [of.row | {"repeats": runs}], [],
        "Quantiles for each rank, median over runs; warm-up steps and the first epoch are left "
        "out.", said,
    )  # fmt: skip
    alt = f"{head}: medians from {number(bands[2].min())} to {number(bands[2].max())} {unit}. "
    shows = points_shown(results, [of.row])
    return Drawing(f"ranks-{of.time}", head, text, alt + said, figure, shows)


def _draw(ax: Axes, bands: Any, late: list[int]) -> None:
    """``bands[quantile, rank]``, ranks that are ``late`` in a colour of their own."""
    ranks = np.arange(bands.shape[1])
    others = np.setdiff1d(ranks, late)
    width = max(1.5, min(9.0, 360 / ranks.size))
    for places, colour, marker, word in (
        (others, BLUE, "o", "median of a rank"),
        (np.array(late, int), ORANGE, "^", "slower than the others"),
    ):
        if places.size:
            low, lower, middle, upper, high = bands[:, places]
            first = places is others
            five, quarter = ("5 to 95 %", "25 to 75 %") if first else ("_five", "_quarter")
            ax.vlines(places, low, high, color=colour, linewidth=1, label=five)
            ax.vlines(places, lower, upper, color=colour, lw=width, alpha=0.45, label=quarter)
            size = min(6.0, width)
            ax.plot(places, middle, marker, color=colour, markersize=size, label=word, zorder=3)
    ax.axhline(np.median(bands[2]), color=FAINT, lw=1, ls=(0, (5, 1.5)), label="median of all")


def _who(row: StragglerRow) -> str:
    if row.rank is None:
        return f"host {row.host}"
    return f"rank {row.rank}" + (f", {row.host}" if row.host else "")


FIGURES = (rank_figures,)
