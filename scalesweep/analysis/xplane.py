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
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

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
    Raises ValueError, TypeError or KeyError where the bytes are no XSpace."""
    planes = _decoded(memoryview(content)).get(1, [])
    columns = ["line", "device", "name", "begin", "end", "operation"]
    events = pd.DataFrame([event for plane in planes for event in _events(plane)], columns=columns)
    windows = _windows(events[events["name"].str.startswith(_CALL)].sort_values("begin"))
    if not len(windows):
        return None
    on_gpu = bool(events["device"].str.startswith("GPU").any())
    parts = {
        pair: _part(*pair, on_gpu) for pair in {*zip(events["device"], events["name"], strict=True)}
    }
    events["part"] = [parts[pair] for pair in zip(events["device"], events["name"], strict=True)]
    spans = {
        name: events.loc[events["part"] == name, ["begin", "end"]].to_numpy(float)
        for name in (COMPUTATION, COMMUNICATION, COPIES, INPUT)
    }
    return account_of(windows, len(windows), spans), _operations(events, windows)


def _part(device: str, name: str, on_gpu: bool) -> str:
    """The part that an event belongs to; empty for events that are none, or of the host where a
    GPU computes."""
    on_host = device in (CPU, PIPELINE)
    if on_host and name.removeprefix(_CALL).startswith(_BATCH):
        return INPUT
    if device in ("", PIPELINE) or on_host is on_gpu:
        return ""
    if on_host:
        if not _OPERATION.fullmatch(name) or _BATCH in name:
            return ""
        name = name.partition(":")[2]  # of its node and its type
    elif _COPY.search(name):
        return COPIES
    return COMMUNICATION if _COLLECTIVE.search(name) else COMPUTATION


def _windows(calls: pd.DataFrame) -> Floats:
    """Begin and end of each step's window, ``[step, 2]``, from calls of functions by begin."""
    names = {name for name in calls["name"] if _STEP.fullmatch(name)}
    windows = []
    last: float | None = None
    for name, end in zip(calls["name"], calls["end"], strict=True):
        if name in names and len(names) == 1:
            if last is not None and end > last:
                windows.append((last, end))
            last = end
        elif name.startswith(_OTHERS):
            last = None
    return np.array(windows, np.float64).reshape(-1, 2)


def _operations(events: pd.DataFrame, windows: Floats) -> list[Operation]:
    """What ran in the windows by device and type; times of threads and streams add up."""
    keys = [*zip(events["device"], events["name"], events["operation"], strict=True)]
    types = {key: _type(*key) for key in {*keys}}
    events = events.assign(type=[types[key] for key in keys])
    events = events[events["type"] != ""].sort_values(["line", "begin", "end"],
                                                      ascending=[True, True, False])  # fmt: skip
    spans = events[["begin", "end"]].to_numpy(float)
    events["within"] = inside(spans, windows)
    events["seconds"] = events["within"]
    for _, rows in events[~events["device"].str.startswith("GPU")].groupby("line"):
        own = _without_inner(rows[["begin", "end"]].to_numpy(), rows["within"].to_numpy())
        events.loc[rows.index, "seconds"] = own
    events["calls"] = np.searchsorted(windows.reshape(-1), spans[:, 0], "right") % 2
    nodes = events["operation"].where(events["operation"] != "", events["name"])
    gradient = nodes.str.rpartition(":")[0].str.contains(_GRADIENT)
    events["gradient_s"] = events["seconds"].where(gradient, 0.0)
    shown = events[events["within"] > 0].groupby(["device", "type"], sort=False)
    sums = shown[["seconds", "gradient_s", "calls"]].sum() / len(windows)
    return [Operation(*key, *row) for key, row in zip(sums.index, sums.to_numpy(), strict=True)]


def _type(device: str, name: str, operation: str) -> str:
    """The type of operation that an event is of; empty of one that is none."""
    if not device.startswith("GPU"):
        known = device and _OPERATION.fullmatch(name)
        return name.rpartition(":")[2].lstrip("_") if known else ""
    if _COPY.search(name) or name.lower().startswith("memset"):
        return name
    if _COLLECTIVE.search(name):
        return COLLECTIVES
    return operation.rpartition(":")[2].lstrip("_") or UNNAMED


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


def _events(plane: memoryview) -> Iterator[tuple[str, str, str, float, float, str]]:
    """What the threads or streams of a plane did: line, device, name, begin and end in seconds on
    one clock, and of a kernel or a copy the operation that started it, ``NODE:TYPE``.

    Device: ``CPU``, ``GPU:0``, ... or ``CPU, input pipeline``; empty of lines that the profiler
    derives from others.
    """
    fields = _decoded(plane)
    title = _text(fields.get(2))
    device = _DEVICE.match(title)
    names, statistics = _names(fields.get(4, [])), _names(fields.get(5, []))
    for number, message in enumerate(fields.get(3, [])):
        line = _decoded(message)
        name, began = _text(line.get(2)), line.get(3, [0])[0] * 1e-9
        where = PIPELINE if name.startswith(_DATA_LINE) else CPU
        if title.startswith("/device:"):
            where = device[1] if device and name.startswith(_STREAM) else ""
        for entry in line.get(4, []):
            event = _decoded(entry)
            begin = began + event.get(2, [0])[0] * 1e-12
            end = begin + event.get(3, [0])[0] * 1e-12
            operation = _started_by(event.get(4, []), statistics) if device else ""
            called = names.get(event.get(1, [0])[0], "")
            yield f"{title} {number}", where, called, begin, end, operation


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
