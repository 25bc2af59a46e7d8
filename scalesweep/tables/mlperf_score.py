"""MLPerf's score of every point: the time to the target, best and worst run left out."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.stats import olympic_mean
from scalesweep.analysis.table_io import typed_values
from scalesweep.core.files import canonical_json
from scalesweep.tables.points import ExperimentData, Point

METRIC = "time_to_target"
# Runs that MLPerf HPC asks of CosmoFlow (MLPerf HPC training rules, "Benchmark Results").
STANDARD_RUNS = 10
_LABELS = {"best": "Fastest run", "worst": "Slowest run", "score": "Score"}


def score_table(data: ExperimentData, points: Sequence[Point]) -> dict[str, pd.DataFrame]:
    """Table `score`, where runs have a time to a target; points without a target are left out.

    ``runs`` are those that began, failed and unfinished ones too, ``reached`` those of them that
    met the target. ``worst`` is missing where a run did not, as that one is the worst.
    """
    if (METRIC, "run") not in data.measures:
        return {}
    aimed = [point for point in points if _has_target(data, point)]
    failed, unfinished = _by_point(data, "failed"), _by_point(data, "unfinished")
    table: dict[str, Any] = {
        name: typed_values([point.values[name] for point in aimed]) for name in data.axes
    }
    table["source"] = typed_values([point.source for point in aimed])
    rows = []
    for point in aimed:
        key = canonical_json(point.values)
        # What failed here is no run of those whose results were imported.
        others = 0 if point.source == "imported" else failed.get(key, 0)
        rows.append(_row(data, point, unfinished.get(key, 0) + others))
    for place, name in enumerate(("planned", "runs", "reached")):
        table[name] = np.array([row[place] for row in rows], np.int64)
    for place, name in enumerate(_LABELS, start=3):
        table[name] = np.array([row[place] for row in rows], np.float64)
    table["standard"] = np.array([row[1] == STANDARD_RUNS for row in rows], bool)
    frame = pd.DataFrame(table)
    frame.attrs["units"] = {
        name: {"label": label, "unit": "s", "better": "lower", "scope": "total"}
        for name, label in _LABELS.items()
    }
    return {"score": frame}


def _row(data: ExperimentData, point: Point, without: int) -> tuple[float, ...]:
    """Planned, runs, reached, best, worst and score of a point."""
    times = data.repeats(point, (METRIC, "run"))
    runs = int(point.rows.size) + without
    missed = runs - times.size
    return (
        point.planned,
        runs,
        times.size,
        float(times.min()) if times.size else math.nan,
        float(times.max()) if times.size and not missed else math.nan,
        olympic_mean(times, missed),
    )


def _has_target(data: ExperimentData, point: Point) -> bool:
    """Whether the point says what is to be reached, if its benchmark has such a parameter."""
    targets = data.targets(point)
    return not targets or any(value is not None for value in targets)


def _by_point(data: ExperimentData, status: str) -> dict[str, int]:
    """How many runs of each point have a status."""
    found: dict[str, int] = {}
    for run in data.experiment["runs"]:
        if run["status"] == status:
            key = canonical_json({name: run["point"][name] for name in data.axes})
            found[key] = found.get(key, 0) + 1
    return found
