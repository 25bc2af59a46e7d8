"""Tables of points with a column for each phase, part or term."""

from collections.abc import Callable, Sequence
from typing import Any

from scalesweep.experiment.points_table import Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.table.declared import SourceRow, numbers_of


def table_by_kind(
    results: ExperimentResults,
    limit: int,
    rows: Sequence[SourceRow],
    kind: str,
    value: str,
    words: Callable[..., str],
    heading: Callable[[str], str] = str,
) -> Table | None:
    """A row per point of declared rows: for each ``kind`` their estimate ``value``, as ``words`` of
    it and its bounds; None without rows."""
    points: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        point = points.setdefault(results.point_key(row.row), {**row.row, "by kind": {}})
        point["by kind"][getattr(row, kind)] = getattr(row, value)
    names = list(dict.fromkeys(name for point in points.values() for name in point["by kind"]))

    def cell(name: str) -> Callable[[Row], str]:
        return lambda point: words(*numbers_of(point["by kind"].get(name)))

    columns = [Column(heading(name), cell(name)) for name in names]
    return table_of(results, list(points.values()), [("", columns)], limit) if points else None


def by_kind(
    results: ExperimentResults, rows: Sequence[SourceRow], kind: str, value: str
) -> list[tuple[Row, dict[str, float]]]:
    """Each point with the values of its rows by ``kind``, without those that are missing."""
    points: dict[tuple[Any, ...], tuple[Row, dict[str, float]]] = {}
    for row in rows:
        if (estimate := getattr(row, value)) is not None:
            parts = points.setdefault(results.point_key(row.row), (row.row, {}))[1]
            parts[getattr(row, kind)] = estimate.value
    return list(points.values())
