"""The section of the page on memory."""

from scalesweep.aspects.memory.table import GIB, WRONG, MemoryRow
from scalesweep.core.formatting import number, percent
from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.experiment.sections import Section

_ROW = "memory row"
_NOTE = (
    "Predicted: what the rank that needs the most memory takes, by a model fitted to all other "
    "points (docs/methods/memory.md). Measured / expected: the measured peak over what the model "
    "expects of the rank that was measured."
)


def memory_table(results: ExperimentResults, limit: int) -> Table | None:
    """Predicted and measured bytes of every point; None where there are none."""
    rows = [{**row.row, _ROW: row} for row in results.of(MemoryRow)]
    parts = [
        Column("Weights, gradients, optimiser", lambda row: _gib(_states(row[_ROW])), "weights"),
        Column("Activations", lambda row: _gib(row[_ROW].activations), "activations"),
        Column("Logits", lambda row: _gib(row[_ROW].logits), "logits"),
        Column("Other", lambda row: _gib(row[_ROW].overhead), "overhead"),
        Column("Sum", lambda row: _gib(row[_ROW].needed), "needed"),
    ]
    measured = [
        Column("Measured [GiB]", lambda row: _gib(row[_ROW].measured), "measured"),
        Column("Measured / expected", _ratio, "ratio"),
        Column("Predicted / device", _share, "device"),
        Column("Verdict", _verdict, "verdict"),
        Column("Outcome", _outcome, "outcome"),
    ]
    groups = [("Predicted [GiB]", parts), ("", measured)]
    return table_of(results, rows, groups, limit) if rows else None


def _states(row: MemoryRow) -> float:
    return row.weights + row.gradients + row.optimizer


def _gib(value: float | None) -> Cell:
    return Cell("–" if value is None else number(value / GIB))


def _ratio(row: Row) -> Cell:
    ratio = row[_ROW].ratio
    return Cell("–" if ratio is None else number(ratio))


def _share(row: Row) -> Cell:
    memory = row[_ROW]
    return Cell("–" if memory.device is None else percent(memory.needed / memory.device))


def _verdict(row: Row) -> Cell:
    return Cell("will not start" if row[_ROW].obstacle else row[_ROW].verdict or "–")


def _outcome(row: Row) -> Cell:
    return Cell(row[_ROW].outcome or "–", bad=row[_ROW].called == WRONG)


SECTION = Section("Memory", memory_table, lambda _results: [_NOTE])
