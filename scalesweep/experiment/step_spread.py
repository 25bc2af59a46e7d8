"""How the steps of points are distributed, read from the tables `steps` and `step_curve`."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scalesweep.core.formatting import finite
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.tables.step_causes import cause_column

OWN_WORK = "own work"
_NUMBERS = ("steps", "p50", "p95", "p99", "max", "stalls", "drift")


@dataclass(frozen=True)
class Spread:
    """The steps of a point, or a rank's own work in them (``rank``; None: the whole steps).

    ``runs`` holds the numbers of each run (ms), ``stalled`` the places of its first long steps.
    """

    row: Row
    rank: int | None
    of: str  # ``step`` or OWN_WORK
    runs: Sequence[Mapping[str, float]]
    stalled: Sequence[Sequence[int]]

    def values(self, name: str) -> list[float]:
        """A number of all runs, those that lack it left out."""
        return [run[name] for run in self.runs if name in run]

    def median(self, name: str) -> float | None:
        """The median of a number over the runs."""
        values = self.values(name)
        return float(np.median(values)) if values else None


def step_spreads(results: ExperimentResults) -> list[Spread]:
    """Of each point the whole steps, then its ranks, in the order of the table."""
    column = _column(results)
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in results.rows("steps"):
        rank = row[column("rank")]
        key = (*results.key(row, results.axes), row["source"], int(rank) if finite(rank) else -1)
        groups.setdefault(key, []).append(row)
    spreads = []
    for key, rows in groups.items():
        runs = [
            {name: float(value) for name in _NUMBERS if finite(value := row[column(name)])}
            for row in rows
        ]
        stalled = [json.loads(row[column("stall_steps")] or "[]") for row in rows]
        rank = int(str(key[-1]))
        of = str(rows[0][column("of")])
        spreads.append(Spread(rows[0], None if rank < 0 else rank, of, runs, stalled))
    return spreads


def step_curves(
    results: ExperimentResults, of: str = "max"
) -> list[tuple[Row, dict[str, list[tuple[int, float]]]]]:
    """Of each point the longest steps along its runs, or the usual ones (``p50``): (step, ms) by
    run id."""
    column = _column(results)
    groups: dict[tuple[object, ...], tuple[Row, dict[str, list[tuple[int, float]]]]] = {}
    for row in results.rows("step_curve"):
        key = (*results.key(row, results.axes), row["source"])
        _, runs = groups.setdefault(key, (row, {}))
        at = (int(row[column("step")]), float(row[column(of)]))
        runs.setdefault(str(row[column("run_id")]), []).append(at)
    return list(groups.values())


def _column(results: ExperimentResults) -> Callable[[str], str]:
    return lambda name: cause_column(name, results.axes)
