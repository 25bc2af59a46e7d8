"""The distribution of steps as the report shows it: quantiles, stalls and drift, per rank too."""

from collections.abc import Callable

import numpy as np

from scalesweep.aspects.steps.spread import Spread, step_spreads
from scalesweep.core.formatting import finite, listed, number, percent
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
    spreads = step_spreads(results)
    shown = [spread for spread in spreads if spread.rank is None or spread.rank < MAX_RANKS]
    if not shown:
        return None
    planned = {(*results.key(row, results.axes), row["source"]): row for row in results.points}
    rows = [
        {
            **_numbers(spread), **spread.row, "spread": spread, "repeats": len(spread.runs),
            "planned": planned[
                *results.key(spread.row, results.axes), spread.row["source"]
            ]["planned"],
        }
        for spread in shown
    ]  # fmt: skip
    return table_of(results, rows, [("", _columns())], limit)


def _numbers(spread: Spread) -> Row:
    """What the columns are sorted by and exported as: of several runs what is shown of them."""
    names = ("p50", "p95", "p99", "max", "drift")
    numbers = {name: spread.median(name) for name in names}
    return {"rank": spread.rank, **numbers, "stalls": _mean_stalls(spread)}


def _columns() -> list[Column]:
    def value(name: str, words: Callable[[float], str]) -> Callable[[Row], Cell]:
        def make(row: Row) -> Cell:
            middle = _spread_of(row).median(name)
            return Cell("–" if middle is None else words(middle))

        return make

    return [
        Column("Of", lambda row: Cell(_whose(_spread_of(row))), "rank"),
        Column("p50", value("p50", number), "p50"),
        Column("p95", value("p95", number), "p95"),
        Column("p99", value("p99", number), "p99"),
        Column("Longest", value("max", number), "max"),
        Column("Stalls in a run", lambda row: Cell(_stalls(_spread_of(row))), "stalls"),
        Column("Drift in a run", value("drift", percent), "drift"),
    ]


def _spread_of(row: Row) -> Spread:
    spread: Spread = row["spread"]
    return spread


def _whose(spread: Spread) -> str:
    return "steps" if spread.rank is None else f"rank {spread.rank}"


def _mean_stalls(spread: Spread) -> float | None:
    """How many a run has."""
    return float(np.mean(spread.values("stalls"))) if spread.values("stalls") else None


def _stalls(spread: Spread) -> str:
    """How many a run has, and in which steps those of the first run with any are."""
    count = _mean_stalls(spread)
    if count is None or not finite(count):
        return "–"
    places = next((places for places in spread.stalled if places), [])
    text = number(count) if count % 1 else f"{count:.0f}"
    if not places:
        return text
    where = listed([str(place) for place in places], MAX_PLACES)
    return f"{text} (step{'s' if len(places) > 1 else ''} {where})"


SECTION = Section("Steps", steps_table, lambda _results: [_NOTE])
