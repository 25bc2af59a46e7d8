"""The section of the page on the warm-up of runs."""

from scalesweep.aspects.warm_up.table import WarmUp
from scalesweep.core.formatting import duration, number
from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.experiment.sections import Section

_NOTE = (
    "Declared: what the program leaves out of its metrics. Detected: the median over the runs of "
    "the steps (or epochs) before the first that stays within 5 % or five robust standard "
    "deviations of the median of the second half."
)


def warm_up_table(results: ExperimentResults, limit: int) -> Table | None:
    """Of each point the declared and the detected warm-up; None if no run keeps its steps."""
    rows = [{**row.row, **row.cells} for row in results.of(WarmUp)]
    columns = [
        Column("Of", lambda row: Cell(f"{row['count']:,} {row['of']}s"), "count"),
        Column("Declared", _declared, "declared"),
        Column("Detected", _detected, "detected"),
        Column("After", lambda row: Cell(duration(row["detected_s"])), "detected_s"),
        Column("First [ms]", lambda row: Cell(number(row["first_ms"])), "first_ms"),
        Column("Steady [ms]", lambda row: Cell(number(row["steady_ms"])), "steady_ms"),
    ]
    return table_of(results, rows, [("", columns)], limit) if rows else None


def _declared(row: Row) -> Cell:
    return Cell("not kept" if row["declared"] is None else f"{row['declared']:,}")


def _detected(row: Row) -> Cell:
    """The count, marked if it is more than declared or some runs never are steady."""
    if row["detected"] is None:
        return Cell("not steady", True)
    changing = f"; {row['unsteady']} of {row['runs']} runs still change" if row["unsteady"] else ""
    late = row["declared"] is not None and row["detected"] > row["declared"]
    return Cell(f"{row['detected']:,g}{changing}", bool(late or row["unsteady"]))


SECTION = Section("Warm-up", warm_up_table, lambda _results: [_NOTE])
