"""The section of the page on the warm-up of runs."""

from scalesweep.aspects.warm_up.table import WarmUp
from scalesweep.core.formatting import duration, finite, number
from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.experiment.sections import Section

_NOTE = (
    "Declared: what the program leaves out of its metrics. Detected: the median over the runs, "
    "with the least and the most of a run; counted are the steps (or epochs) before the first that "
    "stays within 5 % or five robust standard deviations of the median of the second half."
)


def warm_up_table(results: ExperimentResults, limit: int) -> Table | None:
    """Of each point the declared and the detected warm-up; None where no run keeps its steps."""
    rows = [{**row.row, **row.cells} for row in results.of(WarmUp)]
    if not rows:
        return None
    columns = [
        Column("Of", lambda row: Cell(f"{row['count']:,} {row['of']}s"), "count"),
        Column("Declared", _declared, "declared"),
        Column("Detected", _detected, "detected"),
        Column("After", lambda row: Cell(duration(row["detected_s"])), "detected_s"),
        Column("First [ms]", lambda row: Cell(number(row["first_ms"])), "first_ms"),
        Column("Steady [ms]", lambda row: Cell(number(row["steady_ms"])), "steady_ms"),
    ]
    if any(finite(row.get("steady_rate")) for row in rows):
        rate = Column("Samples/s", lambda row: Cell(number(row.get("steady_rate"))), "steady_rate")
        columns.append(rate)
    return table_of(results, rows, [("", columns)], limit)


def _declared(row: Row) -> Cell:
    return Cell(f"{row['declared']:,}" if finite(row["declared"]) else "not kept")


def _detected(row: Row) -> Cell:
    """The count, with the range over the runs where they differ; whether some never are steady."""
    if not finite(row["detected"]):
        return Cell("not steady", True)
    text = f"{row['detected']:,g}"
    if row["detected_least"] != row["detected_most"]:
        text += f" ({row['detected_least']:,} to {row['detected_most']:,})"
    late = finite(row["declared"]) and row["detected"] > row["declared"]
    if row["unsteady"]:
        text += f"; {row['unsteady']} of {row['runs']} runs still change"
    return Cell(text, bool(late or row["unsteady"]))


SECTION = Section("Warm-up", warm_up_table, lambda _results: [_NOTE])
