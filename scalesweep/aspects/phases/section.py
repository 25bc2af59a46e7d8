"""The section of the page on the phases of runs."""

from scalesweep.aspects.phases.table import Phase
from scalesweep.core.formatting import with_interval
from scalesweep.experiment.by_kind import table_by_kind
from scalesweep.experiment.points_table import Table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section

_NOTE = "Seconds of rank 0, means over repeats with 95 % intervals."


def phase_table(results: ExperimentResults, limit: int) -> Table | None:
    """Seconds of every phase of every point; None where no phases are known."""
    return table_by_kind(
        results, limit, results.of(Phase), "phase", "seconds", with_interval,
        lambda name: f"{name.replace('_', ' ')} [s]",
    )  # fmt: skip


SECTION = Section("Phases", phase_table, lambda _results: [_NOTE])
