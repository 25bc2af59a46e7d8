"""The tables ``warm_up`` and ``warm_up_curve``: when the runs of a point become steady."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.aspects.warm_up.series import RunTimes, grouped, run_times
from scalesweep.table.declared import DeclaredRow, PointRow, column
from scalesweep.tables.making import Maker, TableInputs, point_columns

MAX_POINTS = 40


@dataclass(frozen=True, kw_only=True)
class WarmUp(PointRow, table="warm_up"):
    """A point whose runs keep the times of their steps, or of 8 epochs or more."""

    of: str = column("`step` or `epoch`: what the counts are of")
    runs: int = column("runs looked at: the first 12, or as many as 1,000,000 times of", "1")
    count: int = column("steps of the longest run, warm-up included", "1")
    declared: int | None = column(
        "steps that the program leaves out as its warm-up (of epochs the first); missing: it does "
        "not keep their times", "1",
    )  # fmt: skip
    detected: float | None = column(
        "steps before the first steady one, median over the runs that become steady", "1"
    )
    detected_least: int | None = column("the fewest of a run", "1")
    detected_most: int | None = column("the most of a run", "1")
    unsteady: int = column("runs whose times do not become steady: they still change", "1")
    detected_s: float | None = column(
        "time until the first steady step, median over the runs that become steady", "s"
    )
    first_ms: float = column("the first step, median over ranks and runs", "ms")
    steady_ms: float | None = column(
        "a step behind the declared and the detected warm-up, median over ranks and the runs that "
        "become steady", "ms",
    )  # fmt: skip
    samples: float | None = column("samples of a step over all ranks", "samples", if_known=True)
    steady_rate: float | None = column("`samples` over `steady_ms`", "samples/s", if_known=True)

    @property
    def key(self) -> tuple[Any, ...]:
        """What the rows of its curve have in common."""
        return (*self.point.values(), self.source)


@dataclass(frozen=True, kw_only=True)
class WarmUpCurve(DeclaredRow, table="warm_up_curve"):
    """A step of a point, or several next to each other: at most 200 rows of a point.

    The first 100 steps have a row each. Quantiles are over ranks, runs and the row's steps.
    """

    point: Mapping[str, Any]
    source: str | None = column("measured, simulated or imported")
    step: int = column("the first of the steps (or epochs), from 1")
    steps: int = column("how many", "1")
    p10_ms: float = column("10 % quantile of their time", "ms")
    p50_ms: float = column("median", "ms")
    p90_ms: float = column("90 % quantile", "ms")

    @property
    def key(self) -> tuple[Any, ...]:
        """What rows of a point have in common."""
        return (*self.point.values(), self.source)


def warm_up_rows(inputs: TableInputs) -> Iterator[WarmUp | WarmUpCurve]:
    """The rows of both tables, of at most MAX_POINTS points, evenly from all."""
    if inputs.runs is None:
        return
    finished = [point for point in inputs.points if point.rows.size]
    places = np.linspace(0, len(finished) - 1, min(len(finished), MAX_POINTS)).round().astype(int)
    for place in places.tolist():
        point = finished[place]
        if not (times := run_times(inputs.data, point, inputs.runs)):
            continue
        yield WarmUp(**point_columns(point), **_columns(times))
        for group in grouped([run.seconds for run in times]):
            yield WarmUpCurve(
                point=point.values, source=point.source, step=group.first, steps=group.steps,
                p10_ms=group.low, p50_ms=group.middle, p90_ms=group.high,
            )  # fmt: skip


def _columns(times: Sequence[RunTimes]) -> dict[str, Any]:
    """What the runs of a point say together."""
    states = [run.state for run in times]
    # Where times still change nothing is steady, however near the middle they begin.
    known = [
        (run, state.detected)
        for run, state in zip(times, states, strict=True)
        if state.detected is not None and not state.drifting
    ]
    counts = [count for _, count in known]
    declared = times[0].declared
    steady = [run.seconds[max(run.declared or 0, count) :].ravel() for run, count in known]
    steady_ms = float(np.median(np.concatenate(steady))) * 1e3 if steady else None
    samples = times[0].samples
    return {
        "of": times[0].of,
        "runs": len(times),
        "count": max(len(run.seconds) for run in times),
        "declared": declared,
        "detected": float(np.median(counts)) if counts else None,
        "detected_least": min(counts, default=None),
        "detected_most": max(counts, default=None),
        "unsteady": sum(state.drifting for state in states),
        "detected_s": float(np.median([run.until(count) for run, count in known]))
        if known else None,
        "first_ms": float(np.median(np.concatenate([run.seconds[0] for run in times]))) * 1e3,
        "steady_ms": steady_ms,
        "samples": samples,
        "steady_rate": samples / steady_ms * 1e3 if samples and steady_ms else None,
    }  # fmt: skip


MAKERS = (Maker((WarmUp, WarmUpCurve), warm_up_rows),)
