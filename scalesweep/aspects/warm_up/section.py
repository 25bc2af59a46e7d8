"""The section of the page on the warm-up of runs."""

from scalesweep.aspects.warm_up.table import WarmUp
from scalesweep.core.formatting import duration, number
from scalesweep.experiment.points_table import Cell, Shown, Table, declared_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section

_NOTE = (
    "Declared: what the program leaves out of its metrics. Detected: the median over the runs of "
    "the steps before the first that stays within 5 % or five robust standard "
    "deviations of the median of the second half."
)


def warm_up_table(results: ExperimentResults, limit: int) -> Table | None:
    """Of each point the declared and the detected warm-up; None if no run keeps its steps."""
    columns: list[Shown] = [
        ("Steps", "count", lambda row: f"{row.count:,}"),
        ("Declared", "declared", _declared),
        ("Detected", "detected", _detected),
        ("After", "detected_s", lambda row: duration(row.detected_s)),
        ("First [ms]", "first_ms", lambda row: number(row.first_ms)),
        ("Steady [ms]", "steady_ms", lambda row: number(row.steady_ms)),
    ]
    return declared_table(results, results.of(WarmUp), columns, limit)


def _declared(row: WarmUp) -> str:
    return "not kept" if row.declared is None else f"{row.declared:,}"


def _detected(row: WarmUp) -> Cell:
    """The count, marked if it is more than declared or some runs never are steady."""
    if row.detected is None:
        return Cell("not steady", True)
    changing = f"; {row.unsteady} of {row.runs} runs still change" if row.unsteady else ""
    late = row.declared is not None and row.detected > row.declared
    return Cell(f"{row.detected:,g}{changing}", bool(late or row.unsteady))


SECTION = Section("Warm-up", warm_up_table, lambda _results: [_NOTE])
