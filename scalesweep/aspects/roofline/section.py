"""The layers of a model against what the machine could do, as the report shows them."""

from collections.abc import Callable

from scalesweep.aspects.roofline.rooflines import rooflines
from scalesweep.aspects.roofline.table import LayerRow
from scalesweep.core.formatting import counted, number, percent, with_interval
from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.experiment.sections import Section
from scalesweep.table.declared import Estimate

MOST = 12  # rows of a point besides its step: those that take longest
_NOTE = (
    "The layers of a model, each timed apart, and the whole step: means over repeats of "
    "all layers of a kind together, forward and backward. Bound and least time are by the "
    "ceilings of the machine (docs/methods/roofline.md)."
)
_LAYER = "layer row"


def layer_table(results: ExperimentResults, limit: int) -> Table | None:
    """Every point's step and the layers that take longest; None where no layers were timed."""
    points = [point for group in rooflines(results) for point in group]
    shown = [row for point in points for row in (point.step, *point.layers[:MOST])]
    rows = [{**row.cells, **row.row, _LAYER: row} for row in shown]
    columns = [
        Column("Layer", _cell(_name), "layer"),
        Column("Time [ms]", _cell(lambda row: _estimate(row.ms, with_interval)), "ms"),
        Column("Share of layers", _cell(lambda row: _words(row.of_layers, percent)), "of_layers"),
        Column("GFLOP/s", _cell(lambda row: number(row.flops * 1e-9)), "flops"),
        Column("FLOP/byte", _cell(lambda row: _words(row.intensity, number)), "intensity"),
        Column("Bound by", _cell(lambda row: row.bound or "–"), "bound"),
        Column("Least time [ms]", _cell(lambda row: _words(row.least_ms, number)), "least_ms"),
        Column("Of what it could", _cell(lambda row: _estimate(row.of_roof, percent)), "of_roof"),
        Column("Coverage", _cell(lambda row: _words(row.coverage, percent)), "coverage"),
    ]
    return table_of(results, rows, [("", columns)], limit) if rows else None


def _cell(words: Callable[[LayerRow], str]) -> Callable[[Row], Cell]:
    return lambda row: Cell(words(row[_LAYER]))


def _name(row: LayerRow) -> str:
    return f"{row.layer} ({counted(row.count, 'layer')})" if row.count > 1 else row.layer


def _words(value: float | None, words: Callable[[float], str]) -> str:
    return "–" if value is None else words(value)


def _estimate(value: Estimate | None, words: Callable[..., str]) -> str:
    return "–" if value is None else words(value.value, value.low, value.high)


SECTION = Section("Layers", layer_table, lambda _results: [_NOTE])
