"""Where the time of a rank's steps goes by its trace, whichever framework's profiler wrote it.

Of a rank's windows count, in this order, so that what overlaps counts once:

1. computation: a kernel runs that is no collective; without GPUs an operation, on any thread;
2. communication: else, a collective (exposed); behind computation it is overlapped;
3. copies: else, a copy from or to a GPU;
4. input: else, the program waits for a batch;
5. rest: nothing of these.

HolisticTraceAnalysis (breakdown_analysis.py, communication_analysis.py) defines computation and
overlap the same way. What a trace never shows is None, not 0, and is in the rest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scalesweep.analysis.kineto_stream import (
    BATCH,
    CALL,
    COPY,
    MET,
    ON_GPU,
    OPTIMIZER,
    STEP,
    Collective,
    RankTrace,
)
from scalesweep.analysis.types import Floats
from scalesweep.core.formatting import shorten
from scalesweep.core.host import cpu_set

_S = 1e-6
PROFILER, OPTIMIZER_STEPS, WHOLE = (
    "the profiler's steps", "from end to end of the optimiser's steps", "the whole trace",
)  # fmt: skip
COMPUTATION, COMMUNICATION, COPIES, INPUT, REST = (
    "computation", "communication", "copies", "input", "rest",
)  # fmt: skip
PARTS = (COMPUTATION, COMMUNICATION, COPIES, INPUT, REST)  # in the order in which they count


@dataclass(frozen=True)
class TraceAccount:
    """Seconds of a rank's windows by part, which add up to ``window_s``; ``steps`` is 0 where the
    windows are no steps (``window`` says what they are).

    ``communication_s`` is all communication; ``calls`` are rows of the table `collectives`.
    """

    window_s: float
    steps: int
    parts: Mapping[str, float | None]
    communication_s: float = 0.0
    window: str = OPTIMIZER_STEPS
    calls: Sequence[Mapping[str, Any]] = ()

    @property
    def seconds(self) -> dict[str, float]:
        """What a rank does, 0 of what its trace never shows: communication that computation does
        not hide and that it hides, copies while neither runs, and no device at work."""
        known = {part: value or 0.0 for part, value in self.parts.items()}
        return {
            "window": self.window_s,
            "computation": known[COMPUTATION],
            "exposed_communication": known[COMMUNICATION],
            "overlapped_communication": self.communication_s - known[COMMUNICATION],
            "copies": known[COPIES],
            "idle": known[INPUT] + known[REST],
        }


def union(spans: Floats) -> Floats:
    """Spans ``[span, 2]`` that overlap as one each, in order."""
    if not len(spans):
        return np.zeros((0, 2))
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    latest = np.maximum.accumulate(spans[:, 1])
    first = np.concatenate([[True], spans[1:, 0] > latest[:-1]])
    ends = latest[np.concatenate([np.flatnonzero(first)[1:] - 1, [len(spans) - 1]])]
    return np.column_stack([spans[first, 0], ends])


def inside(spans: Floats, windows: Floats) -> Floats:
    """Of each span the time that lies in windows ``[window, 2]``, which ascend and are apart."""
    if not len(windows):
        return np.zeros(len(spans))
    ends = np.cumsum(windows[:, 1] - windows[:, 0])
    before = np.column_stack([np.concatenate([[0.0], ends[:-1]]), ends])
    within = np.interp(spans, windows.reshape(-1), before.reshape(-1))
    seconds: Floats = within[:, 1] - within[:, 0]
    return seconds


def covered(spans: Floats, windows: Floats) -> float:
    """The time of windows that spans cover, what overlaps once."""
    return float(inside(union(spans), windows).sum())


def account_of(windows: Floats, steps: int, kinds: Mapping[str, Floats]) -> TraceAccount:
    """The account of windows ``[window, 2]`` from the spans ``[span, 2]`` of each part but the
    rest, all in seconds."""
    whole = float((windows[:, 1] - windows[:, 0]).sum())
    taken, so_far = np.zeros((0, 2)), 0.0
    parts: dict[str, float | None] = {}
    for name in PARTS[:-1]:
        taken = union(np.concatenate([taken, kinds[name]]))
        after = covered(taken, windows)
        shown = covered(kinds[name], windows)
        parts[name] = after - so_far if shown > 0 else None
        so_far = after
    parts[REST] = whole - so_far
    exchange = covered(kinds[COMMUNICATION], windows)
    return TraceAccount(whole, steps, parts, exchange)


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
    steps, events = trace.spans(STEP), trace.events
    if len(steps := steps[steps[:, 1] > steps[:, 0]]):
        numbers = events.loc[events["kind"] == STEP, "number"].nunique()
        return _joined(union(steps)), min(len(steps), numbers), PROFILER
    ends = events[events["kind"] == OPTIMIZER]
    if ends["of"].nunique() == 1:
        # The host is ahead of the GPU, most in the first steps.
        on_gpu = events[events["kind"] == ON_GPU].groupby("number")["end"].max()
        done = np.fmax(ends["end"], ends["number"].map(on_gpu))
        windows = windows_between(np.asarray(done, np.float64), trace.spans(MET)[:, 1])
        if len(windows) > 1:
            return windows, len(windows), OPTIMIZER_STEPS
    every = np.concatenate([trace.working, trace.spans(COPY), trace.spans(CALL)])
    if not len(every):
        return every, 0, WHOLE
    return np.array([[every[:, 0].min(), every[:, 1].max()]]), 0, WHOLE


def _joined(steps: Floats) -> Floats:
    """Windows of steps that follow on each other: the profiler itself takes a moment between two,
    and where it pauses for steps it does not record, a new window begins."""
    pauses = steps[1:, 0] - steps[:-1, 1] > np.median(steps[:, 1] - steps[:, 0])
    firsts = np.concatenate([[True], pauses])
    windows: Floats = np.column_stack([steps[firsts, 0], steps[np.append(pauses, True), 1]])
    return windows


def step_begins(trace: RankTrace) -> Floats:
    """When the steps of a trace begin, in microseconds, in order; empty where none are known."""
    steps = trace.spans(STEP)
    if not len(steps):
        windows, count, _ = windows_of(trace)
        steps = windows if count else steps
    begins: Floats = np.sort(steps[:, 0])
    return begins


def account_of_rank(trace: RankTrace) -> TraceAccount | None:
    """The account of a rank of PyTorch; None of a trace in which nothing of it ran."""
    windows, steps, window = windows_of(trace)
    windows = windows * _S
    kinds = {
        COMPUTATION: union(trace.working) * _S,
        COMMUNICATION: trace.spans(CALL) * _S,
        COPIES: trace.spans(COPY) * _S,
        INPUT: trace.spans(BATCH) * _S,
    }
    if not len(windows) or not any(
        covered(spans, windows) for name, spans in kinds.items() if name != INPUT
    ):
        return None
    calls = _calls(trace, windows, kinds[COMPUTATION], steps)
    return replace(account_of(windows, steps, kinds), window=window, calls=calls)


def _calls(
    trace: RankTrace, windows: Floats, computing: Floats, steps: int
) -> list[dict[str, Any]]:
    """Calls by group and operation, all sizes together: how many, with how many bytes (None: not
    known), and their ms, what overlaps once, each per step where steps are known."""
    whole, per = covered(computing, windows), steps or 1
    alike: dict[Collective, dict[int | None, Floats]] = {}
    for kind, own in trace.calls.items():
        sizes = alike.setdefault(kind._replace(size=None), {})
        sizes[kind.size] = own[["begin", "end"]].to_numpy(float) * _S
    rows = []
    for kind, sizes in alike.items():
        spans = np.concatenate([*sizes.values()])
        took = covered(spans, windows)
        exposed = covered(np.concatenate([computing, spans]), windows) - whole
        counts = {size: _inside(windows, each) for size, each in sizes.items()}
        if sum(counts.values()) or took > 0:
            moved = sum((size or 0) * count for size, count in counts.items())
            rows.append(
                {
                    "group": kind.group,
                    "members": shorten(cpu_set({*kind.members}), 100) if kind.members else None,
                    "collective": kind.operation, "calls": sum(counts.values()) / per,
                    "bytes": None if None in counts else moved / per,
                    "exposed_ms": exposed * 1e3 / per,
                    "overlapped_ms": (took - exposed) * 1e3 / per,
                }
            )  # fmt: skip
    return rows


def _inside(windows: Floats, spans: Floats) -> int:
    """How many spans begin in one of the windows."""
    place = np.searchsorted(windows[:, 0], spans[:, 0], side="right") - 1
    return int(((place >= 0) & (spans[:, 0] < windows[place, 1])).sum())
