"""The latency between every two ranks: a matrix, the slow links marked."""

import pandas as pd

from scalesweep.aspects.links.table import Pair
from scalesweep.core.formatting import shorten
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.figures.drawing import Drawing, drawn
from scalesweep.figures.forms import Heat
from scalesweep.figures.theme import Axis

MAX_FIGURES = 3


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
    return [
        drawing
        for place, pairs in enumerate(matrices[:MAX_FIGURES], 1)
        for drawing in _matrix(results, pairs, f"links-{place}" if place > 1 else "links")
    ]


def _matrix(results: ExperimentResults, pairs: list[Pair], name: str) -> list[Drawing]:
    """The latency of every two ranks in microseconds."""
    row = pairs[0].point
    names: dict[int, str] = {}
    for pair in pairs:
        for rank, host in ((pair.rank_a, pair.host_a), (pair.rank_b, pair.host_b)):
            names[rank] = f"{rank} {shorten(host or '', 16)}".strip()
    known = {(pair.rank_a, pair.rank_b): pair for pair in pairs}
    known |= {(b, a): pair for (a, b), pair in known.items()}
    cells = [(a, b, known.get((a, b))) for a in sorted(names) for b in sorted(names)]
    frame = pd.DataFrame(
        {"y": names[a], "x": names[b], "value": pair and 1e6 * pair.latency} for a, b, pair in cells
    )
    slow = [(names[b], names[a]) for a, b, pair in cells if pair and pair.slow]
    note = (
        "Half the time of a message to and fro, the best repeat of each pair of the point's first "
        "run; a frame marks a slow link (docs/methods/machine.md)."
    )
    panel = Heat(frame, Axis("Rank and its host"), Axis(), "µs", best="", marked=slow)
    return drawn(results, name, "latency between every two ranks", note, [panel],
                 detail=results.describe(row) if results.axes else "",
                 shows={"where": {axis: row[axis] for axis in results.axes}})  # fmt: skip


FIGURES = (link_figures,)
