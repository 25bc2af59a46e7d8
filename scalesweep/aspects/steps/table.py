"""The tables ``causes``, ``steps`` and ``step_curve``: why steps are as long as they are, and how
they are distributed, at the largest finished scale of every series."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scalesweep.analysis.step_distribution import Distribution, curve_of, distribution_of
from scalesweep.aspects.steps.replays import CURVES, MAX_RANK_ROWS, RunSteps, cause_rows, read_steps
from scalesweep.table.declared import DeclaredRow, Estimate, column
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.run_arrays import largest_finished, ranks_of

MAX_POINTS = 40
_MS = 1e3


@dataclass(frozen=True, kw_only=True)
class _StepsRow(DeclaredRow):
    """What all three tables say of a point."""

    point: Mapping[str, Any]
    source: str | None = column("measured, simulated or imported")

    @property
    def row(self) -> dict[str, Any]:
        """The point as figures, findings and tables of the page describe it."""
        return {**self.point, "source": self.source}


@dataclass(frozen=True, kw_only=True)
class CauseRow(_StepsRow, table="causes"):
    """A cause over the repeats of a point; the last row of a point, ``all``, is of all of them."""

    repeats: int = column("runs that keep the spans of their steps", "1")
    cause: str = column("what takes longer, or `all`")
    pattern: str = column("in which steps: all, a part, many, single ones")
    runs: int = column("runs that have it", "1")
    step_ranks: str = column("the ranks that it is on, separated by commas")
    of_ranks: int = column("ranks of a run", "1")
    same_ranks: bool = column("whether they are the same in each repeat")
    longer_ms: Estimate | None = column(
        "how long it is: of one that lasts the mean, of single ones the median", "ms",
        ends=("longer_low", "longer_high"),
    )  # fmt: skip
    shortest_ms: float | None = column("the shortest, or the least over the steps", "ms")
    longest_ms: float | None = column("the longest, or the most over the steps", "ms")
    median_ms: float | None = column(
        "the median of single ones, where three quarters are about as long", "ms"
    )
    count: float | None = column("steps of a run that have it", "1")
    of_steps: float = column("steps of a run", "1")
    first: int | None = column("the first step that has it, from 1")
    last: int | None = column("the last step that has it")
    every: int | None = column("it is in every so many-th step")
    within_first: int | None = column("first step of the part that all of them lie in")
    within_last: int | None = column("last step of that part")
    same_steps: bool = column("whether it is in the same steps of each repeat")
    at_once: float | None = column("ranks that have it in such a step", "1")
    changes: float | None = column("share of these steps with other ranks than the one before", "1")
    by_rank: str = column("in how many steps of a run each rank has it, `rank: count`")
    lengths: str = column("how long each rank has it, `rank: ms`")
    parts: str = column("each rank's part of the steps, `rank: first-last`")
    ahead: str = column(
        "of `all`: by how many ms ranks compute less than the ones in the middle, "
        "`rank: least/most` of the repeats"
    )
    inferred: bool = column("whether it follows from the others' waiting: the least that it is")
    side_effects: str = column("operations of the program that shift time to others")
    step_ms: float = column("a step", "ms")
    shared: bool = column("whether all ranks have it")
    resolution_ms: float = column("of the program's clock; 0 where it is not coarse", "ms")
    stages: int = column("of a pipeline, among which the ranks are divided; 1: none", "1")
    within: bool = column("whether ranks wait for each other within a step, not at its end alone")
    gain_ms: Estimate = column(
        "what a step would be shorter without it, by replay", "ms", ends=("gain_low", "gain_high")
    )
    sure: bool = column("whether the gain lies above 0")


@dataclass(frozen=True, kw_only=True)
class StepRow(_StepsRow, table="steps"):
    """The steps of a run, or a rank's own work in them."""

    run_id: str = column("the run")
    repeat: int = column("its repeat")
    rank: int | None = column("the rank; missing: whole steps")
    steps: int = column("how many", "1")
    of: str = column("`step` or `own work`")
    p50: float = column("median", "ms")
    p95: float = column("95 % quantile", "ms")
    p99: float = column("99 % quantile", "ms")
    max: float = column("the longest", "ms")
    stalls: int = column("steps much longer than those around them", "1")
    stall_steps: str = column("the first 20 of these, from 1, as JSON")
    drift: float | None = column("median of the last third over that of the first, less 1", "1")


@dataclass(frozen=True, kw_only=True)
class CurveRow(_StepsRow, table="step_curve"):
    """The steps of a run from one on: at most 200 rows of a run."""

    run_id: str = column("the run")
    repeat: int = column("its repeat")
    step: int = column("the first of the steps, from 1")
    p50: float = column("their median", "ms")
    max: float = column("the longest of them", "ms")


def steps_rows(inputs: TableInputs) -> Iterator[_StepsRow]:
    """The rows of all three tables, from the arrays of the runs, which are read once.

    A run whose files are damaged is left out, with a line.
    """
    data, runs = inputs.data, inputs.runs
    if runs is None:
        return
    points = [p for group in inputs.series if (p := largest_finished(data, group)) is not None]
    for point in points[:MAX_POINTS]:
        read = read_steps(data, point, runs)
        head: dict[str, Any] = {"point": point.values, "source": point.source}
        accounted = [run for run in read if run.work is not None]
        if accounted and ranks_of(data, point) > 1:
            for row in cause_rows(accounted):
                yield CauseRow(**head, **row)
        for run in read:
            for step_row in _step_rows(run):
                yield StepRow(**head, **step_row)
        for run in read[:CURVES]:
            for curve_row in _curve_rows(run):
                yield CurveRow(**head, **curve_row)


MAKERS = (Maker((CauseRow, StepRow, CurveRow), steps_rows),)


def _step_rows(run: RunSteps) -> list[dict[str, Any]]:
    """The distribution of a run's steps, and of each rank's own part of them."""
    whole = run.steps.max(axis=1) if run.work is None else run.work.periods
    own = run.steps if run.work is None else run.work.own
    rows = [_distribution(run, None, distribution_of(whole))]
    if run.steps.shape[1] <= MAX_RANK_ROWS:
        for rank in range(run.steps.shape[1]):
            rows.append(_distribution(run, rank, distribution_of(own[:, rank])))
    return rows


def _distribution(run: RunSteps, rank: int | None, distribution: Distribution) -> dict[str, Any]:
    return {
        "run_id": run.run_id, "repeat": run.repeat, "rank": rank, "steps": distribution.steps,
        "of": "step" if rank is None or run.work is None else "own work",
        **{name: value * _MS for name, value in distribution.quantiles.items()},
        "max": distribution.longest * _MS, "stalls": int(distribution.stalls.size),
        "stall_steps": json.dumps([int(place) + 1 for place in distribution.stalls[:20]]),
        "drift": distribution.drift,
    }  # fmt: skip


def _curve_rows(run: RunSteps) -> list[dict[str, Any]]:
    whole = run.steps.max(axis=1) if run.work is None else run.work.periods
    return [
        {"run_id": run.run_id, "repeat": run.repeat, "step": step, "p50": middle * _MS,
         "max": longest * _MS}
        for step, middle, longest in curve_of(whole)
    ]  # fmt: skip
