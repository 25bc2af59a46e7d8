"""How long runs take to become steady: the time of every step from the first one on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from scalesweep.analysis.rank_stats import rank_matrix
from scalesweep.analysis.steady_state import steady_state
from scalesweep.analysis.step_work import STEP_TIMES
from scalesweep.analysis.types import Arrays, Floats
from scalesweep.core.formatting import counted, duration, number
from scalesweep.core.record import WARMUP_STEP_TIMES
from scalesweep.experiment.points_table import Cell, Shown, Table, declared_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.figures.drawing import Drawing, drawn, evenly, labels_of
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis
from scalesweep.table.declared import PointRow, SourceRow, column
from scalesweep.tables.making import Maker, TableInputs, point_columns
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.run_arrays import each_run, ranks_of

MAX_POINTS = 40
MAX_RUNS = 12  # of a point
FEWEST = 8  # steps: of fewer nobody can say where they become steady
# A curve has each of so many first steps by itself, the others in at most so many groups.
SINGLE, GROUPS = 100, 100
MAX_PANELS = 6
LOG_FROM = 400  # steps: the first ones of more have no room on a linear axis
_LINES = {"declared": "end of the declared warm-up", "detected": "steady from here"}
_NOTE = (
    "Declared: what the program leaves out of its metrics. Detected: the median over the runs of "
    "the steps before the first that stays within 5 % or five robust standard "
    "deviations of the median of the second half."
)


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
class WarmUpCurve(SourceRow, table="warm_up_curve"):
    """A step of a point, or several next to each other: at most 200 rows of a point.

    The first 100 steps have a row each. Quantiles are over ranks, runs and the row's steps.
    """

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
    if inputs.runs is None:
        return
    for point in evenly([point for point in inputs.points if point.rows.size], MAX_POINTS):
        if times := _run_times(inputs.data, point, inputs.runs):
            yield _of_point(point, times)
            yield from _curve(point, [seconds for seconds, _ in times])


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
    known = np.isfinite(seconds).all() and seconds.min() > 0
    return (seconds, declared) if known else None


def _curve(point: Point, times: Sequence[Floats]) -> Iterator[WarmUpCurve]:
    """The curve of runs ``[step, rank]``: quantiles over ranks and runs."""
    steps = max(map(len, times))
    single = steps if steps <= SINGLE + GROUPS else SINGLE
    groups = np.linspace(single, steps, GROUPS + 1).round().astype(int).tolist()
    for first, last in pairwise([*range(single), *(groups if single < steps else [steps])]):
        values = np.concatenate([run[first:last].ravel() for run in times]) * 1e3
        p10, p50, p90, longest = np.quantile(values, (0.1, 0.5, 0.9, 1.0)).tolist()
        yield WarmUpCurve(
            point=point.values, source=point.source, step=first + 1, steps=last - first,
            p10_ms=p10, p50_ms=p50, p90_ms=p90, max_ms=longest,
        )  # fmt: skip


def _of_point(point: Point, times: Sequence[RunTimes]) -> WarmUp:
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
    first = np.concatenate([seconds[0] for seconds, _ in times])
    return WarmUp(
        **point_columns(point), runs=len(times), declared=times[0][1],
        count=max(len(seconds) for seconds, _ in times),
        detected=float(np.median([n for _, n, _ in known])) if known else None,
        unsteady=sum(state.drifting for state in states),
        detected_s=float(np.median(until)) if known else None,
        first_ms=float(np.median(first)) * 1e3,
        steady_ms=float(np.median(np.concatenate(steady))) * 1e3 if known else None,
    )  # fmt: skip


def warm_up_table(results: ExperimentResults, limit: int) -> Table | None:
    """Of each point the declared and the detected warm-up; None if no run keeps its steps."""
    columns: list[Shown] = [
        ("Steps", "count", lambda row: f"{row.count:,}"),
        ("Declared", "declared",
         lambda row: "not kept" if row.declared is None else f"{row.declared:,}"),
        ("Detected", "detected", _detected),
        ("After", "detected_s", lambda row: duration(row.detected_s)),
        ("First [ms]", "first_ms", lambda row: number(row.first_ms)),
        ("Steady [ms]", "steady_ms", lambda row: number(row.steady_ms)),
    ]  # fmt: skip
    return declared_table(results, results.of(WarmUp), columns, limit)


def _detected(row: WarmUp) -> Cell:
    """The count, marked if it is more than declared or some runs never are steady."""
    if row.detected is None:
        return Cell("not steady", True)
    changing = f"; {row.unsteady} of {row.runs} runs still change" if row.unsteady else ""
    late = row.declared is not None and row.detected > row.declared
    return Cell(f"{row.detected:,g}{changing}", bool(late or row.unsteady))


def warm_up_figures(results: ExperimentResults) -> list[Drawing]:
    """A panel for each of a few points: the time of a step over the steps."""
    points, curves = results.of(WarmUp), results.of(WarmUpCurve)
    chosen = evenly(points, MAX_PANELS)
    columns = min(len(chosen), 3)
    names, shared = labels_of(results, [point.row for point in chosen], 90 // (columns or 1) - 10)
    panels = []
    for point, name in zip(chosen, names, strict=True):
        at = results.point_key(point.row)
        own = [row for row in curves if results.point_key(row.row) == at]
        panels.append(_panel(point, own, name))
    unsteady = sum(point.unsteady > 0 for point in chosen)
    note = "Median, 10 % to 90 % and the longest over ranks and runs; a point may be several steps."
    note += f" {counted(unsteady, 'point')} not steady at the end." if unsteady else ""
    return drawn(results, "warm-up", "time of each step, warm-up included", note, panels,
                 len(points) - len(chosen), columns=columns, detail=shared)  # fmt: skip


def _panel(point: WarmUp, curve: list[WarmUpCurve], title: str) -> Lines:
    frame = pd.DataFrame(
        {"x": row.step + (row.steps - 1) / 2, "y": row.p50_ms, "low": row.p10_ms,
         "high": row.p90_ms, "series": "median", "style": "", "max": row.max_ms}
        for row in curve
    )  # fmt: skip
    longest = frame[["x"]].assign(y=frame["max"], series="longest", style="plain")
    # Between the last step of the warm-up and the first behind it.
    marks = {words: getattr(point, kind) + 0.5 for kind, words in _LINES.items()
             if getattr(point, kind) is not None}  # fmt: skip
    steps = Axis("Step", "log" if point.count > LOG_FROM else "linear", marks)
    return Lines(
        pd.concat([frame, longest]), steps, Axis("Time of a step [ms]", "log"), title, height=2.1
    )


MAKERS = (Maker((WarmUp, WarmUpCurve), warm_up_rows),)
FIGURES = (warm_up_figures,)
SECTION = Section("Warm-up", warm_up_table, lambda _results: [_NOTE])
