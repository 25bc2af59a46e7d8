"""Reading what TensorFlow's profiler leaves: ``*.xplane.pb``, a protobuf of planes of events.

XSpace has planes (a host, a GPU), these have lines (a thread, a stream), and these events with a
name, a begin and a length (tensorflow/tsl/profiler/protobuf/xplane.proto). Read from the bytes:
the front has no TensorFlow, and versions differ in what else a message has, which is skipped.
"""

from collections.abc import Iterator
from dataclasses import dataclass

# Field numbers of xplane.proto.
_PLANES, _NAME, _LINES, _NAMES, _STATISTICS = 1, 2, 3, 4, 5
_LINE_NAME, _LINE_BEGIN_NS, _EVENTS = 2, 3, 4
_EVENT_NAME, _OFFSET_PS, _LENGTH_PS, _OF_EVENT = 1, 2, 3, 4
_VALUE, _METADATA_ID = 2, 1
_STATISTIC, _TEXT, _REFERENCE = 1, 5, 7  # of a statistic: which one, its text, whose name it is
_DEVICE = "/device:"
_OPERATION = "tf_op"  # of a kernel: the operation that started it, NODE:TYPE
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_PS = 1e-12
_NS = 1e-9


@dataclass(frozen=True, slots=True)
class Event:
    """What a thread or a stream did: ``begin`` and ``end`` in seconds, on one clock of the host.

    ``operation``: of a kernel or a copy on a device, what started it, ``NODE:TYPE`` where known.
    """

    name: str
    begin: float
    end: float
    operation: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A thread or a stream of a plane, with its events in no order."""

    plane: str
    name: str
    events: list[Event]


def read_xplane(content: bytes) -> list[Line]:
    """The lines of all planes; raises ValueError where the bytes are no such message."""
    return [
        line
        for number, value in _fields(memoryview(content))
        if number == _PLANES
        for line in _plane(_message(value))
    ]


def _plane(plane: memoryview) -> Iterator[Line]:
    name, lines = "", []
    names: dict[int, str] = {}
    statistics: dict[int, str] = {}
    for number, value in _fields(plane):
        if number == _NAME:
            name = _text(value)
        elif number == _LINES:
            lines.append(_message(value))
        elif number in (_NAMES, _STATISTICS):
            entry = dict(_fields(_message(value)))
            if _VALUE in entry:
                metadata = dict(_fields(_message(entry[_VALUE])))
                known = names if number == _NAMES else statistics
                known[_integer(metadata.get(_METADATA_ID, 0))] = _text(metadata.get(_NAME, b""))
    for line in lines:
        yield _line(name, line, names, statistics)


def _line(plane: str, line: memoryview, names: dict[int, str], statistics: dict[int, str]) -> Line:
    name, began, events = "", 0, []
    for number, value in _fields(line):
        if number == _LINE_NAME:
            name = _text(value)
        elif number == _LINE_BEGIN_NS:
            began = _integer(value)
        elif number == _EVENTS:
            events.append(_message(value))
    shown = []
    for message in events:
        event = dict(_fields(message))
        begin = began * _NS + _integer(event.get(_OFFSET_PS, 0)) * _PS
        length = _integer(event.get(_LENGTH_PS, 0)) * _PS
        title = names.get(_integer(event.get(_EVENT_NAME, 0)), "")
        operation = _operation(message, statistics) if plane.startswith(_DEVICE) else ""
        shown.append(Event(title, begin, begin + length, operation))
    return Line(plane, name, shown)


def _operation(event: memoryview, statistics: dict[int, str]) -> str:
    """What the statistics of an event say of its operation; empty where they do not."""
    for number, value in _fields(event):
        if number == _OF_EVENT:
            fields = dict(_fields(_message(value)))
            if statistics.get(_integer(fields.get(_STATISTIC, 0))) == _OPERATION:
                referred = statistics.get(_integer(fields.get(_REFERENCE, 0)), "")
                return _text(fields[_TEXT]) if _TEXT in fields else referred
    return ""


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Number and value of each field, in order."""
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            size, at = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"no protobuf: wire type {kind}")
        if at + size > end:
            raise ValueError("no protobuf: a field ends after its message")
        if kind == _BYTES:
            yield key >> 3, message[at : at + size]
        at += size


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


def _message(value: object) -> memoryview:
    if not isinstance(value, memoryview):
        raise ValueError("no XSpace: a number where a message has to be")
    return value


def _text(value: object) -> str:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, memoryview | bytes) else ""


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0
