"""The tables ``causes``, ``steps`` and those of ranks: why steps are as long as
they are, and how they are distributed, at the largest finished scale of every series."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.rank_stats import STEP, own_times, rank_matrix
from scalesweep.analysis.step_delays import FEWEST_STEPS, SINGLE_FROM, causes_of, single_steps
from scalesweep.analysis.step_work import (
    STEP_TIMES,
    BadSpansError,
    BadStepsError,
    meet,
    shifting_operations,
    step_work,
)
from scalesweep.analysis.types import Floats
from scalesweep.aspects.steps.breakdown import MAKER as BREAKDOWN
from scalesweep.aspects.steps.breakdown import NoExchangeRow
from scalesweep.aspects.steps.causes import Accounted, cause_rows
from scalesweep.aspects.steps.pipeline import MAKER as PIPELINE
from scalesweep.aspects.steps.ranks import RankRow, StepRun, StragglerRow, rank_rows
from scalesweep.core.formatting import listed, number, percent
from scalesweep.core.rank_columns import by_rank, machine_column
from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.experiment.sections import Section
from scalesweep.table.declared import Estimate, SourceRow, column
from scalesweep.tables.bookkeeping import run_seconds
from scalesweep.tables.making import Maker, TableInputs
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
class StepRow(SourceRow, table="steps"):
    """The steps of a run, on the ranks' critical path."""

    run_id: str = column("the run")
    repeat: int = column("its repeat")
    steps: int = column("how many", "1")
    p50: float = column("median", "ms")
    p95: float = column("95 % quantile", "ms")
    p99: float = column("99 % quantile", "ms")
    max: float = column("the longest", "ms")
    stalls: int = column("steps much longer than those around them", "1")
    stall_steps: list[int] = column("the first 20 of these, from 1, as JSON")
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
        for run in read:
            if run.whole is not None:
                of = {"run_id": run.run_id, "repeat": run.repeat, **distribution_of(run.whole)}
                yield StepRow(**head, **of)


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
            accounted = Accounted(work, causes_of(work), shifting_operations(notes))
        names = data.summary[["run_id", "repeat"]].iloc[row]
        hosts = by_rank(machine_column(record["resources"]), ranks)
        known = [str(host) for host in hosts] if hosts and all(hosts) else []
        yield StepRun(str(names["run_id"]), int(names["repeat"]), known, times, whole, accounted)


def distribution_of(seconds: Floats) -> dict[str, Any]:
    """The columns of `steps` on ``seconds[step]``."""
    names = ("p50", "p95", "p99", "max")
    quantiles = (np.quantile(seconds, (0.5, 0.95, 0.99, 1.0)) * _MS).tolist()
    long = single_steps(seconds, SINGLE_FROM * float(np.median(seconds)))
    stalls, drift = np.flatnonzero(long > 0), None
    if len(seconds) >= FEWEST_STEPS:
        usual, third = pd.Series(np.where(long > 0, np.nan, seconds)), len(seconds) // 3
        change = float(usual[-third:].median() / usual[:third].median()) - 1
        drift = change if math.isfinite(change) else None
    return {
        "steps": len(seconds), **dict(zip(names, quantiles, strict=True)),
        "stalls": int(stalls.size), "stall_steps": (stalls[:20] + 1).tolist(), "drift": drift,
    }  # fmt: skip


MAKERS = (
    BREAKDOWN,
    Maker((RankRow, StragglerRow, CauseRow, StepRow), steps_rows),
    PIPELINE,
)
PROFILES = {
    NoExchangeRow: "Exposed communication, from runs without exchange: what a measured step takes "
    "more than one of the slowest rank alone. Means over pairs of runs, with 95 % intervals.",
}


_NOTE = (
    "Milliseconds, medians over the repeats, at the largest scale of each series, on the ranks' "
    "critical path. A stall is a step much longer than those around it "
    "(docs/methods/time_breakdown.md); drift: the median of the last third of the steps over that "
    "of the first, less 1."
)


def steps_table(results: ExperimentResults, limit: int) -> Table | None:
    """The steps of every point that keeps them; None where none does."""
    groups: dict[tuple[Any, ...], list[StepRow]] = {}
    for row in results.of(StepRow):
        groups.setdefault(results.point_key(row.row), []).append(row)
    planned = {results.point_key(row): row["planned"] for row in results.points}
    rows = [_merged(runs, planned[key]) for key, runs in groups.items()]
    columns = [
        *(Column(head, _number(name), name) for head, name in _SHOWN.items()),
        Column("Stalls in a run", _stalls, "stalls"),
        Column("Drift in a run", lambda row: Cell(percent(row["drift"])), "drift"),
    ]
    return table_of(results, rows, [("", columns)], limit) if rows else None


_SHOWN = {"p50": "p50", "p95": "p95", "p99": "p99", "Longest": "max"}


def _number(name: str) -> Callable[[Row], Cell]:
    return lambda row: Cell(number(row[name]))


def _merged(runs: Sequence[StepRow], planned: int) -> Row:
    """Medians over the runs of a point; of stalls the mean, and those of the first with any."""
    drifts = [run.drift for run in runs if run.drift is not None]
    return {
        **{name: float(np.median([getattr(r, name) for r in runs])) for name in _SHOWN.values()},
        **runs[0].row, "repeats": len(runs), "planned": planned,
        "drift": float(np.median(drifts)) if drifts else None,
        "stalls": float(np.mean([run.stalls for run in runs])),
        "places": next((run.stall_steps for run in runs if run.stall_steps), []),
    }  # fmt: skip


def _stalls(row: Row) -> Cell:
    """How many a run has, and in which steps those of the first run with any are."""
    where = listed([str(place) for place in row["places"]], 6)
    return Cell(f"{row['stalls']:.3g}" + (f" (steps {where})" if where else ""))


SECTION = Section("Steps", steps_table, lambda _results: [_NOTE])
