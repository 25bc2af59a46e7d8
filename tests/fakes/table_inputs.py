"""What tables of an experiment are made of, where they are of the files of its runs alone."""

from pathlib import Path

import pandas as pd

from scalesweep.core.plan_format import PlanExperiment
from scalesweep.tables.machine import Machine
from scalesweep.tables.making import TableInputs
from scalesweep.tables.points import ExperimentData


def of_files(
    entry: PlanExperiment, runs: Path | None, unread: list[str] | None = None
) -> TableInputs:
    """An experiment of a plan without a summary; ``unread`` takes runs that cannot be read."""
    summary = pd.DataFrame({"run_id": [], "source": [], "samples": []})
    return TableInputs(ExperimentData(summary, entry, unread=unread), [], [], Machine(), runs)
