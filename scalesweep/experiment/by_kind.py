"""Tables of points with a column for each phase or part."""

from collections.abc import Callable
from typing import Any

from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row


def table_by_kind(
    results: ExperimentResults,
    limit: int,
    kind: str,
    value: str,
    unit: str,
    words: Callable[..., str],
) -> Table | None:
    """The table ``<kind>s`` with a column for each phase or part; None where it is not there."""
    points: dict[tuple[Any, ...], Row] = {}
    for row in results.rows(f"{kind}s"):
        key = (*results.key(row, results.axes), row["source"])
        points.setdefault(key, {**row, "by_name": {}})["by_name"][str(row[kind])] = row
    if not points:
        return None
    rows = list(points.values())
    names = list(dict.fromkeys(name for row in rows for name in row["by_name"]))

    def cell(name: str) -> Callable[[Row], Cell]:
        def make(row: Row) -> Cell:
            held = row["by_name"].get(name, {})
            return Cell(words(*(held.get(key) for key in (value, f"{value}_low", f"{value}_high"))))

        return make

    columns = [Column(f"{name.replace('_', ' ')}{unit}", cell(name)) for name in names]
    return table_of(results, rows, [("", columns)], limit)
