"""The table `timeline`: where the time of a step goes in Horovod's timelines, by phase.

Of runs under ``profile: horovod_timeline``, from the file that they left, and of imported
timelines, from what the import noted in their records.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from scalesweep.analysis.horovod_timeline import NOTE, read_timeline, timeline_rows
from scalesweep.aspects.profiles.functions import done_runs, head_of, noted, profile_files
from scalesweep.core.errors import UserError
from scalesweep.core.profilers import HOROVOD_TIMELINE, TIMELINE
from scalesweep.table.declared import DeclaredRow, column
from scalesweep.tables.making import TableInputs

MAX_RUNS = 12


@dataclass(frozen=True, kw_only=True)
class TimelinePhase(DeclaredRow, table="timeline", leading=("run_id",)):
    """A phase of a step in a run with a timeline; what it does not show is missing."""

    run_id: str = column("the run with a timeline")
    phase: str = column("what Horovod does: negotiation, queue, wait for data, copies, ... idle")
    share: float | None = column("share of a step", "1")
    ms: float | None = column("time per step", "ms")
    steps: int = column("steps of the whole run", "1")


def phase_rows(inputs: TableInputs) -> Iterator[TimelinePhase]:
    """A row per run with a timeline, of at most MAX_RUNS, and phase; those that imports noted in
    records too."""
    data = inputs.data
    if inputs.runs is None:
        return
    for run in done_runs(data, HOROVOD_TIMELINE)[:MAX_RUNS]:
        try:
            files = profile_files(inputs.runs / run["run_id"])
            (file,) = (path for path in files if path.name == TIMELINE)
            rows = timeline_rows(read_timeline(file.read_text()))
        except (UserError, OSError, ValueError):
            data.unread.append(run["run_id"])
            continue
        yield from (TimelinePhase(**head_of(run, data.axes), **row) for row in rows)
    for imported, rows in noted(inputs, NOTE, MAX_RUNS):
        yield from (TimelinePhase(**head_of(imported, data.axes), **row) for row in rows)
