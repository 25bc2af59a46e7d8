"""Where the time of ranks goes by their traces (``kineto_stream``), and who comes late.

Of a rank's window (the profiler's steps, else from its first to its last activity):

* computation: kernels that are no collectives; on a CPU operations, all threads together;
* communication: collectives; overlapped where computation runs at the same time, else exposed;
* copies: from and to a GPU, while neither runs; idle: nothing of all these.

Computation, exposed communication, copies and idle add up to the window. HolisticTraceAnalysis
(breakdown_analysis.py, communication_analysis.py) defines computation and overlap the same way.

A call of a collective ends on all its ranks at about the same time, however late the last of them
came. So ranks' clocks are aligned by the median difference of these ends, the last to begin is the
straggler, and its time is what the transfer takes without waiting.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.kineto_stream import Collective, RankTrace
from scalesweep.analysis.types import Floats

_S = 1e-6
# So few calls tell no clock.
_FEW = 3
# Of point to point, ranks do not all take part in each call.
NOT_COLLECTIVE = ("send", "recv", "sendrecv")


@dataclass(frozen=True)
class RankAccount:
    """Seconds of a rank's window, and of its exposed communication by kind of call."""

    window_s: float
    steps: int
    computation_s: float
    communication_s: float
    exposed_s: float
    copies_s: float
    idle_s: float
    exposed_by: Mapping[Collective, float]

    @property
    def overlapped_s(self) -> float:
        """Communication behind computation."""
        return self.communication_s - self.exposed_s


@dataclass(frozen=True)
class Lateness:
    """How late each rank begins its collectives, after the first of them: ``mean_s[rank]``, and in
    which share of the calls it is the last; ``offset_s[rank]`` is what its clock is ahead of the
    first rank's."""

    mean_s: Floats
    last_share: Floats
    offset_s: Floats
    calls: int


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

    @property
    def length(self) -> float:
        """All that is covered."""
        return float(self.before[-1])


def union(spans: Floats) -> Floats:
    """Spans ``[span, 2]`` that overlap as one each, in order."""
    if not len(spans):
        return np.zeros((0, 2))
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    latest = np.maximum.accumulate(spans[:, 1])
    first = np.concatenate([[True], spans[1:, 0] > latest[:-1]])
    ends = latest[np.concatenate([np.flatnonzero(first)[1:] - 1, [len(spans) - 1]])]
    return np.column_stack([spans[first, 0], ends])


def _clipped(spans: Floats, window: tuple[float, float]) -> Floats:
    inside = np.clip(spans, *window)
    return inside[inside[:, 1] > inside[:, 0]]


def account_of_rank(trace: RankTrace) -> RankAccount | None:
    """The account of a rank; None of a trace in which nothing of it ran."""
    working = trace.kernels.matrix() if trace.on_gpu else trace.operations.matrix()
    calls = {kind: spans.matrix() for kind, spans in trace.calls.items()}
    copies, steps = trace.copies.matrix(), trace.steps.matrix()
    every = np.concatenate([working, copies, *calls.values()])
    if not len(every):
        return None
    bounds = steps if len(steps) else every
    window = float(bounds[:, 0].min()), float(bounds[:, 1].max())
    if not window[0] < window[1]:
        return None
    calls = {kind: _clipped(spans, window) for kind, spans in calls.items()}
    computing = _Cover(_clipped(working, window))
    communicating = _Cover(np.concatenate([np.zeros((0, 2)), *calls.values()]))
    copying = _Cover(_clipped(copies, window))
    busy = _Cover(np.concatenate([computing.spans, communicating.spans]))
    exposed = communicating.length - computing.of(communicating.spans)
    copied = copying.length - busy.of(copying.spans)
    length = window[1] - window[0]
    by_kind = {
        kind: (float((whole[:, 1] - whole[:, 0]).sum()) - computing.of(whole)) * _S
        for kind, spans in calls.items()
        if len(whole := union(spans))
    }
    return RankAccount(
        window_s=length * _S,
        steps=len(steps),
        computation_s=computing.length * _S,
        communication_s=communicating.length * _S,
        exposed_s=exposed * _S,
        copies_s=copied * _S,
        idle_s=(length - busy.length - copied) * _S,
        exposed_by=by_kind,
    )


def matched_calls(traces: Sequence[RankTrace]) -> dict[Collective, Floats]:
    """Begins and ends ``[call, rank, 2]`` in seconds of the calls that all ranks made.

    They are matched by the trace's sequence numbers where it has them, else by their order, which
    tells only where all ranks made equally many.
    """
    shared = set.intersection(*(set(trace.calls) for trace in traces)) if traces else set()
    matched = {}
    for kind in sorted(shared, key=repr):
        if kind.operation in NOT_COLLECTIVE:
            continue
        tables = [trace.calls[kind].matrix() * _S for trace in traces]
        numbers = [np.array(trace.numbers[kind]) for trace in traces]
        if all((each >= 0).all() and len(np.unique(each)) == len(each) for each in numbers):
            common = numbers[0]
            for each in numbers[1:]:
                common = np.intersect1d(common, each)
            tables = [
                table[np.flatnonzero(np.isin(each, common))[
                    np.argsort(each[np.isin(each, common)], kind="stable")
                ]]
                for table, each in zip(tables, numbers, strict=True)
            ]  # fmt: skip
        else:
            tables = [table[np.argsort(table[:, 0], kind="stable")] for table in tables]
        if len({len(table) for table in tables}) == 1 and len(tables[0]):
            matched[kind] = np.stack(tables, axis=1)
    return matched


def lateness_of(matched: Mapping[Collective, Floats]) -> Lateness | None:
    """Who comes late to the collectives of all ranks; None where these are too few to tell."""
    if not matched:
        return None
    calls = np.concatenate(list(matched.values()))
    if len(calls) < _FEW or calls.shape[1] < 2:
        return None
    offset = np.median(calls[:, :, 1] - calls[:, :1, 1], axis=0)
    begins = calls[:, :, 0] - offset
    late = begins - begins.min(axis=1, keepdims=True)
    last = np.bincount(late.argmax(axis=1), minlength=calls.shape[1]) / len(calls)
    return Lateness(late.mean(axis=0), last, offset, len(calls))


def transfer_times(calls: Floats) -> Floats:
    """Seconds that each call takes once all of its ranks are there: those of the last to begin,
    which are the fewest. ``calls`` ``[call, rank, 2]``."""
    shortest: Floats = (calls[:, :, 1] - calls[:, :, 0]).min(axis=1)
    return shortest
