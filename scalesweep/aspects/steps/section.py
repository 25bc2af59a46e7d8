"""The distribution of steps as the report shows it: quantiles, stalls and drift, per rank too."""

from collections.abc import Sequence

import numpy as np

from scalesweep.aspects.steps.table import StepRow
from scalesweep.core.formatting import listed, number, percent
from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.experiment.sections import Section

MAX_RANKS = 8  # of a point, besides its whole steps
MAX_PLACES = 6
_NOTE = (
    "Milliseconds, medians over the repeats, at the largest scale of each series: whole steps on "
    "the ranks' critical path, then each rank's own work in them (all but the exchange). A stall "
    "is a step much longer than those around it (docs/methods/time_breakdown.md); drift: the "
    "median of the last third of the steps over that of the first, less 1."
)


def steps_table(results: ExperimentResults, limit: int) -> Table | None:
    """Whole steps and ranks of every point that keeps its steps; None where none does."""
    groups: dict[object, list[StepRow]] = {}
    for row in results.of(StepRow):
        if row.rank is None or row.rank < MAX_RANKS:
            groups.setdefault((*results.point_key(row.row), row.rank), []).append(row)
    planned = {results.point_key(row): row["planned"] for row in results.points}
    rows = [_merged(runs, planned[results.point_key(runs[0].row)]) for runs in groups.values()]
    ms = [("p50", "p50"), ("p95", "p95"), ("p99", "p99"), ("Longest", "max")]
    columns = [
        Column("Of", lambda row: Cell(row["of"]), "rank"),
        *(_column(head, name) for head, name in ms),
        Column("Stalls in a run", _stalls, "stalls"),
        Column("Drift in a run", lambda row: Cell(percent(row["drift"])), "drift"),
    ]
    return table_of(results, rows, [("", columns)], limit) if rows else None


def _column(heading: str, name: str) -> Column:
    return Column(heading, lambda row: Cell(number(row[name])), name)


def _merged(runs: Sequence[StepRow], planned: int) -> Row:
    """Medians over the runs of a point, or of a rank of it; of stalls the mean."""
    rank = runs[0].rank
    row: Row = {
        name: float(np.median([getattr(run, name) for run in runs]))
        for name in ("p50", "p95", "p99", "max")
    }
    drifts = [run.drift for run in runs if run.drift is not None]
    return row | {
        **runs[0].row, "repeats": len(runs), "planned": planned, "rank": rank,
        "of": "steps" if rank is None else f"rank {rank}",
        "drift": float(np.median(drifts)) if drifts else None,
        "stalls": float(np.mean([run.stalls for run in runs])),
        "places": next((run.stall_steps for run in runs if run.stall_steps), []),
    }  # fmt: skip


def _stalls(row: Row) -> Cell:
    """How many a run has, and in which steps those of the first run with any are."""
    text = f"{row['stalls']:.3g}"
    where = listed([str(place) for place in row["places"]], MAX_PLACES)
    steps = "steps" if len(row["places"]) > 1 else "step"
    return Cell(f"{text} ({steps} {where})" if where else text)


SECTION = Section("Steps", steps_table, lambda _results: [_NOTE])
