"""What each resource would allow, as the report shows it."""

from scalesweep.aspects.limits.table import LimitRow, in_words
from scalesweep.core.formatting import percent, with_interval
from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.experiment.sections import Section

_ROW = "limit row"
_NOTE = (
    "The rate that each resource would allow if all else took no time: its measured ceiling over "
    "what a sample takes of it. Binding is the least of those that are known; a measured rate "
    "above an allowed one is a contradiction (docs/methods/machine.md)."
)


def limit_table(results: ExperimentResults, limit: int) -> Table | None:
    """A row per point and resource; None where nothing is known."""
    rows = [{**row.row, _ROW: row} for row in results.of(LimitRow)]
    columns = [
        Column("Resource", lambda row: Cell(row[_ROW].resource), "resource"),
        Column("Allowed [samples/s]", _allowed, "allowed"),
        Column("Ceiling", _ceiling, "ceiling"),
        Column("A sample takes", _takes, "per_sample"),
        Column("Measured / allowed", _share, "share"),
        Column("", _word, "binding"),
        Column("From", lambda row: Cell(row[_ROW].where or row[_ROW].missing or ""), "where"),
    ]
    return table_of(results, rows, [("", columns)], limit) if rows else None


def _allowed(row: Row) -> Cell:
    allowed = row[_ROW].allowed
    return Cell(with_interval(allowed.value, allowed.low, allowed.high) if allowed else "–")


def _ceiling(row: Row) -> Cell:
    return _scaled(row[_ROW].ceiling, row[_ROW].ceiling_unit)


def _takes(row: Row) -> Cell:
    return _scaled(row[_ROW].per_sample, row[_ROW].per_sample_unit)


def _scaled(value: float | None, unit: str | None) -> Cell:
    if value is None:
        return Cell("–")
    return Cell(in_words(value, unit or ""))


def _share(row: Row) -> Cell:
    share = row[_ROW].share
    return Cell(percent(share.value, share.low, share.high) if share else "–")


def _word(row: Row) -> Cell:
    above, binding = row[_ROW].above, row[_ROW].binding
    words = ["binding"] * binding + ["contradiction"] * above
    return Cell(", ".join(words))


SECTION = Section("Limits", ("limits",), limit_table, lambda _results: [_NOTE])
