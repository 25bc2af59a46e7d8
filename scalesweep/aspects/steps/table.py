"""The tables ``causes``, ``steps`` and ``step_curve``: why steps are as long as they are, and how
they are distributed, at the largest finished scale of every series."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scalesweep.analysis.step_distribution import Distribution, curve_of, distribution_of
from scalesweep.analysis.types import Floats
from scalesweep.aspects.steps.causes import cause_rows
from scalesweep.aspects.steps.runs import RunSteps, read_steps
from scalesweep.table.declared import DeclaredRow, Estimate, column
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.run_arrays import largest_finished, ranks_of

MAX_POINTS = 40
MAX_RANK_ROWS = 64  # of a run
CURVES = 12  # runs of a point that have one
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
    inferred: bool = column("whether it follows from the others' waiting: the least that it is")
    step_ms: float = column("a step", "ms")
    resolution_ms: float = column("of the program's clock; 0 if it is not coarse", "ms")


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
        accounted = [run.accounted for run in read if run.accounted is not None]
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
    own = run.steps if run.accounted is None else run.accounted.work.own
    rows = [_distribution(run, None, distribution_of(_whole(run)))]
    if run.steps.shape[1] <= MAX_RANK_ROWS:
        for rank in range(run.steps.shape[1]):
            rows.append(_distribution(run, rank, distribution_of(own[:, rank])))
    return rows


def _whole(run: RunSteps) -> Floats:
    """Seconds of whole steps."""
    return run.steps.max(axis=1) if run.accounted is None else run.accounted.work.periods


def _distribution(run: RunSteps, rank: int | None, distribution: Distribution) -> dict[str, Any]:
    return {
        "run_id": run.run_id, "repeat": run.repeat, "rank": rank, "steps": distribution.steps,
        "of": "step" if rank is None or run.accounted is None else "own work",
        **{name: value * _MS for name, value in distribution.quantiles.items()},
        "max": distribution.longest * _MS, "stalls": int(distribution.stalls.size),
        "stall_steps": json.dumps([int(place) + 1 for place in distribution.stalls[:20]]),
        "drift": distribution.drift,
    }  # fmt: skip


def _curve_rows(run: RunSteps) -> list[dict[str, Any]]:
    return [
        {"run_id": run.run_id, "repeat": run.repeat, "step": step, "p50": middle * _MS,
         "max": longest * _MS}
        for step, middle, longest in curve_of(_whole(run))
    ]  # fmt: skip
