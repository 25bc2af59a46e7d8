"""Horovod's timelines: time by phase, and messages by size (``analysis.horovod_trace``)."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from scalesweep.analysis.horovod_trace import (
    CALL,
    NEGOTIATE,
    DamagedTraceError,
    Interval,
    OpenPhase,
    Trace,
    read_trace,
)
from scalesweep.analysis.profile import Message, Phase, Profile, merged, union_length
from scalesweep.analysis.timeline_account import NOTE, timeline_account
from scalesweep.importers.imported_run import ImportRefusedError
from scalesweep.importers.profiles.source import (
    ReadResult,
    metric,
    read_each,
    text_of,
)

TOOL = "horovod_timeline"
MAX_SIZES = 200
_US = 1e-6


def recognise(head: str) -> bool:
    """Whether a file begins as a timeline of Horovod does."""
    return head.lstrip().startswith("[") and (
        "start_time_since_epoch_in_micros" in head or f'"{NEGOTIATE}' in head
    )


def read(files: Sequence[Path], ranks: int | None = None) -> ReadResult:
    """A profile of each timeline; ``ranks`` where it names none.

    Which ranks took part is known from the ticks in negotiations that missed Horovod's cache.
    """
    return read_each(files, lambda file: [_profile(file, ranks)])


def _profile(file: Path, ranks: int | None) -> Profile:
    """The profile of one timeline: seconds of each phase, shares of a step, and messages by size.

    Raises ImportRefusedError if the file is damaged, has no whole phase, or names more ranks than
    ``ranks``.
    """
    try:
        trace = read_trace(text_of(file))
    except DamagedTraceError as error:
        raise ImportRefusedError(str(error), error.line) from None
    if not trace.intervals:
        raise ImportRefusedError("no phase of any tensor in it begins and ends")
    seen = trace.ranks
    if seen and ranks and ranks < seen:
        raise ImportRefusedError(f"names rank {seen - 1}, but --ranks {ranks}")
    phases = _phases(trace)
    metrics: dict[str, dict[str, object]] = {
        "timeline_length": metric((trace.last - trace.first) * _US, "s", "lower")
    }
    for phase in phases:
        name = re.sub(r"\W+", "_", phase.name.lower()).strip("_")
        metrics[f"{name}_sum"] = metric(phase.sum_s, "s", "lower")
        metrics[f"{name}_union"] = metric(phase.union_s, "s", "lower")
    account = timeline_account(trace)
    for name, share in ({} if account is None else account.shares).items():
        if share is not None:
            metrics[f"{name}_share"] = metric(share, "1", "lower")
    messages, left_out = _messages(trace)
    notes: dict[str, object] = {
        "clock": "that of rank 0",
        "phases": "sum: over all tensors; union: while at least one tensor was in it",
    }
    if account is not None:
        notes[NOTE] = account.to_json()
    if not trace.closed:
        notes["unclosed"] = "the file was not closed, as of a run that was ended"
    if trace.unfinished:
        notes["unfinished"] = f"{trace.unfinished} phases had begun and not ended: not counted"
    if left_out:
        notes["messages_left_out"] = f"{left_out} sizes that took the least time"
    return Profile(
        tool=TOOL,
        file=file,
        ranks=ranks or seen,
        elapsed_s=(trace.last - trace.first) * _US,
        phases=phases,
        messages=messages,
        metrics=metrics,
        notes=notes,
    )


def _phases(trace: Trace) -> tuple[Phase, ...]:
    by_name: dict[str, list[tuple[float, float]]] = {}
    for interval in trace.intervals:
        by_name.setdefault(interval.name, []).append((interval.begin, interval.end))
    return tuple(
        Phase(
            name,
            len(spans),
            sum(end - begin for begin, end in spans) * _US,
            union_length(spans) * _US,
        )
        for name, spans in by_name.items()
    )


def _messages(trace: Trace) -> tuple[tuple[Message, ...], int]:
    """Calls by operation and size, and how many sizes are left out.

    Tensors whose calls overlap were fused into one: its size is theirs together, its time is from
    the first begin to the last end. Where an operation makes several kinds of calls, as a
    hierarchical allreduce within nodes and between them, each is of a part of the ranks.
    """
    kinds: dict[int, set[str]] = {}
    calls: dict[str, list[Interval]] = {}
    for interval in trace.intervals:
        if interval.outer is not None and CALL.fullmatch(interval.name):
            calls.setdefault(interval.name, []).append(interval)
            kinds.setdefault(id(_outermost(interval)), set()).add(interval.name)
    times: dict[tuple[str, int], list[float]] = {}
    parted: set[tuple[str, int]] = set()
    for name, intervals in calls.items():
        for begin, end, places in merged(
            [(interval.begin, interval.end) for interval in intervals]
        ):
            sizes = [_outer_size(intervals[place]) for place in places]
            if all(size is not None for size in sizes) and end > begin:
                total = sum(size or 0 for size in sizes)
                times.setdefault((name, total), []).append((end - begin) * _US)
                if any(len(kinds[id(_outermost(intervals[place]))]) > 1 for place in places):
                    parted.add((name, total))
    messages = [
        Message(
            operation,
            size,
            len(seconds),
            float(np.mean(seconds)),
            float(np.std(seconds, ddof=1)) if len(seconds) > 1 else None,
            (operation, size) not in parted,
        )
        for (operation, size), seconds in times.items()
        if size > 0
    ]
    messages.sort(key=lambda message: -message.count * message.mean_s)
    kept = sorted(messages[:MAX_SIZES], key=lambda message: (message.operation, message.size))
    return tuple(kept), len(messages) - len(kept)


def _outermost(call: Interval) -> OpenPhase | None:
    outer = call.outer
    while outer is not None and outer.outer is not None:
        outer = outer.outer
    return outer


def _outer_size(call: Interval) -> int | None:
    """Bytes of the tensor of a call: what the end of its outermost phase says."""
    outer = _outermost(call)
    return None if outer is None else outer.size
