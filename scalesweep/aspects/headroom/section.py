"""What each resource would allow, as the report shows it."""

from collections.abc import Callable

from scalesweep.aspects.headroom.findings import points_of
from scalesweep.aspects.headroom.table import Headroom
from scalesweep.core.formatting import number, percent, scaled_unit, with_interval
from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.experiment.sections import Section

_ROW = "headroom row"
_NOTE = (
    "What a point takes of each resource over the best that probes reach on as many ranks and "
    "nodes. Binding: the largest share of those that are known (docs/methods/machine.md)."
)


def headroom_table(results: ExperimentResults, limit: int) -> Table | None:
    """A row per point and resource; None where nothing is known."""
    rows = [{**row.row, _ROW: row} for of_point in points_of(results) for row in of_point]
    columns = [
        Column("Phase", _cell(lambda row: row.phase), "phase"),
        Column("Resource", _cell(lambda row: row.resource), "resource"),
        Column("Takes", _cell(_rate), "rate"),
        Column("Of", _cell(lambda row: _scaled(row, row.ceiling)), "ceiling"),
        Column("Share", _cell(_share), "share"),
        Column("", _cell(lambda row: "binding" if row.binding else ""), "binding"),
        Column("From", _cell(lambda row: row.where or row.missing or ""), "where"),
    ]
    return table_of(results, rows, [("", columns)], limit) if rows else None


def _cell(words: Callable[[Headroom], str]) -> Callable[[Row], Cell]:
    return lambda row: Cell(words(row[_ROW]))


def _scaled(row: Headroom, value: float | None) -> str:
    if value is None:
        return "–"
    factor, unit = scaled_unit(row.unit or "", value)
    return f"{number(value * factor)} {unit}"


def _rate(row: Headroom) -> str:
    if row.rate is None:
        return "–"
    factor, unit = scaled_unit(row.unit or "", row.rate.value)
    low, high = (None if end is None else factor * end for end in (row.rate.low, row.rate.high))
    return with_interval(factor * row.rate.value, low, high, unit)


def _share(row: Headroom) -> str:
    return "–" if row.share is None else percent(row.share.value, row.share.low, row.share.high)


SECTION = Section("Headroom", headroom_table, lambda _results: [_NOTE])
