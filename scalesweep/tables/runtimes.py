"""The table `runtimes`: how long runs of counts that were not measured will take.

`snakemake plan` and job requests read its CSV (`jobs/runtime_estimates.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.factors import series_parameters
from scalesweep.analysis.prediction.forecast import predict, trusted_limit
from scalesweep.analysis.prediction.series import Series, make_series, refusal
from scalesweep.analysis.table_io import typed_values
from scalesweep.analysis.types import Floats
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import finite
from scalesweep.tables.borders import borders_of
from scalesweep.tables.cost_parts import parts_within
from scalesweep.tables.machine import UNKNOWN, Machine, whole_point
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.provenance import FACTS, read_facts


def runtime_table(
    data: ExperimentData, groups: Sequence[Sequence[Point]], machine: Machine = UNKNOWN
) -> pd.DataFrame | None:
    """A row for each run of a point that has no result, in series that can be predicted.

    ``groups``: the points of each series, by scale; those without a result are groups of their
    own; ``machine``: what probes say of it, for the parts of the costs. Columns: ``run_id``,
    ``expected_s`` and its 95 % bounds ``low_s`` and ``high_s``. From the wall times of measured
    runs, whose work per rank (in weak scaling) or in all (in strong scaling) is the same. None
    without any.
    """
    if data.experiment["scaling"] == "none":
        return None
    pending = pending_groups(data, groups)
    rows: list[tuple[str, float, float, float]] = []
    walls = wall_times(data) if pending else {}
    for group in groups:
        there = [point for point in group if point.rows.size]
        missing = pending.get(series_key(data, group[0]), []) if there else []
        if missing and there[0].source == "measured":
            rows += _rows(data, missing, wall_series(data, there, walls, machine))
    if not rows:
        return None
    frame = pd.DataFrame({"run_id": typed_values([row[0] for row in rows])})
    for place, name in enumerate(("expected_s", "low_s", "high_s"), 1):
        frame[name] = np.array([row[place] for row in rows], np.float64)
    frame.attrs["units"] = {}
    return frame


def pending_groups(
    data: ExperimentData, groups: Sequence[Sequence[Point]]
) -> dict[str, Sequence[Point]]:
    """The points without a result of each series, by ``series_key``."""
    return {
        series_key(data, group[0]): group for group in groups if group and not group[0].rows.size
    }


def series_key(data: ExperimentData, point: Point) -> str:
    """What tells the series of a point from others; not its source."""
    strong = data.experiment["scaling"] == "strong" and bool(data.experiment["work"])
    names = series_parameters(data.experiment)
    return canonical_json([[point.values[n] for n in names], point.work if strong else None])


def wall_times(data: ExperimentData) -> dict[int, float]:
    """Wall time by row of the summary, of the runs that recorded it."""
    run_ids = data.summary["run_id"].tolist()
    facts = read_facts(run_ids, data.texts(FACTS))
    return {
        row: facts[run_id].wall_s or 0.0
        for row, run_id in enumerate(run_ids)
        if run_id in facts and (facts[run_id].wall_s or 0.0) > 0
    }


def wall_series(
    data: ExperimentData,
    there: Sequence[Point],
    walls: Mapping[int, float],
    machine: Machine = UNKNOWN,
) -> Series:
    """Wall times in seconds of the runs of measured points, times the ranks in strong scaling.

    ``walls``: by row of the summary (``wall_times``). Where the costs of the points' rates have
    parts (``tables.cost_parts``, by ``machine``), so have the wall times.
    """
    scaling = str(data.experiment["scaling"])
    timed = {point.values[data.scale]: point for point in there if walls.keys() & {*point.rows}}
    points = [*timed.values()]
    times = [np.array([walls[row] for row in point.rows if row in walls]) for point in points]
    counts = np.array([*timed], np.float64)
    share = counts if scaling == "strong" else np.ones(len(counts))
    errors = np.array([_error(values) for values in times])
    costs = share * np.array([values.mean() for values in times])
    work = np.array([_samples(data, point) for point in points]) / counts * share
    parts = parts_within(data, points, work, costs, machine)
    borders = borders_of(data, points, machine) if points else None
    return make_series(counts, costs, scaling, errors, parts, borders)


def _samples(data: ExperimentData, point: Point) -> float:
    """Samples of all ranks in all epochs of a run; NaN where they are not known."""
    run = data.repeats(point, ("epochs_run", "run"))
    epochs = float(run.mean()) if run.size else whole_point(data, point).get("epochs")
    if not finite(epochs) or point.samples is None:
        return float("nan")
    return float(epochs) * point.samples


def _rows(
    data: ExperimentData, missing: Sequence[Point], series: Series
) -> list[tuple[str, float, float, float]]:
    """Run id, expected seconds and bounds of every run of the missing points, by wall times."""
    if refusal(series):
        return []
    limit = trusted_limit(series)
    # Between measured counts other estimates do: intervals hold beyond the largest only.
    every = [point.values[data.scale] for point in missing]
    wanted = [count for count in every if series.ranks[-1] < count <= limit]
    prediction = predict(series, wanted)
    low, high = prediction.interval()
    numbers: dict[str, tuple[float, ...]] = {}
    for place, count in enumerate(wanted):
        ranks = count if series.scaling == "strong" else 1
        numbers[canonical_json(count)] = tuple(
            float(values[place]) / ranks for values in (prediction.cost, low, high)
        )
    points = {canonical_json(dict(point.values)) for point in missing}
    rows: list[Any] = []
    for run in data.experiment["runs"]:
        here = {name: run["point"][name] for name in data.axes}
        known = numbers.get(canonical_json(here[data.scale]))
        if known and canonical_json(here) in points:
            rows.append((run["run_id"], *known))
    return rows


def _error(values: Floats) -> float:
    """Relative standard error of a mean; NaN for one run."""
    if values.size < 2:
        return float("nan")
    return float(np.log(values).std(ddof=1)) / float(np.sqrt(values.size))
