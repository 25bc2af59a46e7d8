"""The tables ``causes``, ``steps`` and those of ranks: why steps are as long as
they are, and how they are distributed, at the largest finished scale of every series."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scalesweep.analysis.rank_stats import STEP, own_times, rank_matrix
from scalesweep.analysis.step_delays import FEWEST_STEPS, SINGLE_FROM, causes_of, single_steps
from scalesweep.analysis.step_work import STEP_TIMES, BadSpansError, BadStepsError, meet, step_work
from scalesweep.analysis.types import Floats
from scalesweep.aspects.steps.breakdown import MAKER as BREAKDOWN
from scalesweep.aspects.steps.breakdown import NoExchangeRow
from scalesweep.aspects.steps.causes import Accounted, cause_rows
from scalesweep.aspects.steps.pipeline import MAKER as PIPELINE
from scalesweep.aspects.steps.ranks import RankRow, StepRun, StragglerRow, rank_rows
from scalesweep.core.formatting import listed, number, percent
from scalesweep.core.rank_columns import by_rank, machine_column
from scalesweep.experiment.points_table import Shown, Table, declared_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.table.declared import Estimate, PointRow, SourceRow, column
from scalesweep.tables.bookkeeping import run_seconds
from scalesweep.tables.making import Maker, TableInputs, point_columns
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.run_arrays import each_run, largest_finished, ranks_of

MAX_POINTS = 40
MAX_CELLS = 4_000_000  # steps x ranks of all repeats of a point: the first of them, if it is more
MAX_RANK_ROWS = 8192  # of a point, in the table of ranks
_MS = 1e3


@dataclass(frozen=True, kw_only=True)
class CauseRow(SourceRow, table="causes"):
    """A cause over the repeats of a point; the last row of a point, ``all``, is of all of them."""

    repeats: int = column("runs that keep the spans of their steps", "1")
    cause: str = column("what takes longer, or `all`")
    pattern: str = column("`every step` or `single steps`")
    runs: int = column("runs that have it", "1")
    step_ranks: str = column("the ranks that it is on, separated by commas")
    steps: float = column("steps of a run that have it", "1")
    of_steps: float = column("steps of a run", "1")
    first: int | None = column("the first step that has it, from 1")
    last: int | None = column("the last step that has it")
    ms: Estimate | None = column(
        "how long it is: in every step the mean, of single ones the median", "ms"
    )
    gain_ms: Estimate = column("what a step would be shorter without it, by replay", "ms")
    unexplained_ms: Estimate | None = column(
        "of `all`: what ranks still wait for each other without all causes", "ms", default=None
    )
    decides: Estimate = column(
        "what is tested, `ms` in every step and else `gain_ms`, with the interval that decides",
        "ms",
    )
    p: float | None = column("p value of its being none, of as many as were looked for", "1")
    clear: bool = column("whether it is clear")
    reason: str = column("why it is not")
    step_ms: float = column("a step", "ms")


@dataclass(frozen=True, kw_only=True)
class StepRow(PointRow, table="steps"):
    """The steps of a point's runs, on the ranks' critical path: medians over the runs."""

    steps: float = column("how many", "1")
    p50: float = column("median", "ms")
    p95: float = column("95 % quantile", "ms")
    p99: float = column("99 % quantile", "ms")
    max: float = column("the longest", "ms")
    stalls: float = column("steps much longer than those around them, mean over the runs", "1")
    stall_steps: list[int] = column("the first 20 of the first run with any, from 1, as JSON")
    drift: float | None = column("median of the last third over that of the first, less 1", "1")


def steps_rows(inputs: TableInputs) -> Iterator[SourceRow]:
    """The rows of all tables, from the arrays of the runs, which are read once."""
    data, runs = inputs.data, inputs.runs
    if runs is None:
        return
    points = [p for group in inputs.series if (p := largest_finished(data, group)) is not None]
    for point in points[:MAX_POINTS]:
        head: dict[str, Any] = {"point": point.values, "source": point.source}
        read = list(_read(data, point, runs))
        most = max(1, MAX_RANK_ROWS // ranks_of(data, point))
        yield from rank_rows(point, [run for run in read if run.times][:most])
        if accounted := [run.accounted for run in read if run.accounted is not None]:
            yield from (CauseRow(**head, **row) for row in cause_rows(accounted))
        if steps := [run.whole for run in read if run.whole is not None]:
            yield StepRow(**point_columns(point), **distribution_of(steps))


def _read(data: ExperimentData, point: Point, runs: Path) -> Iterator[StepRun]:
    """The point's runs, but those whose steps cannot be true (the summary says why)."""
    ranks, cells = ranks_of(data, point), 0
    for row, record, samples in each_run(data, point.rows.tolist(), runs, "the tables of steps"):
        notes, work, times = record.get("notes") or {}, None, own_times(samples, ranks)
        try:
            work = step_work(samples, notes, ranks, run_seconds(record))
        except BadStepsError:
            continue
        except BadSpansError:
            times = {}
        steps, whole, accounted = rank_matrix(samples, STEP_TIMES, ranks), None, None
        if steps is not None and np.isfinite(steps).all() and steps.min() > 0:
            cells, whole = cells + steps.size, steps.max(axis=1)
            if steps.size < cells > MAX_CELLS:
                return
        if work is not None and meet(notes):
            whole, times = work.periods, {k: v for k, v in times.items() if k != STEP}
            accounted = Accounted(work, *causes_of(work))
        names = data.summary[["run_id", "repeat"]].iloc[row]
        hosts = by_rank(machine_column(record["resources"]), ranks)
        known = [str(host) for host in hosts] if hosts and all(hosts) else []
        yield StepRun(str(names["run_id"]), int(names["repeat"]), known, times, whole, accounted)


def distribution_of(runs: Sequence[Floats]) -> dict[str, Any]:
    """The columns of `steps` on runs of ``[step]`` seconds."""
    quantiles = np.median([np.quantile(run, (0.5, 0.95, 0.99, 1.0)) for run in runs], axis=0) * _MS
    long = [single_steps(run, SINGLE_FROM * float(np.median(run))) > 0 for run in runs]
    drifts = pd.Series([_drift(*each) for each in zip(runs, long, strict=True)], dtype=float)
    stalled = next((odd for odd in long if odd.any()), long[0])
    return {
        "steps": float(np.median([run.size for run in runs])),
        **dict(zip(("p50", "p95", "p99", "max"), quantiles.tolist(), strict=True)),
        "stalls": float(np.mean([odd.sum() for odd in long])),
        "stall_steps": (np.flatnonzero(stalled)[:20] + 1).tolist(),
        "drift": float(drifts.median()) if drifts.notna().any() else None,
    }


def _drift(seconds: Floats, long: NDArray[np.bool_]) -> float:
    if len(seconds) < FEWEST_STEPS:
        return math.nan
    usual, third = pd.Series(seconds).mask(long), len(seconds) // 3
    return float(usual[-third:].median() / usual[:third].median()) - 1


MAKERS = (BREAKDOWN, Maker((RankRow, StragglerRow, CauseRow, StepRow), steps_rows), PIPELINE)
PROFILES = {
    NoExchangeRow: "Exposed communication, from runs without exchange: what a measured step takes "
    "more than one of the slowest rank alone. Means over pairs of runs, with 95 % intervals."
}


_NOTE = (
    "Milliseconds, medians over the repeats, at the largest scale of each series, on the ranks' "
    "critical path. A stall is a step much longer than those around it "
    "(docs/methods/time_breakdown.md); drift: the median of the last third of the steps over that "
    "of the first, less 1."
)


def steps_table(results: ExperimentResults, limit: int) -> Table | None:
    """The steps of every point that keeps them; None where none does."""
    columns: list[Shown] = [
        ("p50", "p50", lambda row: number(row.p50)),
        ("p95", "p95", lambda row: number(row.p95)),
        ("p99", "p99", lambda row: number(row.p99)),
        ("Longest", "max", lambda row: number(row.max)),
        ("Stalls in a run", "stalls", _stalls),
        ("Drift in a run", "drift", lambda row: percent(row.drift)),
    ]
    return declared_table(results, results.of(StepRow), columns, limit)


def _stalls(row: StepRow) -> str:
    """How many a run has, and in which steps those of the first run with any are."""
    where = listed([str(place) for place in row.stall_steps], 6)
    return f"{row.stalls:.3g}" + (f" (steps {where})" if where else "")


SECTION = Section("Steps", steps_table, lambda _results: [_NOTE])
