"""How the steps of points are distributed, read from the tables `steps` and `step_curve`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scalesweep.aspects.steps.table import CurveRow, StepRow
from scalesweep.core.formatting import finite
from scalesweep.experiment.results import ExperimentResults, Key, Row

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
    groups: dict[Key, list[StepRow]] = {}
    for row in results.of(StepRow):
        key = (*results.key(row.point, results.axes), row.source, row.rank)
        groups.setdefault(key, []).append(row)
    spreads = []
    for rows in groups.values():
        runs = [
            {name: float(value) for name in _NUMBERS if finite(value := row.cells[name])}
            for row in rows
        ]
        stalled = [json.loads(row.stall_steps or "[]") for row in rows]
        spreads.append(Spread(rows[0].row, rows[0].rank, rows[0].of, runs, stalled))
    return spreads


def step_curves(
    results: ExperimentResults, of: str = "max"
) -> list[tuple[Row, dict[str, list[tuple[int, float]]]]]:
    """Of each point the longest steps along its runs, or the usual ones (``p50``): (step, ms) by
    run id."""
    groups: dict[Key, tuple[Row, dict[str, list[tuple[int, float]]]]] = {}
    for row in results.of(CurveRow):
        key = (*results.key(row.point, results.axes), row.source)
        _, runs = groups.setdefault(key, (row.row, {}))
        runs.setdefault(row.run_id, []).append((row.step, float(row.cells[of])))
    return list(groups.values())
