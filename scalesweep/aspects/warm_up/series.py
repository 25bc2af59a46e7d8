"""The times of a point's steps from the first of the warm-up on, over its ranks and runs.

Of a program that keeps no steps, those of its epochs.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.arrays import Arrays
from scalesweep.analysis.rank_stats import rank_matrix
from scalesweep.analysis.steady_state import SteadyState, steady_state
from scalesweep.analysis.step_work import STEP_TIMES
from scalesweep.analysis.types import Floats
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import finite
from scalesweep.core.npy import NO_USE, NOT_ARRAYS
from scalesweep.core.record import RECORD, WARMUP_STEP_TIMES, holds_matches
from scalesweep.state.record_reader import read_record
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.run_arrays import arrays_of, ranks_of

_log = logging.getLogger(__name__)

STEP, EPOCH = "step", "epoch"
FEWEST = 8  # steps or epochs: of fewer nobody can say where they become steady
MAX_RUNS = 12  # of a point
MAX_CELLS = 1_000_000  # steps x ranks of all runs of a point: the first of them, if it is more
# A curve has each of so many first steps by itself, the others in at most so many groups.
SINGLE, GROUPS = 100, 100
QUANTILES = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class RunTimes:
    """Seconds of the steps (or epochs) of a run, ``[step, rank]``, the warm-up's first.

    ``declared``: how many of them the program counts as its warm-up; None where it keeps none of
    these. ``samples``: that all ranks handle in a step; None where the run does not say.
    """

    of: str  # STEP or EPOCH
    seconds: Floats
    declared: int | None
    samples: float | None

    @property
    def state(self) -> SteadyState:
        """Where the times become steady."""
        return steady_state(self.seconds, self.declared or 0)

    def until(self, count: int) -> float:
        """Seconds that the first so many steps take, by the median of the ranks."""
        return float(np.median(self.seconds[:count], axis=1).sum()) if count else 0.0


@dataclass(frozen=True)
class Group:
    """Steps next to each other: the first (from 1), how many, and their ms over ranks and runs."""

    first: int
    steps: int
    low: float
    middle: float
    high: float


def run_times(data: ExperimentData, point: Point, runs: Path) -> list[RunTimes]:
    """Those of the point's runs that keep them, of one kind; as many as there is room for.

    A run whose files are damaged is left out, with a line.
    """
    kept: list[RunTimes] = []
    cells, ranks = 0, ranks_of(data, point)
    for row in point.rows.tolist():
        run_id = str(data.summary["run_id"].iloc[row])
        try:
            times = _read(runs / run_id, ranks)
        except (UserError, KeyError, TypeError, *NOT_ARRAYS, *NO_USE) as error:
            if run_id not in data.unread:
                data.unread.append(run_id)
                _log.warning("%s: %s: left out of the warm-up", run_id, error)
            continue
        if times is None and not kept:
            return []  # runs of a point keep the same arrays
        cells += 0 if times is None else times.seconds.size
        if kept and cells > MAX_CELLS:
            break
        if times is not None and (not kept or times.of == kept[0].of):
            kept.append(times)
        if len(kept) == MAX_RUNS:
            break
    return kept


def _read(folder: Path, ranks: int) -> RunTimes | None:
    """The times of a run; None where it keeps too few. Raises what damaged files raise."""
    record = read_record(folder / RECORD)
    if record["samples"] is None or holds_matches(record):
        return None
    return times_of(record, arrays_of(record, folder), ranks)


def times_of(
    record: Mapping[str, Any], samples: Arrays | Mapping[str, Any], ranks: int
) -> RunTimes | None:
    """The times of steps that a run's arrays hold, else of epochs; None where there are too few, or
    where they cannot be times."""
    steps = rank_matrix(samples, STEP_TIMES, ranks)
    if steps is not None:
        warm_up = rank_matrix(samples, WARMUP_STEP_TIMES, ranks)
        known = WARMUP_STEP_TIMES in samples
        seconds = steps if warm_up is None else np.concatenate([warm_up, steps])
        declared = (0 if warm_up is None else len(warm_up)) if known else None
        of, count = STEP, (record.get("notes") or {}).get("batch")
        count = count.get("global") if isinstance(count, dict) else None
    else:
        epochs = rank_matrix(samples, "global_times", ranks)
        epochs = rank_matrix(samples, "local_times", ranks) if epochs is None else epochs
        if epochs is None:
            return None
        seconds, declared, of = epochs, 1, EPOCH
        count = (record.get("work") or {}).get("samples_per_epoch")
    if len(seconds) < FEWEST or not np.isfinite(seconds).all() or seconds.min() <= 0:
        return None
    return RunTimes(of, seconds, declared, float(count) if finite(count) and count > 0 else None)


def grouped(times: Sequence[Floats]) -> Iterator[Group]:
    """The curve of runs ``[step, rank]``: quantiles of ms over ranks and runs, of each of the first
    ``SINGLE`` steps and of groups of those that follow; of runs that are shorter, what they have.
    """
    for first, last in _bounds(max(map(len, times))):
        values = np.concatenate([run[first:last].ravel() for run in times]) * 1e3
        low, middle, high = np.quantile(values, QUANTILES).tolist()
        yield Group(first + 1, last - first, low, middle, high)


def _bounds(steps: int) -> list[tuple[int, int]]:
    """First step of each group, from 0, and the one behind its last."""
    single = steps if steps <= SINGLE + GROUPS else SINGLE
    ends = [*range(single), *np.linspace(single, steps, GROUPS + 1).round().astype(int).tolist()]
    ends = ends if single < steps else list(range(steps + 1))
    return list(pairwise(ends))
