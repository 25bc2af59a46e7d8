"""Times of every rank at the largest scale, those that are slower marked and named."""

import numpy as np
import pandas as pd

from scalesweep.analysis.rank_stats import READING
from scalesweep.aspects.steps.rank_findings import WORDS
from scalesweep.aspects.steps.ranks import RankRow, StragglerRow
from scalesweep.core.formatting import counted
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import Drawing, drawn
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis

MAX_FIGURES = 2


def rank_figures(results: ExperimentResults) -> list[Drawing]:
    """A figure for each kind of time, of the point with most ranks (one with stragglers first)."""
    judged = results.of(StragglerRow)
    judged.sort(key=lambda row: (-row.of if row.rank is not None else 0, not row.named))
    kinds = {row.time: row for row in reversed(judged) if row.of > 2 or row.named
             or row.time not in READING}  # fmt: skip
    shown = list(reversed(kinds.values()))[:MAX_FIGURES]
    return [drawing for row in shown for drawing in _figure(results, row)]


def _figure(results: ExperimentResults, of: StragglerRow) -> list[Drawing]:
    """Medians and 5 to 95 % of a time over the ranks, median over the runs."""
    key = (*results.point_key(of.row), of.time)

    def here(row: RankRow | StragglerRow) -> bool:
        return (*results.point_key(row.row), row.time) == key

    rows = [row for row in results.of(RankRow) if here(row)]
    slow = [row for row in results.of(StragglerRow) if here(row) and row.named]
    late = {int(rank): _who(row) for row in slow for rank in row.step_ranks.split(", ")}
    ranks = pd.DataFrame(
        {"x": row.rank, "low": row.p05, "y": row.median, "high": row.p95} for row in rows
    )
    ranks = ranks.groupby("x").median().reset_index()
    factor, unit = (1e3, "ms") if ranks["high"].max() < 0.1 else (1.0, "s")
    ranks[["low", "y", "high"]] *= factor
    ranks["series"] = ranks["x"].map(late).fillna("median of a rank")
    ranks["style"] = np.where(ranks["x"].isin(late), "marked", "dots")
    what = WORDS[of.time]
    where = results.describe(of.row) if results.axes else counted(len(ranks), "rank")
    label = f"{what[:1].upper()}{what[1:]} [{unit}]"
    middle = {"median of all": float(ranks["y"].median())}
    panel = Lines(ranks, Axis("Rank"), Axis(label, "log", middle))
    note = "Medians of runs, warm-up and first epoch left out; lines and bands: 5 to 95 %."
    return drawn(results, f"ranks-{of.time}", f"{what} by rank, {where}", note, [panel])


def _who(row: StragglerRow) -> str:
    if row.rank is None:
        return f"host {row.host}, slower"
    return f"rank {row.rank}" + (f", {row.host}" if row.host else "") + ", slower"


FIGURES = (rank_figures,)
