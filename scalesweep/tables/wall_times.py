"""The wall times of runs by scale, of which those of others are predicted."""

from collections.abc import Mapping, Sequence

import numpy as np

from scalesweep.analysis.prediction.series import Series, make_series
from scalesweep.analysis.types import Floats
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import finite
from scalesweep.tables.borders import borders_of
from scalesweep.tables.cost_parts import parts_within
from scalesweep.tables.machine import UNKNOWN, Machine, whole_point
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.provenance import FACTS, read_facts


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
    return canonical_json(
        [[point.values[n] for n in data.series_names], point.work if strong else None]
    )


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


def _error(values: Floats) -> float:
    """Relative standard error of a mean; NaN for one run."""
    if values.size < 2:
        return float("nan")
    return float(np.log(values).std(ddof=1)) / float(np.sqrt(values.size))
