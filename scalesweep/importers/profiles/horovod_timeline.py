"""Horovod's timelines: time by phase, and messages by size (``analysis.horovod_timeline``)."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from scalesweep.analysis.horovod_timeline import (
    CALL,
    NEGOTIATE,
    NOTE,
    NoTimelineError,
    Timeline,
    read_timeline,
    timeline_rows,
)
from scalesweep.analysis.horovod_timeline import Phase as Span
from scalesweep.analysis.profile import Message, Phase, Profile, merged, union_length
from scalesweep.importers.imported_run import ImportRefusedError, metric
from scalesweep.importers.profiles.base import each, text_of

MAX_SIZES = 200
_US = 1e-6


def sign(head: str) -> bool:
    """Whether a file begins as a timeline of Horovod does."""
    return head.lstrip().startswith("[") and (
        "start_time_since_epoch_in_micros" in head or f'"{NEGOTIATE}' in head
    )


def _profiles(file: Path, ranks: int | None) -> Iterator[Profile]:
    """Seconds of each phase, shares of a step, and messages by size; ``ranks`` if it names none.

    Which ranks took part is known from the ticks in negotiations that missed Horovod's cache.
    Raises ImportRefusedError if the file is damaged, has no whole phase, or names more ranks than
    ``ranks``.
    """
    try:
        timeline = read_timeline(text_of(file))
    except NoTimelineError as error:
        raise ImportRefusedError(str(error)) from None
    if not timeline.phases:
        raise ImportRefusedError("no phase of any tensor in it begins and ends")
    if timeline.ranks and ranks and ranks < timeline.ranks:
        raise ImportRefusedError(f"names rank {timeline.ranks - 1}, but --ranks {ranks}")
    length = (timeline.last - timeline.first) * _US
    phases = _phases(timeline)
    metrics: dict[str, dict[str, object]] = {"timeline_length": metric(length, "s", "lower")}
    for phase in phases:
        name = re.sub(r"\W+", "_", phase.name.lower()).strip("_")
        metrics[f"{name}_sum"] = metric(phase.sum_s, "s", "lower")
        metrics[f"{name}_union"] = metric(phase.union_s, "s", "lower")
    rows = timeline_rows(timeline)
    for row in rows:
        if row["share"] is not None:
            metrics[f"{row['phase']}_share"] = metric(row["share"], "1", "lower")
    notes: dict[str, object] = {
        "clock": "that of rank 0",
        "phases": "sum: over all tensors; union: while at least one tensor was in it",
    }
    if rows:
        notes[NOTE] = rows
    if not timeline.closed:
        notes["unclosed"] = "the file was not closed, as of a run that was ended"
    if timeline.unfinished:
        notes["unfinished"] = f"{timeline.unfinished} phases had begun and not ended: not counted"
    yield Profile(
        tool="horovod_timeline", file=file, ranks=ranks or timeline.ranks, elapsed_s=length,
        phases=phases, messages=_messages(timeline), metrics=metrics, notes=notes,
    )  # fmt: skip


read = each(_profiles)


def _phases(timeline: Timeline) -> tuple[Phase, ...]:
    by_name: dict[str, list[tuple[float, float]]] = {}
    for phase in timeline.phases:
        by_name.setdefault(phase.name, []).append((phase.begin, phase.end))
    return tuple(
        Phase(name, len(spans), sum(b - a for a, b in spans) * _US, union_length(spans) * _US)
        for name, spans in by_name.items()
    )


def _messages(timeline: Timeline) -> tuple[Message, ...]:
    """Calls by operation and size, those that take most time.

    Tensors whose calls overlap were fused into one: its size is theirs together, its time is from
    the first begin to the last end. Where an operation makes several kinds of calls, as a
    hierarchical allreduce within nodes and between them, each is of a part of the ranks.
    """
    kinds: dict[int, set[str]] = {}
    calls: dict[str, list[Span]] = {}
    for phase in timeline.phases:
        if phase.outer is not None and CALL.fullmatch(phase.name):
            calls.setdefault(phase.name, []).append(phase)
            kinds.setdefault(id(phase.outermost), set()).add(phase.name)
    times: dict[tuple[str, int], list[float]] = {}
    parted: set[tuple[str, int]] = set()
    for name, own in calls.items():
        for begin, end, places in merged((phase.begin, phase.end) for phase in own):
            operations = [own[place].outermost for place in places]
            sizes = [operation.size for operation in operations if operation.size]
            if len(sizes) == len(operations) and end > begin:
                key = name, sum(sizes)
                times.setdefault(key, []).append((end - begin) * _US)
                if any(len(kinds[id(operation)]) > 1 for operation in operations):
                    parted.add(key)
    messages = [
        Message(
            operation, size, len(seconds), float(np.mean(seconds)),
            float(np.std(seconds, ddof=1)) if len(seconds) > 1 else None,
            (operation, size) not in parted,
        )
        for (operation, size), seconds in times.items()
    ]  # fmt: skip
    messages.sort(key=lambda message: -message.count * message.mean_s)
    return tuple(sorted(messages[:MAX_SIZES], key=lambda each: (each.operation, each.size)))
