"""The table ``runtimes``: how long runs of counts that were not measured will take.

`snakemake plan` and job requests read its CSV (``planning/runtime_estimates.py``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scalesweep.analysis.prediction.forecast import predict, trusted_limit
from scalesweep.analysis.prediction.series import Series, refusal
from scalesweep.core.files import canonical_json
from scalesweep.table.declared import DeclaredRow, Estimate, column
from scalesweep.tables.making import TableInputs
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.wall_times import pending_groups, series_key, wall_series, wall_times


@dataclass(frozen=True, kw_only=True)
class Runtime(DeclaredRow, table="runtimes"):
    """A run of a point that has no result, in a series that can be predicted."""

    run_id: str = column("the run")
    expected_s: Estimate = column("the wall time of its program", "s", ends=("low_s", "high_s"))


def runtime_rows(inputs: TableInputs) -> Iterator[Runtime]:
    """A row for each run of a point that has no result, where its series can be predicted.

    From the wall times of measured runs, whose work per rank (in weak scaling) or in all (in strong
    scaling) is the same.
    """
    data = inputs.data
    if data.experiment["scaling"] == "none" or data.scale not in data.axes:
        return
    pending = pending_groups(data, inputs.series)
    walls = wall_times(data) if pending else {}
    for group in inputs.series:
        measured = [point for point in group if point.rows.size]
        missing = pending.get(series_key(data, group[0]), []) if measured else []
        if missing and measured[0].source == "measured":
            series = wall_series(data, measured, walls, inputs.machine)
            yield from _rows(data, missing, series)


def _rows(data: ExperimentData, missing: Sequence[Point], series: Series) -> Iterator[Runtime]:
    """Every run of the missing points that can be predicted, by wall times."""
    if refusal(series):
        return
    limit = trusted_limit(series)
    # Between measured counts other estimates do: intervals hold beyond the largest only.
    every = [point.values[data.scale] for point in missing]
    wanted = [count for count in every if series.ranks[-1] < count <= limit]
    forecast = predict(series, wanted)
    low, high = forecast.interval()
    expected: dict[str, Estimate] = {}
    for place, count in enumerate(wanted):
        ranks = count if series.scaling == "strong" else 1
        seconds = (float(values[place]) / ranks for values in (forecast.cost, low, high))
        expected[canonical_json(count)] = Estimate(*seconds)
    points = {canonical_json(dict(point.values)) for point in missing}
    for run in data.experiment["runs"]:
        point = {name: run["point"][name] for name in data.axes}
        known = expected.get(canonical_json(point[data.scale]))
        if known and canonical_json(point) in points:
            yield Runtime(run_id=run["run_id"], expected_s=known)
