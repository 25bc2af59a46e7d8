"""The tables ``warm_up`` and ``warm_up_curve``: when the runs of a point become steady."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.arrays import Arrays
from scalesweep.analysis.rank_stats import rank_matrix
from scalesweep.analysis.steady_state import steady_state
from scalesweep.analysis.step_work import STEP_TIMES
from scalesweep.analysis.types import Floats
from scalesweep.core.formatting import duration, number
from scalesweep.core.record import WARMUP_STEP_TIMES
from scalesweep.experiment.points_table import Cell, Shown, Table, declared_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.table.declared import DeclaredRow, PointRow, column
from scalesweep.tables.making import Maker, TableInputs, point_columns
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.run_arrays import each_run, ranks_of

MAX_POINTS = 40
MAX_RUNS = 12  # of a point
FEWEST = 8  # steps: of fewer nobody can say where they become steady
# A curve has each of so many first steps by itself, the others in at most so many groups.
SINGLE, GROUPS = 100, 100


@dataclass(frozen=True, kw_only=True)
class WarmUp(PointRow, table="warm_up"):
    """A point whose runs keep the times of their steps."""

    runs: int = column("runs looked at: the first 12", "1")
    count: int = column("steps of the longest run, warm-up included", "1")
    declared: int | None = column(
        "steps that the program leaves out as its warm-up; missing: it does not keep their times",
        "1",
    )  # fmt: skip
    detected: float | None = column(
        "steps before the first steady one, median over the runs that become steady", "1"
    )
    unsteady: int = column("runs whose times do not become steady: they still change", "1")
    detected_s: float | None = column(
        "time until the first steady step, median over the runs that become steady", "s"
    )
    first_ms: float = column("the first step, median over ranks and runs", "ms")
    steady_ms: float | None = column(
        "a step behind the declared and the detected warm-up, median over ranks and the runs that "
        "become steady", "ms",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class WarmUpCurve(DeclaredRow, table="warm_up_curve"):
    """A step of a point, or several next to each other: at most 200 rows of a point.

    The first 100 steps have a row each. Quantiles are over ranks, runs and the row's steps.
    """

    point: Mapping[str, Any]
    source: str | None = column("measured, simulated or imported")
    step: int = column("the first of the steps, from 1")
    steps: int = column("how many", "1")
    p10_ms: float = column("10 % quantile of their time", "ms")
    p50_ms: float = column("median", "ms")
    p90_ms: float = column("90 % quantile", "ms")
    max_ms: float = column("the longest", "ms")


# Seconds of the steps of a run, ``[step, rank]``, the warm-up's first, and how many of them the
# program counts as its warm-up; None if it keeps none.
RunTimes = tuple[Floats, int | None]


def warm_up_rows(inputs: TableInputs) -> Iterator[WarmUp | WarmUpCurve]:
    """The rows of both tables, of at most MAX_POINTS points, evenly from all."""
    finished = [point for point in inputs.points if point.rows.size] if inputs.runs else []
    places = np.linspace(0, len(finished) - 1, min(len(finished), MAX_POINTS)).round().astype(int)
    for point in [finished[place] for place in places]:
        assert inputs.runs is not None
        if times := _run_times(inputs.data, point, inputs.runs):
            yield WarmUp(**point_columns(point), **_columns(times))
            for step, steps, quantiles in curve_of([seconds for seconds, _ in times]):
                ends = dict(zip(("p10_ms", "p50_ms", "p90_ms", "max_ms"), quantiles, strict=True))
                yield WarmUpCurve(
                    point=point.values, source=point.source, step=step, steps=steps, **ends
                )


def _run_times(data: ExperimentData, point: Point, runs: Path) -> list[RunTimes]:
    """Those of the point's runs that keep them."""
    every = each_run(data, point.rows.tolist()[:MAX_RUNS], runs, "the warm-up")
    ranks = ranks_of(data, point)
    return [times for *_, samples in every if (times := times_of(samples, ranks)) is not None]


def times_of(samples: Arrays, ranks: int) -> RunTimes | None:
    """The times of steps that a run's arrays hold; None if there are too few, or if they cannot be
    times."""
    seconds, declared = rank_matrix(samples, STEP_TIMES, ranks), None
    if seconds is not None and WARMUP_STEP_TIMES in samples:
        warm_up = rank_matrix(samples, WARMUP_STEP_TIMES, ranks)
        declared = 0 if warm_up is None else len(warm_up)
        seconds = seconds if warm_up is None else np.concatenate([warm_up, seconds])
    if seconds is None or len(seconds) < FEWEST:
        return None
    if not np.isfinite(seconds).all() or seconds.min() <= 0:
        return None
    return seconds, declared


def curve_of(times: Sequence[Floats]) -> Iterator[tuple[int, int, list[float]]]:
    """The curve of runs ``[step, rank]``: first step (from 1), how many, and the 10, 50, 90 and
    100 % quantiles of their ms over ranks and runs."""
    steps = max(map(len, times))
    single = steps if steps <= SINGLE + GROUPS else SINGLE
    groups = np.linspace(single, steps, GROUPS + 1).round().astype(int).tolist()
    ends = [*range(single), *(groups if single < steps else [steps])]
    for first, last in pairwise(ends):
        values = np.concatenate([run[first:last].ravel() for run in times]) * 1e3
        yield first + 1, last - first, np.quantile(values, (0.1, 0.5, 0.9, 1.0)).tolist()


def _columns(times: Sequence[RunTimes]) -> dict[str, Any]:
    """What the runs of a point say together."""
    states = [steady_state(seconds, declared or 0) for seconds, declared in times]
    # If times still change nothing is steady, however near the middle they begin.
    known = [
        (seconds, state.detected, declared or 0)
        for (seconds, declared), state in zip(times, states, strict=True)
        if state.detected is not None and not state.drifting
    ]
    until = [float(np.median(seconds[:n], axis=1).sum()) if n else 0.0 for seconds, n, _ in known]
    steady = [seconds[max(n, declared) :].ravel() for seconds, n, declared in known]
    return {
        "runs": len(times),
        "count": max(len(seconds) for seconds, _ in times),
        "declared": times[0][1],
        "detected": float(np.median([n for _, n, _ in known])) if known else None,
        "unsteady": sum(state.drifting for state in states),
        "detected_s": float(np.median(until)) if known else None,
        "first_ms": float(np.median(np.concatenate([seconds[0] for seconds, _ in times]))) * 1e3,
        "steady_ms": float(np.median(np.concatenate(steady))) * 1e3 if known else None,
    }


MAKERS = (Maker((WarmUp, WarmUpCurve), warm_up_rows),)


_NOTE = (
    "Declared: what the program leaves out of its metrics. Detected: the median over the runs of "
    "the steps before the first that stays within 5 % or five robust standard "
    "deviations of the median of the second half."
)


def warm_up_table(results: ExperimentResults, limit: int) -> Table | None:
    """Of each point the declared and the detected warm-up; None if no run keeps its steps."""
    columns: list[Shown] = [
        ("Steps", "count", lambda row: f"{row.count:,}"),
        ("Declared", "declared", _declared),
        ("Detected", "detected", _detected),
        ("After", "detected_s", lambda row: duration(row.detected_s)),
        ("First [ms]", "first_ms", lambda row: number(row.first_ms)),
        ("Steady [ms]", "steady_ms", lambda row: number(row.steady_ms)),
    ]
    return declared_table(results, results.of(WarmUp), columns, limit)


def _declared(row: WarmUp) -> str:
    return "not kept" if row.declared is None else f"{row.declared:,}"


def _detected(row: WarmUp) -> Cell:
    """The count, marked if it is more than declared or some runs never are steady."""
    if row.detected is None:
        return Cell("not steady", True)
    changing = f"; {row.unsteady} of {row.runs} runs still change" if row.unsteady else ""
    late = row.declared is not None and row.detected > row.declared
    return Cell(f"{row.detected:,g}{changing}", bool(late or row.unsteady))


SECTION = Section("Warm-up", warm_up_table, lambda _results: [_NOTE])
