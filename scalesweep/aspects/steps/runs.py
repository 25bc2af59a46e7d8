"""The arrays ``[step, rank]`` of all repeats of a point, read once."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.arrays import Arrays
from scalesweep.analysis.rank_stats import rank_matrix
from scalesweep.analysis.resolution import resolution_of
from scalesweep.analysis.step_delays import Causes, causes_of
from scalesweep.analysis.step_work import (
    STEP_TIMES,
    BadSpansError,
    BadStepsError,
    StepWork,
    meet,
    shifting_operations,
    step_work,
)
from scalesweep.analysis.types import Floats
from scalesweep.core.errors import UserError
from scalesweep.core.npy import NO_USE, NOT_ARRAYS
from scalesweep.core.record import RECORD, holds_matches
from scalesweep.state.record_reader import read_record
from scalesweep.tables.epoch_curves import run_seconds
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.run_arrays import arrays_of, ranks_of

_log = logging.getLogger(__name__)

MAX_CELLS = 4_000_000  # steps x ranks of all repeats of a point: the first of them, if it is more


@dataclass(frozen=True)
class Accounted:
    """The work of a run's ranks, and what makes it longer."""

    work: StepWork
    causes: Causes
    side_effects: Sequence[str] = ()
    resolution: float = 0.0  # of the clock, s; 0 if it is not coarse


@dataclass(frozen=True)
class RunSteps:
    """The steps of a run; ``accounted`` is None if it keeps no spans of them."""

    run_id: str
    repeat: int
    steps: Floats  # [step, rank], s
    accounted: Accounted | None


def read_steps(data: ExperimentData, point: Point, runs: Path) -> list[RunSteps]:
    """The runs of a point that keep their steps, as many as there is room for."""
    read: list[RunSteps] = []
    cells, ranks = 0, ranks_of(data, point)
    for row in point.rows.tolist():
        run_id = str(data.summary["run_id"].iloc[row])
        try:
            record = read_record(runs / run_id / RECORD)
            if record["samples"] is None or holds_matches(record):
                continue
            samples = arrays_of(record, runs / run_id)
            steps = rank_matrix(samples, STEP_TIMES, ranks)
            if steps is None or not np.isfinite(steps).all() or steps.min() <= 0:
                continue
            cells += steps.size
            if read and cells > MAX_CELLS:
                break
            said = record.get("notes")
            notes = said if isinstance(said, dict) else {}
            work = _work(samples, notes, ranks, run_seconds(record))
        except BadStepsError:
            continue
        except (UserError, KeyError, TypeError, *NOT_ARRAYS, *NO_USE) as error:
            if run_id not in data.unread:
                data.unread.append(run_id)
                _log.warning("%s: %s: left out of the table of steps", run_id, error)
            continue
        accounted = None
        if work is not None:
            effects, coarse = shifting_operations(notes), resolution_of(samples, ranks)
            accounted = Accounted(work, causes_of(work), effects, coarse)
        repeat = int(data.summary["repeat"].iloc[row])
        read.append(RunSteps(run_id, repeat, steps, accounted))
    return read


def _work(
    samples: Arrays, notes: Mapping[str, Any], ranks: int, seconds: float | None
) -> StepWork | None:
    """The work of the ranks; None where spans are missing, or cannot be (the summary says so), or
    ranks do not meet in their steps, as the program says. Raises BadStepsError where the steps
    cannot be, as the summary says too."""
    if not meet(notes):
        return None
    try:
        return step_work(samples, notes, ranks, seconds)
    except BadStepsError:
        raise
    except BadSpansError:
        return None
