"""The layers of a model against what the machine could do, as the report shows them."""

from collections.abc import Callable
from typing import Any

from scalesweep.core.formatting import counted, finite, number, percent, with_interval
from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.tables.roofline import STEP, roofline_column

# Rows of a point besides its step: those that take longest.
MOST = 12


def layer_table(results: ExperimentResults, limit: int) -> Table | None:
    """Every point's step and the layers that take longest; None where no layers were timed."""
    points: dict[tuple[Any, ...], list[Row]] = {}
    for row in results.rows("roofline"):
        points.setdefault((*results.key(row, results.axes), row["source"]), []).append(row)
    if not points:
        return None
    kind, ms = (roofline_column(name, results.axes) for name in ("kind", "ms"))
    rows = []
    for of_point in points.values():
        step = [row for row in of_point if row[kind] == STEP]
        layers = sorted((row for row in of_point if row[kind] != STEP), key=lambda row: -row[ms])
        rows += [*step, *layers[:MOST]]

    def value(name: str, words: Callable[..., str], factor: float = 1) -> Callable[[Row], Cell]:
        titles = [roofline_column(f"{name}{end}", results.axes) for end in ("", "_low", "_high")]

        def make(row: Row) -> Cell:
            values = [row.get(title) for title in titles]
            scaled = [value * factor if finite(value) else None for value in values]
            return Cell("–" if scaled[0] is None else words(*scaled))

        return make

    def layer(row: Row) -> Cell:
        name, count = (row[roofline_column(key, results.axes)] for key in ("layer", "count"))
        return Cell(f"{name} ({counted(int(count), 'layer')})" if count > 1 else str(name))

    def bound(row: Row) -> Cell:
        return Cell(str(row[roofline_column("bound", results.axes)] or "–"))

    def plain(figure: Any, *_bounds: Any) -> str:
        return number(figure)

    columns = [
        Column("Layer", layer, "layer"),
        Column("Time [ms]", value("ms", with_interval), "ms"),
        Column("Share of layers", value("of_layers", percent), "of_layers"),
        Column("GFLOP/s", value("flops", plain, 1e-9), "flops"),
        Column("FLOP/byte", value("intensity", plain), "intensity"),
        Column("Bound by", bound, "bound"),
        Column("Least time [ms]", value("least_ms", plain), "least_ms"),
        Column("Of what it could", value("of_roof", percent), "of_roof"),
        Column("Coverage", value("coverage", percent), "coverage"),
    ]
    return table_of(results, rows, [("", columns)], limit)
