"""Where the time of a step goes in a trace of PyTorch's profiler (Kineto): one rank.

A step's window ends where the optimiser's step ends and begins where the one before it ended, on
the GPU where there is one: the host is ahead of it, most in the first steps. Windows in which our
ranks meet between steps (``BETWEEN``) are left out. Within a window count, in
the order of ``trace_account``, what overlaps once:

1. computation: an operation runs on the host; with GPUs: a kernel that is no collective;
2. communication: else, a kernel of NCCL, or Gloo exchanges (it records its own calls);
3. copies: else, a copy from or to a GPU, or a fill of its memory;
4. input: else, the program asks a DataLoader for a batch;
5. rest: nothing of these.

What wraps operations (``DistributedDataParallel.forward``, autograd's functions, DTensor's
operations that call the exchange) may wait inside and is none. A trace is JSON, perhaps compressed
by gzip: events with a name, a begin and a length in microseconds (Chrome's trace format).
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scalesweep.analysis.kineto_account import windows_between
from scalesweep.analysis.kineto_stream import BETWEEN
from scalesweep.analysis.trace_account import (
    COMMUNICATION,
    COMPUTATION,
    COPIES,
    INPUT,
    TraceAccount,
    account_of,
)
from scalesweep.analysis.trace_operations import (
    COLLECTIVES,
    CPU,
    UNNAMED,
    Timed,
    TraceOperations,
    operations_of,
)
from scalesweep.analysis.types import Floats
from scalesweep.analysis.xplane import Event

_STEP = "Optimizer.step#"
_BATCH = "enumerate(DataLoader)#"
_GRADIENT = "autograd::engine::evaluate_function:"
_OPERATION = re.compile(
    r"(?:aten|mkldnn|onednn|quantized|fbgemm|torch::distributed::reducer"
    r"|torch\.distributed\.ddp\.reducer)::"
    r"|CompiledFunction(?:Backward)?$|## Call CompiledFxGraph"
)
_EXCHANGE = re.compile(r"(?:gloo|mpi|ucc):")
_CALL_OF_EXCHANGE = re.compile(r"(?:c10d|_c10d_functional|_dtensor)::")
_NCCL = re.compile(r"nccl", re.IGNORECASE)
_GPU_MARK = "gpu_user_annotation"  # from the first to the last kernel started inside of a mark
_HOST, _COPIES = ("cpu_op", "user_annotation"), ("gpu_memcpy", "gpu_memset")
_US = 1e-6
_ROUNDING_S = 5e-9  # times are written in nanoseconds
_GZIP, _ANY_HEADER = b"\x1f\x8b", 47


@dataclass(frozen=True)
class _Kernel:
    """A kernel or a copy on a GPU, and the operation of the host that started it."""

    event: Event
    kind: str
    device: str
    started_by: int | None


@dataclass(frozen=True)
class _HostEvent:
    """What a thread did: ``own_s`` without the operations and calls of the exchange in it, whether
    it has such calls, which may wait, and in what it lies."""

    event: Event
    own_s: float
    exchanges: bool
    of_gradient: bool
    of_input: bool
    number: int | None


@dataclass(frozen=True)
class TorchTrace:
    """The windows of a rank's steps, and what ran; ``host`` are the events of all threads."""

    windows: Floats
    host: list[_HostEvent]
    kernels: list[_Kernel]


def unpacked(content: bytes, most: int) -> bytes:
    """The text of a trace; raises ValueError where it is longer than ``most`` bytes or damaged."""
    if not content.startswith(_GZIP):
        return content
    inflate = zlib.decompressobj(_ANY_HEADER)
    try:
        text = inflate.decompress(content, most + 1)
    except zlib.error as error:
        raise ValueError(f"not whole gzip: {error}") from None
    if len(text) > most or not inflate.eof:
        raise ValueError(f"longer than {most:,} bytes, or cut")
    return text


def read_torch_trace(content: bytes) -> TorchTrace:
    """The trace in JSON text; raises ValueError where it is none."""
    import orjson  # as state.record_reader: only where a trace is read

    written = orjson.loads(content)
    events = written.get("traceEvents") if isinstance(written, dict) else None
    if not isinstance(events, list):
        raise ValueError("no list traceEvents")
    whole = [event for event in events if _is_whole(event)]
    # Begins are counted from the first: a float keeps nanoseconds of days, not of years.
    origin = min((event["ts"] for event in whole), default=0.0)
    threads: dict[Any, list[tuple[Event, int | None]]] = {}
    kernels = []
    on_gpu: dict[int, float] = {}
    for event in whole:
        begin = (event["ts"] - origin) * _US
        read = Event(event["name"], begin, begin + event["dur"] * _US)
        args = event["args"] if isinstance(event.get("args"), dict) else {}
        number = args.get("External id")
        number = number if isinstance(number, int) else None
        if event["cat"] in _HOST:
            threads.setdefault((event.get("pid"), event.get("tid")), []).append((read, number))
        elif event["cat"] == "kernel" or event["cat"] in _COPIES:
            device = f"GPU:{args['device']}" if isinstance(args.get("device"), int) else "GPU:?"
            kernels.append(_Kernel(read, event["cat"], device, number))
        elif event["cat"] == _GPU_MARK and number is not None:
            on_gpu[number] = max(read.end, on_gpu.get(number, 0.0))
    host = [each for events in threads.values() for each in _nested(events)]
    return TorchTrace(_windows(_ended(host, on_gpu)), host, kernels)


def _is_whole(event: Any) -> bool:
    """Whether an event has a name, a kind, a begin and a length."""
    return (
        isinstance(event, dict)
        and event.get("ph") == "X"
        and isinstance(event.get("name"), str)
        and isinstance(event.get("cat"), str)
        and all(isinstance(event.get(name), int | float) for name in ("ts", "dur"))
        and event["dur"] >= 0
    )


def _nested(events: list[tuple[Event, int | None]]) -> Iterator[_HostEvent]:
    """A thread's events with their own seconds, and whether they are of a gradient or the input."""
    events.sort(key=lambda pair: (pair[0].begin, -pair[0].end))
    own: list[float] = []
    inside: list[tuple[bool, bool]] = []
    exchanging: set[int] = set()
    open_: list[int] = []  # places of those that the next one may lie in
    for place, (event, _) in enumerate(events):
        while open_ and events[open_[-1]][0].end <= event.begin + _ROUNDING_S:
            open_.pop()
        own.append(event.end - event.begin)
        around = inside[open_[-1]] if open_ else (False, False)
        gradient = around[0] or event.name.startswith(_GRADIENT)
        inside.append((gradient, around[1] or event.name.startswith(_BATCH)))
        calls = bool(_CALL_OF_EXCHANGE.match(event.name))
        if calls:
            exchanging.update(open_)
        if calls or _OPERATION.match(event.name):
            above = (at for at in reversed(open_) if _OPERATION.match(events[at][0].name))
            if (parent := next(above, None)) is not None:
                own[parent] -= own[place]
        open_.append(place)
    for place, (event, number) in enumerate(events):
        own_s = max(own[place], 0.0)
        yield _HostEvent(event, own_s, place in exchanging, *inside[place], number)


def _ended(host: list[_HostEvent], on_gpu: Mapping[int, float]) -> Iterator[Event]:
    """The host's events; the optimiser's steps end where the GPU is done with them.

    ``on_gpu``: ends on the GPU by the number that an event of the host has.
    """
    for each in host:
        end = on_gpu.get(-1 if each.number is None else each.number)
        if end is None or not each.event.name.startswith(_STEP):
            yield each.event
        else:
            yield replace(each.event, end=max(each.event.end, end))


def _windows(events: Iterable[Event]) -> Floats:
    """Begin and end of each step's window ``[step, 2]``; none where two optimisers take turns."""
    ends: dict[str, list[float]] = {}
    for event in events:
        if event.name.startswith(_STEP) or event.name == BETWEEN:
            ends.setdefault(event.name, []).append(event.end)
    met = np.array(ends.pop(BETWEEN, []))
    return windows_between(np.array(*ends.values()), met) if len(ends) == 1 else np.zeros((0, 2))


def torch_account(trace: TorchTrace) -> TraceAccount | None:
    """The account of one rank's trace; None where it shows no two steps after each other."""
    if not len(trace.windows):
        return None
    kinds: dict[str, list[Event]] = {
        COMPUTATION: [], COMMUNICATION: [], COPIES: [], INPUT: [],
    }  # fmt: skip
    for kernel in trace.kernels:
        kinds[_part_of(kernel)].append(kernel.event)
    for each in trace.host:
        name = each.event.name
        if _EXCHANGE.match(name):
            kinds[COMMUNICATION].append(each.event)
        elif name.startswith(_BATCH):
            kinds[INPUT].append(each.event)
        elif trace.kernels or each.of_input or each.exchanges:
            continue
        elif _OPERATION.match(name):
            kinds[COMPUTATION].append(each.event)
    return account_of(trace.windows, kinds)


def _part_of(kernel: _Kernel) -> str:
    if kernel.kind in _COPIES:
        return COPIES
    return COMMUNICATION if _NCCL.search(kernel.event.name) else COMPUTATION


def torch_operations(trace: TorchTrace) -> TraceOperations | None:
    """The operations of one rank's trace; None where it shows no two steps after each other."""
    return operations_of(trace.windows, _timed(trace)) if len(trace.windows) else None


def _timed(trace: TorchTrace) -> Iterator[Timed]:
    started: Mapping[int, _HostEvent] = {
        each.number: each
        for each in trace.host
        if each.number is not None and _OPERATION.match(each.event.name)
    }
    for each in trace.host:
        if _OPERATION.match(each.event.name):
            yield Timed(CPU, each.event.name, each.event, each.own_s, each.of_gradient)
    for kernel in trace.kernels:
        by = None if kernel.started_by is None else started.get(kernel.started_by)
        if kernel.kind in _COPIES:
            kind = kernel.event.name
        elif _NCCL.search(kernel.event.name):
            kind = COLLECTIVES
        else:
            kind = UNNAMED if by is None else by.event.name
        seconds = kernel.event.end - kernel.event.begin
        of_gradient = by is not None and by.of_gradient
        yield Timed(kernel.device, kind, kernel.event, seconds, of_gradient)
