"""What finished runs have measured, for decisions on further runs."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from scalesweep.analysis.metrics import EPOCH_PHASES, column
from scalesweep.core.formatting import finite
from scalesweep.core.record import RECORD
from scalesweep.core.status import Status
from scalesweep.state.run_state import RunState


class Measured(NamedTuple):
    """Of a finished run its finite values by column of the summary, and what its metrics mean."""

    values: Mapping[str, float]
    meanings: Mapping[str, Mapping[str, str]]


def measured(folder: Path, states: Mapping[str, RunState]) -> dict[str, Measured]:
    """What the finished ones among these runs of ``folder`` have measured.

    Their rows are those of the summary, kept beside the runs. A record that is damaged, or of no
    use, has no values: the inventory says so.
    """
    done = {i: folder / i / RECORD for i, state in states.items() if state.status == Status.DONE}
    if not done:
        return {}
    from scalesweep.tables.summary import ROWS, rows_of  # NumPy
    from scalesweep.tables.summary_row import Row

    rows = rows_of([*done.values()], folder / ROWS)
    measured = {}
    for run_id, path in done.items():
        row = rows[path]
        every = {**row.epochs, **row.plain} if isinstance(row, Row) else {}
        values = {name: value for name, value in every.items() if finite(value)}
        measured[run_id] = Measured(values, row.meanings if isinstance(row, Row) else {})
    return measured


def values_of(metric: str, runs: Mapping[str, Measured]) -> dict[str, float]:
    """A metric by run, as in findings: of epochs after the first one, if there are several."""
    for phase in (*reversed(EPOCH_PHASES), "run"):
        name = column(metric, "mean", phase)
        if values := {i: run.values[name] for i, run in runs.items() if name in run.values}:
            return values
    return {}


def metric_of(preferred: Iterable[str], runs: Mapping[str, Measured]) -> str:
    """The first metric that the runs have: of the ``preferred`` ones, else of all; else empty."""
    others = sorted({name for run in runs.values() for name in run.meanings})
    return next((name for name in (*preferred, *others) if values_of(name, runs)), "")
