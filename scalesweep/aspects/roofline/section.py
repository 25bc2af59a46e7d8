"""The layers of a model against what the machine could do, as the report shows them."""

from scalesweep.aspects.roofline.rooflines import rooflines
from scalesweep.aspects.roofline.table import LayerRow
from scalesweep.core.formatting import counted, number, percent, with_interval
from scalesweep.experiment.points_table import Table, declared_table, share_text
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.table.declared import numbers_of

MOST = 12  # rows of a point besides its step: those that take longest
_NOTE = (
    "The layers of a model, each timed apart, and the whole step: means over repeats of "
    "all layers of a kind together, forward and backward. Bound and least time are by the "
    "ceilings of the machine (docs/methods/roofline.md)."
)


def layer_table(results: ExperimentResults, limit: int) -> Table | None:
    """Every point's step and the layers that take longest; None where no layers were timed."""
    points = [point for group in rooflines(results) for point in group]
    rows = [row for point in points for row in (point.step, *point.layers[:MOST])]
    columns = [
        ("Layer", "layer", _name),
        ("Time [ms]", "ms", lambda row: with_interval(*numbers_of(row.ms))),
        ("Share of layers", "of_layers", lambda row: percent(row.of_layers)),
        ("GFLOP/s", "flops", lambda row: number(row.flops * 1e-9)),
        ("FLOP/byte", "intensity", lambda row: number(row.intensity)),
        ("Bound by", "bound", lambda row: row.bound or "–"),
        ("Least time [ms]", "least_ms", lambda row: number(row.least_ms)),
        ("Of what it could", "of_roof", lambda row: share_text(row.of_roof)),
        ("Coverage", "coverage", lambda row: percent(row.coverage)),
    ]
    return declared_table(results, rows, columns, limit)


def _name(row: LayerRow) -> str:
    return f"{row.layer} ({counted(row.count, 'layer')})" if row.count > 1 else row.layer


SECTION = Section("Layers", layer_table, lambda _results: [_NOTE])
