"""The latency between every two ranks: a matrix, the slow links marked."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, NullFormatter

from scalesweep.aspects.links.table import Pair
from scalesweep.core.formatting import counted, number, shorten
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.figures.style import HOLE, ORANGE, Drawing, caption, heading, left_out_words

MAX_FIGURES = 3
NAMED = 24  # hosts whose names have room beside the matrix
_SIDE = 4.6  # inches of the matrix


def link_figures(results: ExperimentResults) -> list[Drawing]:
    """A matrix for each point, of its first run: those with the most ranks, three at most.

    None of two ranks, which have one link.
    """
    points: dict[Key, list[Pair]] = {}
    for pair in results.of(Pair):
        of_first = points.setdefault((*results.key(pair.point, results.axes), pair.source), [])
        if not of_first or pair.run_id == of_first[0].run_id:
            of_first.append(pair)
    matrices = [pairs for pairs in points.values() if any(pair.rank_b > 1 for pair in pairs)]
    matrices.sort(key=lambda pairs: -(pairs[0].point.get("ranks") or 0))
    left_out = len(matrices) - MAX_FIGURES
    return [
        _matrix(results, pairs, place, max(0, left_out))
        for place, pairs in enumerate(matrices[:MAX_FIGURES])
    ]


def _matrix(
    results: ExperimentResults, pairs: Sequence[Pair], place: int, left_out: int
) -> Drawing:
    """The latency of every two ranks in microseconds, as a matrix."""
    row = {**pairs[0].point, "source": pairs[0].source}
    ranks = max(pair.rank_b for pair in pairs) + 1
    matrix = np.full((ranks, ranks), np.nan)
    for pair in pairs:
        matrix[pair.rank_a, pair.rank_b] = matrix[pair.rank_b, pair.rank_a] = 1e6 * pair.latency
    labels = _labels(pairs, ranks)
    longest = max(map(len, labels))
    side = _SIDE if ranks > 8 else max(1.8, 0.5 * ranks)
    margin = 0.3 + 0.075 * longest
    figure = Figure(figsize=(side + margin + 1.2, side + margin + 0.6))
    head = f"{results.name}: latency between every two ranks{results.mark}"
    heading(figure, head, results.describe(row) if results.axes else "")
    ax = figure.subplots()
    known = matrix[np.isfinite(matrix)]
    low, high = float(known.min()), max(float(known.max()), float(known.min()) * 1.05)
    colours = colormaps["viridis"].with_extremes(bad=HOLE)
    image = ax.imshow(
        matrix, cmap=colours, norm=LogNorm(low, high), interpolation="none", aspect="equal"
    )
    slow = [pair for pair in pairs if pair.slow]
    for pair in slow:
        for x, y in ((pair.rank_a, pair.rank_b), (pair.rank_b, pair.rank_a)):
            ax.add_patch(
                Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor=ORANGE, linewidth=1.6)
            )
    ticks = range(0, ranks, -(-ranks // NAMED))
    ax.set_xticks(ticks, [labels[rank] for rank in ticks], rotation=90)
    ax.set_yticks(ticks, [labels[rank] for rank in ticks])
    ax.grid(visible=False)
    ax.set_xlabel("Rank" if labels[0] == "0" else "Rank and its host")
    bar = figure.colorbar(image, ax=ax, shrink=0.8)
    bar.set_label("Latency [µs]")
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value, 3)))
    bar.ax.yaxis.set_minor_formatter(
        FuncFormatter(lambda value, _: number(value, 3)) if high < 10 * low else NullFormatter()
    )
    text = caption(
        results, [row], [],
        "Half the time of a message to and fro, the best repeat of each pair of the point's first "
        "run; a frame marks a slow link (docs/methods/machine.md).",
        left_out_words(left_out) if not place else "",
    )  # fmt: skip
    median = number(float(np.median(known)))
    alt = (
        f"{head}: {counted(ranks, 'rank')}, {counted(len(slow), 'slow link')}. The median is "
        f"{median} µs, the slowest {number(high)} µs."
    )
    name = f"links{f'-{place + 1}' if place else ''}"
    where = {axis: row[axis] for axis in results.axes}
    return Drawing(name, head, text, alt, figure, {"where": where})


def _labels(pairs: Sequence[Pair], ranks: int) -> list[str]:
    """Rank and host of each rank; the rank alone where the hosts are not known."""
    hosts: dict[int, str | None] = {}
    for pair in pairs:
        hosts[pair.rank_a], hosts[pair.rank_b] = pair.host_a, pair.host_b
    if any(hosts.get(rank) is None for rank in range(ranks)):
        return [str(rank) for rank in range(ranks)]
    return [f"{rank} {shorten(str(hosts[rank]), 16)}" for rank in range(ranks)]


FIGURES = (link_figures,)
