"""What tables of an experiment are made of, where they are of the files of its runs alone."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from scalesweep.core.plan_format import PlanExperiment
from scalesweep.tables.machine import Machine
from scalesweep.tables.making import TableInputs
from scalesweep.tables.points import ExperimentData


def of_files(
    entry: PlanExperiment,
    runs: Path | None,
    unread: list[str] | None = None,
    done: Sequence[str] = (),
) -> TableInputs:
    """An experiment of a plan without a summary but for the ``done`` runs; ``unread`` takes runs
    that cannot be read."""
    summary = pd.DataFrame({"run_id": [*done], "source": None, "samples": None})
    return TableInputs(ExperimentData(summary, entry, unread=unread), [], [], Machine(), runs)
