"""Which operations ran on which device in a trace of a framework's profiler, and for how long.

Of the same windows as the account of a step (``trace_account``). An operation is known by its type
(``Conv2D``) and its node, which says whether it is of a gradient. On a host its time is that of a
thread without the operations that it calls there; on a GPU that of its kernels, which the profiler
names after it. Times of threads and streams add up: several run at once.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from scalesweep.analysis.trace_account import (
    COLLECTIVE,
    COPY,
    DATA_LINE,
    DEVICE,
    OPERATION,
    STREAM,
    step_windows,
)
from scalesweep.analysis.types import Floats
from scalesweep.analysis.xplane import Event, Line

CPU, PIPELINE = "CPU", "CPU, input pipeline"
COLLECTIVES, UNNAMED = "(collectives)", "(kernels without an operation)"
_GRADIENT = re.compile(r"(?:^|/|_)gradients?(?:_tape|_\d+)?(?:/|_\d|$)")
_DEVICE_NAME = re.compile(r"/device:(\w+:\d+)")


@dataclass
class OperationTime:
    """Seconds and calls of a type of operation per step, and how much of it is of gradients."""

    seconds: float = 0.0
    gradient_s: float = 0.0
    calls: float = 0.0

    def over(self, count: int) -> "OperationTime":
        """The same of one of so many."""
        return OperationTime(self.seconds / count, self.gradient_s / count, self.calls / count)


class Timed(NamedTuple):
    """An operation on a device: its type, when it ran, its own seconds in the windows, and whether
    it is of a gradient."""

    device: str
    kind: str
    event: Event
    seconds: float
    of_gradient: bool


@dataclass(frozen=True)
class TraceOperations:
    """What ran in the ``steps`` looked at, by device and type."""

    steps: int
    times: Mapping[tuple[str, str], OperationTime]


def trace_operations(lines: Sequence[Line]) -> TraceOperations | None:
    """The operations of one rank's trace; None where it shows no two steps after each other."""
    windows = step_windows(lines)
    if not len(windows):
        return None
    return operations_of(windows, _timed(lines, _Within(windows)))


def _timed(lines: Iterable[Line], within: "_Within") -> Iterator[Timed]:
    for line in lines:
        device = _device_of(line)
        if device is None:
            continue
        for event, kind, seconds in _own_times(line, device, within):
            node = (event.operation or event.name).rpartition(":")[0]
            yield Timed(device, kind, event, seconds, bool(_GRADIENT.search(node)))


def operations_of(windows: Floats, timed: Iterable[Timed]) -> TraceOperations:
    """What ran in windows ``[step, 2]``; events that lie in none of them do not count."""
    within = _Within(windows)
    times: dict[tuple[str, str], OperationTime] = {}
    for device, kind, event, seconds, of_gradient in timed:
        if within(event) <= 0 and event.end > event.begin:
            continue
        entry = times.setdefault((device, kind), OperationTime())
        entry.seconds += seconds
        entry.gradient_s += seconds if of_gradient else 0.0
        entry.calls += within.begins(event)
    return TraceOperations(len(windows), {key: t.over(len(windows)) for key, t in times.items()})


class _Within:
    """How much of an event lies in the windows, which ascend and do not overlap."""

    def __init__(self, windows: Floats) -> None:
        ends = np.cumsum(windows[:, 1] - windows[:, 0])
        covered = np.stack([np.concatenate([[0.0], ends[:-1]]), ends], axis=1)
        self.edges, self.covered = windows.reshape(-1), covered.reshape(-1)

    def __call__(self, event: Event) -> float:
        """Seconds of the event in the windows."""
        low, high = np.interp((event.begin, event.end), self.edges, self.covered)
        return float(high - low)

    def begins(self, event: Event) -> bool:
        """Whether an event begins in a window."""
        return bool(np.searchsorted(self.edges, event.begin, "right") % 2)


def _device_of(line: Line) -> str | None:
    """Where the operations of a line run; None of lines that the profiler derives from others."""
    if line.plane.startswith(DEVICE):
        name = _DEVICE_NAME.match(line.plane)
        return name[1] if name and line.name.startswith(STREAM) else None
    return PIPELINE if line.name.startswith(DATA_LINE) else CPU


def _own_times(line: Line, device: str, within: _Within) -> Iterator[tuple[Event, str, float]]:
    """Operations of a line with their type, and the seconds of each without those in it."""
    if device not in (CPU, PIPELINE):
        yield from ((event, _of_kernel(event), within(event)) for event in line.events)
        return
    events = sorted(
        (event for event in line.events if OPERATION.fullmatch(event.name)),
        key=lambda event: (event.begin, -event.end),
    )
    own: list[float] = []
    open_: list[int] = []  # places of those that the next one may lie in
    for place, event in enumerate(events):
        own.append(within(event))
        while open_ and events[open_[-1]].end <= event.begin:
            open_.pop()
        if open_ and event.end <= events[open_[-1]].end:
            own[open_[-1]] -= own[place]
        open_.append(place)
    for event, seconds in zip(events, own, strict=True):
        yield event, event.name.rpartition(":")[2].lstrip("_"), max(seconds, 0.0)


def _of_kernel(event: Event) -> str:
    """The type of operation that a kernel or a copy is of."""
    if COPY.search(event.name) or event.name.lower().startswith("memset"):
        return event.name
    if COLLECTIVE.search(event.name):
        return COLLECTIVES
    return event.operation.rpartition(":")[2].lstrip("_") or UNNAMED


def mean_over(
    accounts: Iterable[TraceOperations],
) -> list[tuple[str, str, OperationTime]]:
    """Device, type and times, means over the ranks; the devices in their order, of each the longest
    first. A rank without an operation has 0 of it."""
    every = list(accounts)
    sums: dict[tuple[str, str], OperationTime] = {}
    for account in every:
        for key, time in account.times.items():
            entry = sums.setdefault(key, OperationTime())
            entry.seconds += time.seconds
            entry.gradient_s += time.gradient_s
            entry.calls += time.calls
    order = sorted(sums, key=lambda key: (key[0], -sums[key].seconds, key[1]))
    return [(*key, sums[key].over(len(every))) for key in order]
