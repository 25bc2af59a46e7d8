"""Horovod's timeline: a Chrome trace of rank 0, a JSON array that may never have been closed.

A process id is a tensor. ``B`` and ``E`` nest: NEGOTIATE_ALLREDUCE, then ALLREDUCE with
WAIT_FOR_DATA, QUEUE, MEMCPY_IN_FUSION_BUFFER, MPI_ALLREDUCE (or NCCL_, GLOO_) and so on inside;
``E`` has no name, and the outermost one says dtype and shape. ``X`` in a negotiation is the tick
of a rank that is ready; Horovod writes them only for negotiations that miss its response cache.
Tensors that are reduced in one call are written once each, so that the time of a phase is the union
of its intervals, not their sum (Horovod, docs/timeline.rst; common/timeline.cc).
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NEGOTIATE = "NEGOTIATE_"
# Calls that move the data of an operation: MPI_ALLREDUCE in ALLREDUCE.
CALL = re.compile(r"(?:MPI|NCCL|GLOO|CCL|DDL|ADASUM)_\w+")
# What is not inside of anything else; ends say dtype and shape.
OPERATIONS = frozenset(
    ("ALLREDUCE", "ALLGATHER", "BROADCAST", "ALLTOALL", "REDUCESCATTER", "JOIN", "BARRIER")
)
_BYTES = {
    "uint8": 1, "int8": 1, "bool": 1, "uint16": 2, "int16": 2, "float16": 2, "bfloat16": 2,
    "int32": 4, "float32": 4, "int64": 8, "float64": 8,
}  # fmt: skip
_SIZE = re.compile(r"\d{1,15}")
_SPACE = re.compile(r"[\s,]*")


class DamagedTraceError(ValueError):
    """What is wrong with a trace, and the line that shows it."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True)
class Interval:
    """A phase of one tensor, in microseconds; ``size`` of the tensor, where its end says it."""

    name: str
    tensor: int
    begin: float
    end: float
    outer: "OpenPhase | None"


@dataclass
class OpenPhase:
    """A phase that has begun; ``size`` is known when it ends."""

    name: str
    begin: float
    outer: "OpenPhase | None"
    size: int | None = None
    ready: list[tuple[float, int]] = field(default_factory=list)


@dataclass
class Trace:
    """Everything that a timeline says."""

    intervals: list[Interval] = field(default_factory=list)
    # Of each negotiation with ticks its name, and when which rank was ready.
    ready: list[tuple[str, list[tuple[float, int]]]] = field(default_factory=list)
    latest: dict[int, float] = field(default_factory=dict)  # time of a tensor's last event
    first: float = math.inf
    last: float = -math.inf
    unfinished: int = 0
    closed: bool = True

    @property
    def ranks(self) -> int | None:
        """One more than the highest rank that has a tick; None without ticks."""
        return (
            max((rank for _, moments in self.ready for _, rank in moments), default=-1) + 1 or None
        )


def read_trace(text: str) -> Trace:
    """Everything that a timeline says; raises DamagedTraceError for what Horovod does not write."""
    trace = Trace()
    stacks: dict[int, list[OpenPhase]] = {}
    for position, event in _events(text, trace):
        try:
            _add(event, trace, stacks)
        except DamagedTraceError as error:
            raise DamagedTraceError(str(error), text.count("\n", 0, position) + 1) from None
    trace.unfinished = sum(len(stack) for stack in stacks.values())
    return trace


def _events(text: str, trace: Trace) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Every event with its place; the last may be cut, as the array may lack its end."""
    decoder = json.JSONDecoder()
    start = text.find("[")
    position = start + 1
    if start < 0 or text[:start].strip():
        raise DamagedTraceError("not a JSON array", 1)
    while True:
        match = _SPACE.match(text, position)
        position = match.end() if match else position
        if position >= len(text):
            trace.closed = False
            return
        if text[position] == "]":
            if text[position + 1 :].strip():
                line = text.count("\n", 0, position) + 1
                raise DamagedTraceError("more behind the end of the array", line)
            return
        try:
            event, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):  # a number of 5,000 digits is no JSONDecodeError
            if text.find("}", position) < 0 or text.find("{", position + 1) < 0:
                trace.closed = False
                return
            line = text.count("\n", 0, position) + 1
            raise DamagedTraceError("not JSON: damaged", line) from None
        if not isinstance(event, dict):
            raise DamagedTraceError("not an event", text.count("\n", 0, position) + 1)
        yield position, event
        position = end


def _add(event: Mapping[str, Any], trace: Trace, stacks: dict[int, list[OpenPhase]]) -> None:
    """Add an event of the file to ``trace``; ``stacks`` are the open phases of each tensor.

    Raises DamagedTraceError if the event cannot follow the ones before it.
    """
    kind = event.get("ph")
    if kind not in ("B", "E", "X"):
        return
    tensor, when = event.get("pid"), event.get("ts")
    if not isinstance(tensor, int) or isinstance(when, bool) or not isinstance(when, int | float):
        raise DamagedTraceError("an event without tensor or time")
    if not 0 <= when < 2**62:
        raise DamagedTraceError("an event whose time is no number of microseconds")
    trace.first, trace.last = min(trace.first, when), max(trace.last, when)
    stack = stacks.setdefault(tensor, [])
    if when < trace.latest.get(tensor, 0):
        raise DamagedTraceError("earlier than the event before it of its tensor: lines are swapped")
    trace.latest[tensor] = when
    if kind == "B":
        stack.append(_begun(event.get("name"), float(when), stack))
    elif kind == "X":
        name = str(event.get("name"))
        if stack and stack[-1].name.startswith(NEGOTIATE) and re.fullmatch(r"\d{1,6}", name):
            stack[-1].ready.append((float(when), int(name)))
    else:
        if not stack:
            raise DamagedTraceError("a phase ends that has not begun: lines are missing or swapped")
        opened = stack.pop()
        if stack and event.get("args"):
            raise DamagedTraceError(
                f"{opened.name} ends as {stack[0].name} does: lines are missing"
            )
        opened.size = _size(event.get("args"))
        if opened.ready:
            trace.ready.append((opened.name, opened.ready))
        trace.intervals.append(
            Interval(opened.name, tensor, opened.begin, float(when), opened.outer)
        )


def _begun(name: Any, when: float, stack: Sequence[OpenPhase]) -> OpenPhase:
    """A phase that begins inside of those of ``stack``; raises DamagedTraceError where none can."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][\w ./-]{0,99}", name):
        raise DamagedTraceError("a phase without a name")
    if stack and (name.startswith(NEGOTIATE) or name in OPERATIONS):
        raise DamagedTraceError(f"{name} begins inside {stack[-1].name}: lines are missing")
    if not stack and CALL.fullmatch(name):
        raise DamagedTraceError(f"{name} begins outside of any operation: lines are missing")
    return OpenPhase(name, when, stack[-1] if stack else None)


def _size(args: Any) -> int | None:
    """Bytes of a tensor, from dtype and shape; None where they are not known."""
    if not isinstance(args, dict) or not isinstance(args.get("shape"), str):
        return None
    bytes_each = _BYTES.get(str(args.get("dtype")))
    sizes = [int(text) for text in _SIZE.findall(args["shape"])]
    return None if bytes_each is None else bytes_each * math.prod(sizes)
