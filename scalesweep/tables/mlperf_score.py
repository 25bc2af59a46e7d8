"""MLPerf's score of every point: the time to the target, best and worst run left out."""

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.stats import olympic_mean
from scalesweep.analysis.table_io import typed_values
from scalesweep.core.files import canonical_json
from scalesweep.core.status import Status
from scalesweep.tables.epoch_curves import TRAINED
from scalesweep.tables.points import ExperimentData, Point

METRIC = "time_to_target"
# Runs that MLPerf HPC asks of CosmoFlow (MLPerf HPC training rules, "Benchmark Results").
STANDARD_RUNS = 10
WEAK, UNCLEAR = "weak", "unclear"
_LABELS = {"best": "Fastest run", "worst": "Slowest run", "score": "Score"}


def score_table(data: ExperimentData, points: Sequence[Point]) -> dict[str, pd.DataFrame]:
    """Table `score`, where runs have a time to a target; points without a target are left out.

    ``runs`` are those that began, failed and unfinished ones too, ``reached`` those of them that
    met the target. ``worst`` is missing where a run did not, as that one is the worst.

    Models that were trained at the same time for a weak submission have no score: their result is
    ``models_per_minute``, those that met the target over the time from the first start to the last
    stop (MLPerf HPC training rules, "Weak-scaling"). Where runs overlap and nothing says of which
    kind they are there is neither; ``at_once`` is ``weak``, ``unclear`` or empty.
    """
    if (METRIC, "run") not in data.measures:
        return {}
    aimed = [point for point in points if _has_target(data, point)]
    failed, unfinished = _by_point(data, Status.FAILED), _by_point(data, Status.UNFINISHED)
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
    at_once = [_at_once(data, point) for point in aimed]
    rates = [
        _models_per_minute(data, point) if said == WEAK else math.nan
        for point, said in zip(aimed, at_once, strict=True)
    ]
    table["score"][[bool(said) for said in at_once]] = math.nan
    table["models_per_minute"] = np.array(rates, np.float64)
    table["at_once"] = typed_values(at_once, str)
    table["standard"] = np.array([row[1] == STANDARD_RUNS for row in rows], bool)
    frame = pd.DataFrame(table)
    frame.attrs["units"] = {
        name: {"label": label, "unit": "s", "better": "lower", "scope": "total"}
        for name, label in _LABELS.items()
    }
    frame.attrs["units"]["models_per_minute"] = {
        "label": "Models per minute", "unit": "models/min", "better": "higher", "scope": "total",
    }  # fmt: skip
    return {"score": frame}


def _trained(data: ExperimentData, point: Point) -> list[tuple[int, float, float, str | None]]:
    """Row, begin, end (Unix time, s) and kind of submission of the runs that say it, by begin."""
    texts = data.texts(TRAINED)
    said = [(row, *json.loads(texts[row])) for row in point.rows.tolist() if texts[row]]
    return sorted(said, key=lambda run: run[1])


def _at_once(data: ExperimentData, point: Point) -> str:
    """Whether the runs of a point are models that were trained at the same time."""
    runs = _trained(data, point)
    kinds = {kind for *_, kind in runs}
    if WEAK in kinds:
        return WEAK
    overlap = any(before[2] > after[1] for before, after in pairwise(runs))
    return UNCLEAR if overlap and None in kinds else ""


def _models_per_minute(data: ExperimentData, point: Point) -> float:
    """Models that met the target in a minute, all trained at the same time."""
    runs = _trained(data, point)
    times = data.numbers(METRIC, "mean", "run")
    reached = [run for run in runs if math.isfinite(times[run[0]])]
    if not reached or len(runs) < point.rows.size:
        return math.nan
    return 60 * len(reached) / (max(run[2] for run in reached) - min(run[1] for run in runs))


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
    counts: dict[str, int] = {}
    for run in data.experiment["runs"]:
        if run["status"] == status:
            key = canonical_json({name: run["point"][name] for name in data.axes})
            counts[key] = counts.get(key, 0) + 1
    return counts
