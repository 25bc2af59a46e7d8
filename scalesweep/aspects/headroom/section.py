"""What each resource would allow, as the report shows it."""

from scalesweep.aspects.headroom.findings import points_of
from scalesweep.aspects.headroom.table import Headroom
from scalesweep.core.formatting import scaled_unit, with_interval
from scalesweep.experiment.points_table import Table, declared_table, share_text
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.table.declared import Estimate, numbers_of

_NOTE = (
    "What a point takes of each resource over the best that probes reach on as many ranks and "
    "nodes. Binding: the largest share of those that are known (docs/methods/machine.md)."
)


def headroom_table(results: ExperimentResults, limit: int) -> Table | None:
    """A row per point and resource; None where nothing is known."""
    rows = [row for of_point in points_of(results) for row in of_point]
    columns = [
        ("Phase", "phase", lambda row: row.phase),
        ("Resource", "resource", lambda row: row.resource),
        ("Takes", "rate", lambda row: _scaled(row, row.rate)),
        ("Of", "ceiling", lambda row: _scaled(row, row.ceiling and Estimate(row.ceiling))),
        ("Share", "share", lambda row: share_text(row.share)),
        ("", "binding", lambda row: "binding" if row.binding else ""),
        ("From", "where", lambda row: row.where or row.missing or ""),
    ]
    return declared_table(results, rows, columns, limit)


def _scaled(row: Headroom, known: Estimate | None) -> str:
    factor, unit = scaled_unit(row.unit or "", known.value if known else 0.0)
    return with_interval(*numbers_of(known, factor), unit)


SECTION = Section("Headroom", headroom_table, lambda _results: [_NOTE])
