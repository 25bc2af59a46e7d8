"""What TensorFlow's profiler leaves (``*.xplane.pb``): the account of a step, and its operations.

XSpace has planes (a host, a GPU), these have lines (a thread, a stream), and these events with a
name, a begin and a length (tensorflow/tsl/profiler/protobuf/xplane.proto). Read from the bytes: the
front has no TensorFlow, and fields that are not known are skipped.

A step of our programs is a call of the function ``step``. Its window ends where that call ends and
begins where the one before it ended, so that waiting for input is in it; windows in which another
function or a barrier was called are left out. Horovod's allreduce is an asynchronous operation,
which the profiler does not record on a CPU.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scalesweep.analysis.trace_account import (
    COMMUNICATION,
    COMPUTATION,
    COPIES,
    INPUT,
    TraceAccount,
    account_of,
    inside,
)
from scalesweep.analysis.types import Floats

CPU, PIPELINE = "CPU", "CPU, input pipeline"
COLLECTIVES, UNNAMED = "(collectives)", "(kernels without an operation)"
_CALL = "EagerLocalExecute: "
_STEP = re.compile(rf"{_CALL}__inference_step_\d+")
# What is called between two steps that do not follow on each other: an evaluation, a barrier.
_OTHERS = (f"{_CALL}__inference_", f"{_CALL}Horovod")
_BATCH = "IteratorGetNext"
_OPERATION = re.compile(r"[^:]+:_?[A-Za-z]\w*")
_COLLECTIVE = re.compile(r"nccl|Horovod(Allreduce|Allgather|Broadcast|Reducescatter|Alltoall)"
                         r"|Collective(Reduce|Gather|Bcast)", re.IGNORECASE)  # fmt: skip
_COPY = re.compile(r"^memcpy", re.IGNORECASE)
_GRADIENT = re.compile(r"(?:^|/|_)gradients?(?:_tape|_\d+)?(?:/|_\d|$)")
_DEVICE = re.compile(r"/device:(\w+:\d+)")
_DATA_LINE, _STREAM = "tf_data", "Stream"


class Event(NamedTuple):
    """What a thread or a stream did, in seconds on one clock; ``operation``: of a kernel or a copy
    what started it, ``NODE:TYPE`` where known."""

    name: str
    begin: float
    end: float
    operation: str = ""


@dataclass(frozen=True)
class Line:
    """A thread or a stream with its events in no order; ``device``: ``CPU``, ``GPU:0``, ... or
    ``CPU, input pipeline``; empty of lines that the profiler derives from others."""

    name: str
    device: str
    events: Sequence[Event]


class Operation(NamedTuple):
    """A type of operation on a device: seconds without those that it calls, how much of that is in
    nodes of the gradient, and calls, each per step."""

    device: str
    operation: str
    seconds: float
    gradient_s: float
    calls: float


def read_steps(content: bytes) -> tuple[TraceAccount, list[Operation]] | None:
    """The account of a rank's steps and its operations; None without two steps after each other.

    Raises ValueError, TypeError or KeyError where the bytes are no XSpace.
    """
    lines = [line for plane in _decoded(memoryview(content)).get(1, []) for line in _lines(plane)]
    windows = _windows(lines)
    if not len(windows):
        return None
    on_gpu = any(line.device.startswith("GPU") for line in lines)
    kinds: dict[str, list[Event]] = {
        COMPUTATION: [], COMMUNICATION: [], COPIES: [], INPUT: [],
    }  # fmt: skip
    for line in lines:
        on_host = line.device in (CPU, PIPELINE)
        for event in line.events:
            if on_host and event.name.removeprefix(_CALL).startswith(_BATCH):
                kinds[INPUT].append(event)
            elif line.device not in ("", PIPELINE) and on_host is not on_gpu:
                kinds.get(_part(event.name, on_host), []).append(event)
    spans = {name: _spans(events) for name, events in kinds.items()}
    account = account_of(windows, len(windows), spans)
    return account, list(_operations(lines, windows))


def _spans(events: Iterable[Event]) -> Floats:
    return np.array([event[1:3] for event in events], np.float64).reshape(-1, 2)


def _part(name: str, on_host: bool) -> str:
    """The part that an operation (or kernel) belongs to; empty for events that are none."""
    if on_host:
        if not _OPERATION.fullmatch(name) or _BATCH in name:
            return ""
        name = name.partition(":")[2]  # of its node and its type
    elif _COPY.search(name):
        return COPIES
    return COMMUNICATION if _COLLECTIVE.search(name) else COMPUTATION


def _windows(lines: Iterable[Line]) -> Floats:
    """Begin and end of each step's window, ``[step, 2]``."""
    calls = sorted(
        (event for line in lines for event in line.events if event.name.startswith(_CALL)),
        key=lambda event: event.begin,
    )
    names = {event.name for event in calls if _STEP.fullmatch(event.name)}
    windows = []
    last: float | None = None
    for event in calls:
        if event.name in names and len(names) == 1:
            if last is not None and event.end > last:
                windows.append((last, event.end))
            last = event.end
        elif event.name.startswith(_OTHERS):
            last = None
    return np.array(windows, np.float64).reshape(-1, 2)


def _operations(lines: Iterable[Line], windows: Floats) -> Iterator[Operation]:
    """What ran in the windows by device and type; times of threads and streams add up."""
    sums: dict[tuple[str, str], Any] = {}
    for line in lines:
        events, kinds = _typed(line)
        spans = _spans(events)
        within = inside(spans, windows)
        own = within if line.device.startswith("GPU") else _without_inner(spans, within)
        begins = np.searchsorted(windows.reshape(-1), spans[:, 0], "right") % 2
        for event, kind, here, seconds, begun in zip(
            events, kinds, within, own, begins, strict=True
        ):
            if here > 0:
                node = (event.operation or event.name).rpartition(":")[0]
                entry = sums.setdefault((line.device, kind), np.zeros(3))
                entry += (seconds, seconds if _GRADIENT.search(node) else 0.0, begun)
    for (device, kind), numbers in sums.items():
        yield Operation(device, kind, *(float(number) for number in numbers / len(windows)))


def _typed(line: Line) -> tuple[list[Event], list[str]]:
    """The operations of a line by begin, and their types."""
    if not line.device:
        return [], []
    if line.device.startswith("GPU"):
        return list(line.events), [_of_kernel(event) for event in line.events]
    events = [event for event in line.events if _OPERATION.fullmatch(event.name)]
    events.sort(key=lambda event: (event.begin, -event.end))
    return events, [event.name.rpartition(":")[2].lstrip("_") for event in events]


def _of_kernel(event: Event) -> str:
    """The type of operation that a kernel or a copy is of."""
    if _COPY.search(event.name) or event.name.lower().startswith("memset"):
        return event.name
    if _COLLECTIVE.search(event.name):
        return COLLECTIVES
    return event.operation.rpartition(":")[2].lstrip("_") or UNNAMED


def _without_inner(spans: Floats, seconds: Floats) -> Floats:
    """Seconds of operations of one thread, by begin, without those that lie in them."""
    own = seconds.copy()
    outer: list[int] = []  # places of those that the next one may lie in
    for place, (begin, end) in enumerate(spans):
        while outer and spans[outer[-1], 1] <= begin:
            outer.pop()
        if outer and end <= spans[outer[-1], 1]:
            own[outer[-1]] -= seconds[place]
        outer.append(place)
    return np.maximum(own, 0.0)


def _lines(plane: memoryview) -> Iterator[Line]:
    """The threads or streams of a plane."""
    fields = _decoded(plane)
    title = _text(fields.get(2))
    device = _DEVICE.match(title)
    names, statistics = _names(fields.get(4, [])), _names(fields.get(5, []))
    for message in fields.get(3, []):
        line = _decoded(message)
        name, began = _text(line.get(2)), line.get(3, [0])[0] * 1e-9
        where = PIPELINE if name.startswith(_DATA_LINE) else CPU
        if title.startswith("/device:"):
            where = device[1] if device and name.startswith(_STREAM) else ""
        events = []
        for entry in line.get(4, []):
            event = _decoded(entry)
            begin = began + event.get(2, [0])[0] * 1e-12
            end = begin + event.get(3, [0])[0] * 1e-12
            operation = _started_by(event.get(4, []), statistics) if device else ""
            events.append(Event(names.get(event.get(1, [0])[0], ""), begin, end, operation))
        yield Line(name, where, events)


def _names(entries: Sequence[memoryview]) -> dict[int, str]:
    """Names by the number that events have for them."""
    known = [_decoded(_decoded(entry)[2][0]) for entry in entries]
    return {each.get(1, [0])[0]: _text(each.get(2)) for each in known}


def _started_by(entries: Sequence[memoryview], statistics: dict[int, str]) -> str:
    """The operation that the statistics of a kernel name; empty where they do not."""
    for entry in entries:
        fields = _decoded(entry)
        if statistics.get(fields.get(1, [0])[0]) == "tf_op":
            return _text(fields.get(5)) or statistics.get(fields.get(7, [0])[0], "")
    return ""


def _decoded(message: memoryview) -> dict[int, list[Any]]:
    """The values of each field of a protobuf, by number: integers, or bytes of text or messages."""
    fields: dict[int, list[Any]] = {}
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        value: Any = None
        if key & 7 == 0:
            value, at = _varint(message, at)
        elif key & 7 == 2:
            size, at = _varint(message, at)
            value, at = message[at : at + size], at + size
        elif key & 7 in (1, 5):
            at += 8 if key & 7 == 1 else 4
        else:
            raise ValueError(f"no protobuf: wire type {key & 7}")
        if at > len(message):
            raise ValueError("no protobuf: a field ends after its message")
        if value is not None:
            fields.setdefault(key >> 3, []).append(value)
    return fields


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    result = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
    raise ValueError("no protobuf: a number does not end")


def _text(values: Sequence[Any] | None) -> str:
    return bytes(values[-1]).decode("utf-8", "replace") if values else ""
