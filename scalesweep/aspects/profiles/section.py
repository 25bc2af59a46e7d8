"""The section of the page on the parts of profiled runs."""

from scalesweep.aspects.profiles.functions import FunctionTime
from scalesweep.aspects.profiles.table import PartTime
from scalesweep.core.formatting import percent
from scalesweep.experiment.by_kind import table_by_kind
from scalesweep.experiment.points_table import Table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section

_NOTE = (
    "Share of the time of a rank by part of the program, from profiles of other tools; "
    "means over ranks and repeats with 95 % intervals."
)

_FUNCTIONS = (
    "Functions: the time that each spends in itself. Runs under a profiler are slower than those "
    "that were measured."
)


def part_table(results: ExperimentResults, limit: int) -> Table | None:
    """Share of every part of every point; None without profiles."""
    return table_by_kind(results, limit, results.of(PartTime), "part", "share", percent)


def _notes(results: ExperimentResults) -> list[str]:
    return [
        *([_NOTE] if results.rows("parts") else []),
        *([_FUNCTIONS] if results.of(FunctionTime) else []),
    ]


SECTION = Section("Parts", part_table, _notes)
