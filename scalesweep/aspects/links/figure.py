"""The latency between every two ranks: a matrix, the slow links marked."""

import pandas as pd

from scalesweep.aspects.links.table import Pair
from scalesweep.core.formatting import shorten
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import Drawing, drawn
from scalesweep.figures.forms import Heat
from scalesweep.figures.theme import Axis

_NOTE = (
    "Half the time of a message to and fro, the best repeat of each pair of the point's first run; "
    "a frame marks a slow link (docs/methods/machine.md)."
)


def link_figures(results: ExperimentResults) -> list[Drawing]:
    """The matrix of the point with the most ranks, of its first run, in microseconds; none of two
    ranks, which have one link."""
    frame = results.tables.get(Pair.TABLE)
    if frame is None or frame["rank_b"].max() < 2:
        return []
    run = frame["run_id"][frame["rank_b"].idxmax()]
    pairs = frame[frame["run_id"] == run]
    names = {
        rank: f"{rank} {shorten(host or '', 16)}".strip()
        for side in ("a", "b")
        for rank, host in pairs[[f"rank_{side}", f"host_{side}"]].itertuples(index=False)
    }
    both = pd.concat([pairs, pairs.rename(columns={"rank_a": "rank_b", "rank_b": "rank_a"})])
    cells = both.pivot(index="rank_a", columns="rank_b", values="latency").stack(future_stack=True)
    heat = pd.DataFrame(
        {"y": names[a], "x": names[b], "value": 1e6 * value} for (a, b), value in cells.items()
    )
    slow = both.loc[both["slow"].astype(bool), ["rank_b", "rank_a"]].itertuples(index=False)
    marked = [(names[b], names[a]) for b, a in slow]
    panel = Heat(heat, Axis("Rank and its host"), Axis(), "µs", best="", marked=marked)
    row = pairs.iloc[0].to_dict()
    return drawn(results, "links", "latency between every two ranks", _NOTE, [panel],
                 detail=results.describe(row) if results.axes else "")  # fmt: skip


FIGURES = (link_figures,)
