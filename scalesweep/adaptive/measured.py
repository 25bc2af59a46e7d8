"""What finished runs have measured, for decisions on further runs.

Values are kept beside the runs with the stamps of their files (``.values.json``): a cache, rebuilt
if it cannot be read. With it a decision costs the parse of the Snakefile no reading of records.
"""

import contextlib
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from scalesweep.analysis.metrics import EPOCH_PHASES, column
from scalesweep.core.files import write_atomic
from scalesweep.core.record import RECORD
from scalesweep.core.status import Status
from scalesweep.state.run_state import RunState

VALUES = ".values.json"  # in the folder of a site's runs
Meanings = dict[str, dict[str, str]]


class Measured(NamedTuple):
    """Of a finished run its finite values by column of the summary, and what its metrics mean."""

    values: dict[str, float]
    meanings: Meanings


def measured(folder: Path, states: Mapping[str, RunState]) -> dict[str, Measured]:
    """What the finished ones among these runs of ``folder`` have measured.

    A record that is damaged, or of no use, has no values: the inventory says so.
    """
    kept: dict[str, list[Any]] = {}
    with contextlib.suppress(OSError, ValueError):
        kept = orjson.loads((folder / VALUES).read_bytes())
    done = {i: state.stamp for i, state in states.items() if state.status == Status.DONE}
    if new := [i for i, stamp in done.items() if kept.get(i, ("",))[0] != stamp]:
        from scalesweep.tables.summary import read_rows
        from scalesweep.tables.summary_row import Row

        for run_id, row in zip(new, read_rows([folder / i / RECORD for i in new]), strict=True):
            every = {**row.epochs, **row.plain} if isinstance(row, Row) else {}
            finite = {name: value for name, value in every.items() if math.isfinite(value)}
            kept[run_id] = [done[run_id], finite, row.meanings if isinstance(row, Row) else {}]
        with contextlib.suppress(OSError):
            write_atomic(folder / VALUES, orjson.dumps(kept), durable=False)
    return {i: Measured(*kept[i][1:]) for i in done}


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
