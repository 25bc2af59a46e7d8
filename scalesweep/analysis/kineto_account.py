"""Where the time of ranks goes by their traces (``kineto_stream``).

Of a rank's windows (``windows_of``):

* computation: kernels that are no collectives; on a CPU operations, all threads together;
* communication: collectives; overlapped where computation runs at the same time, else exposed;
* copies: from and to a GPU, while neither runs; idle: nothing of all these.

Computation, exposed communication, copies and idle add up to the windows. HolisticTraceAnalysis
(breakdown_analysis.py, communication_analysis.py) defines computation and overlap the same way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from scalesweep.analysis.kineto_stream import Collective, RankTrace
from scalesweep.analysis.types import Floats

_S = 1e-6
PROFILER, OPTIMIZER, WHOLE = (
    "the profiler's steps", "from end to end of the optimiser's steps", "the whole trace",
)  # fmt: skip


@dataclass(frozen=True)
class KindAccount:
    """Of a rank's calls of one kind in its windows: how many, with how many bytes (None: not
    known), and their seconds, what overlaps once."""

    calls: int
    size: int | None
    exposed_s: float
    overlapped_s: float


@dataclass(frozen=True)
class RankAccount:
    """Seconds of a rank's windows, and of its communication by kind of call, all sizes together;
    ``steps`` is 0 where the windows are no steps (``window`` says what they are)."""

    window: str
    window_s: float
    steps: int
    computation_s: float
    communication_s: float
    exposed_s: float
    copies_s: float
    idle_s: float
    by_kind: Mapping[Collective, KindAccount]

    @property
    def overlapped_s(self) -> float:
        """Communication behind computation."""
        return self.communication_s - self.exposed_s


class _Cover:
    """What a set of spans covers of any stretch of time."""

    def __init__(self, spans: Floats) -> None:
        self.spans = union(spans)
        lengths = self.spans[:, 1] - self.spans[:, 0]
        self.before = np.concatenate([[0.0], np.cumsum(lengths)])

    def until(self, times: Floats) -> Floats:
        """The time covered before each moment."""
        if not len(self.spans):
            return np.zeros(len(times))
        place = np.searchsorted(self.spans[:, 0], times, side="right")
        inside = np.minimum(times, self.spans[place - 1, 1]) - self.spans[place - 1, 0]
        covered: Floats = np.where(place > 0, self.before[place - 1] + np.maximum(inside, 0), 0.0)
        return covered

    def of(self, spans: Floats) -> float:
        """The time covered within spans that do not overlap."""
        return float((self.until(spans[:, 1]) - self.until(spans[:, 0])).sum())


def union(spans: Floats) -> Floats:
    """Spans ``[span, 2]`` that overlap as one each, in order."""
    if not len(spans):
        return np.zeros((0, 2))
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    latest = np.maximum.accumulate(spans[:, 1])
    first = np.concatenate([[True], spans[1:, 0] > latest[:-1]])
    ends = latest[np.concatenate([np.flatnonzero(first)[1:] - 1, [len(spans) - 1]])]
    return np.column_stack([spans[first, 0], ends])


def windows_between(ends: Floats, met: Floats) -> Floats:
    """Windows ``[step, 2]`` from each end of a step to the next, but for those in which the ranks
    ``met`` between steps (ends of that)."""
    ends = np.sort(ends)
    windows = np.column_stack([ends[:-1], ends[1:]])
    meetings = np.searchsorted(np.sort(met), windows, side="right")
    kept: Floats = windows[(meetings[:, 0] == meetings[:, 1]) & (windows[:, 1] > windows[:, 0])]
    return kept


def windows_of(trace: RankTrace) -> tuple[Floats, int, str]:
    """Windows ``[window, 2]`` in microseconds, how many steps they are, and what they are.

    The profiler's steps; else, where one optimiser steps, from the end of each of its steps to the
    next, on a GPU by its time; else from the first to the last activity, which are no steps.
    """
    steps = trace.steps.matrix()
    if len(steps := steps[steps[:, 1] > steps[:, 0]]):
        return _joined(union(steps)), min(len(steps), len(trace.step_numbers)), PROFILER
    if len(trace.optimizer) == 1:
        windows = windows_between(_optimizer_ends(trace), trace.met.matrix()[:, 1])
        if len(windows) > 1:
            return windows, len(windows), OPTIMIZER
    calls = [spans.matrix() for spans in trace.calls.values()]
    every = np.concatenate([_working(trace), trace.copies.matrix(), *calls])
    if not len(every):
        return every, 0, WHOLE
    return np.array([[every[:, 0].min(), every[:, 1].max()]]), 0, WHOLE


def _optimizer_ends(trace: RankTrace) -> Floats:
    """When the steps of the one optimiser of a trace were done: on a GPU, where it has them. The
    host is ahead of that, most in the first steps."""
    ((name, spans),) = trace.optimizer.items()
    ends: Floats = spans.matrix()[:, 1]
    on_gpu = [trace.done_on_gpu.get(number, -np.inf) for number in trace.optimizer_ids[name]]
    return np.maximum(ends, on_gpu)


def _joined(steps: Floats) -> Floats:
    """Windows of steps that follow on each other: the profiler itself takes a moment between two,
    and where it pauses for steps it does not record, a new window begins."""
    pauses = steps[1:, 0] - steps[:-1, 1] > np.median(steps[:, 1] - steps[:, 0])
    firsts = np.concatenate([[True], pauses])
    windows: Floats = np.column_stack([steps[firsts, 0], steps[np.append(pauses, True), 1]])
    return windows


def step_begins(trace: RankTrace) -> Floats:
    """When the steps of a trace begin, in microseconds, in order; empty where none are known."""
    steps = trace.steps.matrix()
    if not len(steps):
        windows, count, _ = windows_of(trace)
        steps = windows if count else steps
    begins: Floats = np.sort(steps[:, 0])
    return begins


def _working(trace: RankTrace) -> Floats:
    return trace.kernels.matrix() if trace.on_gpu else trace.operations.matrix()


def account_of_rank(trace: RankTrace) -> RankAccount | None:
    """The account of a rank; None of a trace in which nothing of it ran."""
    windows, steps, window = windows_of(trace)
    length = float((windows[:, 1] - windows[:, 0]).sum())
    calls = {kind: spans.matrix() for kind, spans in trace.calls.items()}
    nothing = np.zeros((0, 2))
    every_call = np.concatenate([nothing, *calls.values()])
    working, copies = _working(trace), trace.copies.matrix()
    if not length > 0 or not len(working) + len(copies) + len(every_call):
        return None
    computing = _Cover(working)
    busy = _Cover(np.concatenate([computing.spans, every_call]))
    copied = _Cover(np.concatenate([busy.spans, copies]))
    computation, anything = computing.of(windows), busy.of(windows)
    by_kind = {}
    for kind, every in _by_operation(calls).items():
        spans = np.concatenate(list(every.values()))
        own = _Cover(spans).of(windows)
        exposed = _Cover(np.concatenate([computing.spans, spans])).of(windows) - computation
        counts = {size: _inside(windows, each) for size, each in every.items()}
        if sum(counts.values()) or own > 0:
            by_kind[kind] = KindAccount(
                sum(counts.values()), _total(counts), exposed * _S, (own - exposed) * _S
            )
    if not anything and not copied.of(windows):
        return None
    return RankAccount(
        window=window,
        window_s=length * _S,
        steps=steps,
        computation_s=computation * _S,
        communication_s=_Cover(every_call).of(windows) * _S,
        exposed_s=(anything - computation) * _S,
        copies_s=(copied.of(windows) - anything) * _S,
        idle_s=(length - copied.of(windows)) * _S,
        by_kind=by_kind,
    )


def _by_operation(calls: Mapping[Collective, Floats]) -> dict[Collective, dict[int | None, Floats]]:
    """Spans of calls by kind without their size, and by size."""
    every: dict[Collective, dict[int | None, Floats]] = {}
    for kind, spans in calls.items():
        every.setdefault(replace(kind, size=None), {})[kind.size] = spans
    return every


def _inside(windows: Floats, spans: Floats) -> int:
    """How many spans begin in one of the windows."""
    place = np.searchsorted(windows[:, 0], spans[:, 0], side="right") - 1
    return int(((place >= 0) & (spans[:, 0] < windows[place, 1])).sum())


def _total(counts: Mapping[int | None, int]) -> int | None:
    """Bytes of so many calls of each size."""
    return None if None in counts else sum((size or 0) * count for size, count in counts.items())
