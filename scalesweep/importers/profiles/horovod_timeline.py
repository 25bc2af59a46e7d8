"""Horovod's timeline: a Chrome trace of rank 0, a JSON array that may never have been closed.

A process id is a tensor. ``B`` and ``E`` nest: NEGOTIATE_ALLREDUCE, then ALLREDUCE with
WAIT_FOR_DATA, QUEUE, MEMCPY_IN_FUSION_BUFFER, MPI_ALLREDUCE (or NCCL_, GLOO_) and so on inside;
``E`` has no name, and the outermost one says dtype and shape. Tensors that are reduced in one call
are written once each, so that the time of a phase is the union of its intervals, not their sum
(Horovod, docs/timeline.rst; common/timeline.cc).
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.profile import Message, Phase, Profile, merged, union_length
from scalesweep.importers.imported_run import Refusal
from scalesweep.importers.profiles.source import Found, ProfileRefused, metric, text_of

TOOL = "horovod_timeline"
NEGOTIATE = "NEGOTIATE_"
# Calls that move the data of an operation: MPI_ALLREDUCE in ALLREDUCE.
_CALL = re.compile(r"(?:MPI|NCCL|GLOO|CCL|DDL|ADASUM)_\w+")
# What is not inside of anything else; ends say dtype and shape.
_OPERATIONS = frozenset(
    ("ALLREDUCE", "ALLGATHER", "BROADCAST", "ALLTOALL", "REDUCESCATTER", "JOIN", "BARRIER")
)
_BYTES = {
    "uint8": 1, "int8": 1, "bool": 1, "uint16": 2, "int16": 2, "float16": 2, "bfloat16": 2,
    "int32": 4, "float32": 4, "int64": 8, "float64": 8,
}  # fmt: skip
_SIZE = re.compile(r"\d{1,15}")
MAX_SIZES = 200
_SPACE = re.compile(r"[\s,]*")
_US = 1e-6


@dataclass(frozen=True)
class _Interval:
    """A phase of one tensor, in microseconds; ``size`` of the tensor, where its end says it."""

    name: str
    tensor: int
    begin: float
    end: float
    outer: "_Open | None"


@dataclass
class _Open:
    """A phase that has begun; ``size`` is known when it ends."""

    name: str
    begin: float
    outer: "_Open | None"
    size: int | None = None


@dataclass
class _Trace:
    """Everything that a timeline says."""

    intervals: list[_Interval] = field(default_factory=list)
    ticks: set[int] = field(default_factory=set)
    latest: dict[int, float] = field(default_factory=dict)  # time of a tensor's last event
    first: float = math.inf
    last: float = -math.inf
    unfinished: int = 0
    closed: bool = True


def recognise(head: str) -> bool:
    """Whether a file begins as a timeline of Horovod does."""
    return head.lstrip().startswith("[") and (
        "start_time_since_epoch_in_micros" in head or f'"{NEGOTIATE}' in head
    )


def read(files: Sequence[Path], ranks: int | None = None) -> Found:
    """A profile of each timeline; ``ranks`` where it names none.

    Which ranks took part is known from the ticks in negotiations that missed Horovod's cache.
    """
    found = Found([], [])
    for file in files:
        try:
            found.profiles.append(_profile(file, ranks))
        except ProfileRefused as error:
            found.refusals.append(Refusal(file, str(error), error.line))
    return found


def _profile(file: Path, ranks: int | None) -> Profile:
    trace = _trace(text_of(file))
    if not trace.intervals:
        raise ProfileRefused("no phase of any tensor in it begins and ends")
    seen = max(trace.ticks) + 1 if trace.ticks else None
    if seen and ranks and ranks < seen:
        raise ProfileRefused(f"names rank {seen - 1}, but --config ranks={ranks}")
    phases = _phases(trace)
    metrics: dict[str, dict[str, object]] = {
        "timeline_length": metric((trace.last - trace.first) * _US, "s", "lower")
    }
    for phase in phases:
        name = re.sub(r"\W+", "_", phase.name.lower()).strip("_")
        metrics[f"{name}_sum"] = metric(phase.sum_s, "s", "lower")
        metrics[f"{name}_union"] = metric(phase.union_s, "s", "lower")
    messages, left_out = _messages(trace)
    notes: dict[str, object] = {
        "clock": "that of rank 0",
        "phases": "sum: over all tensors; union: while at least one tensor was in it",
    }
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


def _trace(text: str) -> _Trace:
    trace = _Trace()
    stacks: dict[int, list[_Open]] = {}
    for position, event in _events(text, trace):
        try:
            _add(event, trace, stacks)
        except ProfileRefused as error:
            raise ProfileRefused(str(error), text.count("\n", 0, position) + 1) from None
    trace.unfinished = sum(len(stack) for stack in stacks.values())
    return trace


def _events(text: str, trace: _Trace) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Every event with its place; the last may be cut, as the array may lack its end."""
    decoder = json.JSONDecoder()
    start = text.find("[")
    position = start + 1
    if start < 0 or text[:start].strip():
        raise ProfileRefused("not a JSON array", 1)
    while True:
        match = _SPACE.match(text, position)
        position = match.end() if match else position
        if position >= len(text):
            trace.closed = False
            return
        if text[position] == "]":
            if text[position + 1 :].strip():
                line = text.count("\n", 0, position) + 1
                raise ProfileRefused("more behind the end of the array", line)
            return
        try:
            event, end = decoder.raw_decode(text, position)
        except (json.JSONDecodeError, RecursionError):
            if text.find("}", position) < 0 or text.find("{", position + 1) < 0:
                trace.closed = False
                return
            line = text.count("\n", 0, position) + 1
            raise ProfileRefused("not JSON: damaged", line) from None
        if not isinstance(event, dict):
            raise ProfileRefused("not an event", text.count("\n", 0, position) + 1)
        yield position, event
        position = end


def _add(event: Mapping[str, Any], trace: _Trace, stacks: dict[int, list[_Open]]) -> None:
    kind = event.get("ph")
    if kind not in ("B", "E", "X"):
        return
    tensor, when = event.get("pid"), event.get("ts")
    if not isinstance(tensor, int) or isinstance(when, bool) or not isinstance(when, int | float):
        raise ProfileRefused("an event without tensor or time")
    if not 0 <= when < 2**62:
        raise ProfileRefused("an event whose time is no number of microseconds")
    trace.first, trace.last = min(trace.first, when), max(trace.last, when)
    stack = stacks.setdefault(tensor, [])
    if when < trace.latest.get(tensor, 0):
        raise ProfileRefused("earlier than the event before it of its tensor: lines are swapped")
    trace.latest[tensor] = when
    if kind == "B":
        stack.append(_begun(event.get("name"), float(when), stack))
    elif kind == "X":
        name = str(event.get("name"))
        if stack and stack[-1].name.startswith(NEGOTIATE) and re.fullmatch(r"\d{1,6}", name):
            trace.ticks.add(int(name))
    else:
        if not stack:
            raise ProfileRefused("a phase ends that has not begun: lines are missing or swapped")
        opened = stack.pop()
        if stack and event.get("args"):
            raise ProfileRefused(f"{opened.name} ends as {stack[0].name} does: lines are missing")
        opened.size = _size(event.get("args"))
        trace.intervals.append(
            _Interval(opened.name, tensor, opened.begin, float(when), opened.outer)
        )


def _begun(name: Any, when: float, stack: Sequence[_Open]) -> _Open:
    """A phase that begins inside of those of ``stack``; raises ProfileRefused where none can."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][\w ./-]{0,99}", name):
        raise ProfileRefused("a phase without a name")
    if stack and (name.startswith(NEGOTIATE) or name in _OPERATIONS):
        raise ProfileRefused(f"{name} begins inside {stack[-1].name}: lines are missing")
    if not stack and _CALL.fullmatch(name):
        raise ProfileRefused(f"{name} begins outside of any operation: lines are missing")
    return _Open(name, when, stack[-1] if stack else None)


def _size(args: Any) -> int | None:
    """Bytes of a tensor, from dtype and shape; None where they are not known."""
    if not isinstance(args, dict) or not isinstance(args.get("shape"), str):
        return None
    bytes_each = _BYTES.get(str(args.get("dtype")))
    sizes = [int(text) for text in _SIZE.findall(args["shape"])]
    return None if bytes_each is None else bytes_each * math.prod(sizes)


def _phases(trace: _Trace) -> tuple[Phase, ...]:
    by_name: dict[str, list[tuple[float, float]]] = {}
    for one in trace.intervals:
        by_name.setdefault(one.name, []).append((one.begin, one.end))
    return tuple(
        Phase(
            name,
            len(those),
            sum(end - begin for begin, end in those) * _US,
            union_length(those) * _US,
        )
        for name, those in by_name.items()
    )


def _messages(trace: _Trace) -> tuple[tuple[Message, ...], int]:
    """Calls by operation and size, and how many sizes are left out.

    Tensors whose calls overlap were fused into one: its size is theirs together, its time is from
    the first begin to the last end.
    """
    calls: dict[str, list[_Interval]] = {}
    for one in trace.intervals:
        if one.outer is not None and _CALL.fullmatch(one.name):
            calls.setdefault(one.name, []).append(one)
    times: dict[tuple[str, int], list[float]] = {}
    for name, those in calls.items():
        for begin, end, places in merged([(one.begin, one.end) for one in those]):
            sizes = [_outer_size(those[place]) for place in places]
            if all(size is not None for size in sizes) and end > begin:
                total = sum(size or 0 for size in sizes)
                times.setdefault((name, total), []).append((end - begin) * _US)
    found = [
        Message(
            operation,
            size,
            len(those),
            float(np.mean(those)),
            float(np.std(those, ddof=1)) if len(those) > 1 else None,
        )
        for (operation, size), those in times.items()
        if size > 0
    ]
    found.sort(key=lambda one: -one.count * one.mean_s)
    kept = sorted(found[:MAX_SIZES], key=lambda one: (one.operation, one.size))
    return tuple(kept), len(found) - len(kept)


def _outer_size(call: _Interval) -> int | None:
    """Bytes of the tensor of a call: what the end of its outermost phase says."""
    outer = call.outer
    while outer is not None and outer.outer is not None:
        outer = outer.outer
    return None if outer is None else outer.size
