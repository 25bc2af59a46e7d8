"""The latency between every two ranks: a matrix, the slow links marked."""

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from scalesweep.aspects.links.table import Pair
from scalesweep.core.formatting import counted, number, shorten
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.figures.style import ORANGE, Drawing, caption, heading, left_out_words

MAX_FIGURES = 3
NAMED = 24  # hosts whose names have room beside the matrix


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
    left_out = left_out_words(max(0, len(matrices) - MAX_FIGURES))
    return [
        _matrix(results, pairs, f"links-{place}" if place > 1 else "links", left_out)
        for place, pairs in enumerate(matrices[:MAX_FIGURES], 1)
    ]


def _matrix(results: ExperimentResults, pairs: list[Pair], name: str, left_out: str) -> Drawing:
    """The latency of every two ranks in microseconds, as a matrix."""
    row = {**pairs[0].point, "source": pairs[0].source}
    ranks = max(pair.rank_b for pair in pairs) + 1
    matrix = np.full((ranks, ranks), np.nan)
    hosts: dict[int, str | None] = {}
    for pair in pairs:
        matrix[pair.rank_a, pair.rank_b] = matrix[pair.rank_b, pair.rank_a] = 1e6 * pair.latency
        hosts |= {pair.rank_a: pair.host_a, pair.rank_b: pair.host_b}
    labels = [f"{rank} {shorten(hosts[rank] or '', 16)}".strip() for rank in range(ranks)]
    figure = Figure(figsize=(6.6, 6.0))
    head = f"{results.name}: latency between every two ranks{results.mark}"
    heading(figure, head, results.describe(row) if results.axes else "")
    ax = figure.subplots()
    low, high = float(np.nanmin(matrix)), float(np.nanmax(matrix))
    image = ax.imshow(matrix, norm=LogNorm(low, max(high, 1.05 * low)), interpolation="none")
    slow = [(pair.rank_a, pair.rank_b) for pair in pairs if pair.slow]
    marks = [*slow, *((b, a) for a, b in slow)]
    ax.plot(
        [x for x, _ in marks], [y for _, y in marks], "s", mfc="none", mec=ORANGE,
        markersize=max(4.0, 200 / ranks),
    )  # fmt: skip
    ticks = range(0, ranks, -(-ranks // NAMED))
    ax.set_xticks(ticks, [labels[rank] for rank in ticks], rotation=90)
    ax.set_yticks(ticks, [labels[rank] for rank in ticks])
    ax.grid(visible=False)
    ax.set_xlabel("Rank and its host")
    figure.colorbar(image, ax=ax, shrink=0.8, format=lambda value, _: number(value, 3)).set_label(
        "Latency [µs]"
    )
    text = caption(
        results, [row], [],
        "Half the time of a message to and fro, the best repeat of each pair of the point's first "
        "run; a frame marks a slow link (docs/methods/machine.md).", left_out,
    )  # fmt: skip
    alt = (
        f"{head}: {counted(ranks, 'rank')}, {counted(len(slow), 'slow link')}. The median is "
        f"{number(float(np.nanmedian(matrix)))} µs, the slowest {number(high)} µs."
    )
    return Drawing(name, head, text, alt, figure, {"where": {a: row[a] for a in results.axes}})


FIGURES = (link_figures,)
