"""PyTorch's traces (Kineto) as a stream: of each event as much as an account of a rank needs.

A trace is an object whose list ``traceEvents`` may have gigabytes. Its events begin with the key
``ph``, and the bytes ``{ "ph"`` stand in no string of JSON, where a quote has a backslash before
it: there a block is cut from the stream, and parsed as a list of its own. Kept is a row of numbers
for each kernel, copy, exchange and, on CPUs, operation.

Who rewrites a trace moves what stands beside the events behind them: both are read.
"""

import gc
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd

from scalesweep.analysis.types import Floats

BLOCK = 4 << 20
_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
_MOST_HEAD = 16 << 20
_UNDEFINED = "undefined"  # what PyTorch calls a group that nobody has described
_MOST_TIME = 1e17  # microseconds: a thousand years and more are none
_ENDS = 200  # places at which the list may end
_STEP = "ProfilerStep#"
_OPTIMIZER = "Optimizer.step#"
_BATCH = "enumerate(DataLoader)#"
BETWEEN = "scalesweep: ranks meet"  # workflow/benchmarks/harness/torch_ranks.py
_GLOO = ("gloo:", "mpi:", "ucc:")
_OPERATIONS = ("aten::", "mkldnn::", "onednn::", "quantized::", "fbgemm::", "CompiledFunction")
_BETWEEN = re.compile(rb'\}\s*,\s*\{\s*(?="ph"\s*:)')
_KINDS = (b'"kernel"', b'"gpu_mem', b'"user_annotation"')
# Kinds of events that are kept.
KERNEL, COPY, OPERATION, STEP, OPTIMIZER, ON_GPU, MET, BATCH, CALL = range(9)
# Of the marks on a GPU only the optimiser's count; few blocks of a trace have one.
_RARE = b'"Optimizer.step#'
_NAMES = tuple(f'"{name}'.encode() for name in _OPERATIONS)
_GPU_MARK = "gpu_user_annotation"
_KEPT = frozenset(("kernel", "gpu_memcpy", "gpu_memset", "user_annotation", _GPU_MARK))
# Signs of work on a device whose own times the trace does not have, or that are not read.
_UNSEEN = {
    b'LaunchKernel"': "starts kernels on GPUs and shows none: record the activities of GPUs too",
    b'"urEnqueueKernelLaunch': "starts kernels on XPUs and shows none: record those of XPUs too",
    b'"mtia_ccp_events"': "computes on MTIA, whose events are not read",
    b'"hpu_op"': "computes on HPU, whose events are not read",
}
_LIBRARIES = ("nccl", "NCCL", "rccl", "oneccl")  # in the names of their kernels
# Bytes of an element, as PyTorch names types in traces.
_BYTES = {
    "Float": 4, "Half": 2, "BFloat16": 2, "Double": 8, "Int": 4, "Long": 8, "Byte": 1, "Char": 1,
    "Short": 2, "Bool": 1, "Float8_e4m3fn": 1, "Float8_e5m2": 1, "ComplexFloat": 8,
}  # fmt: skip


class NoTraceError(ValueError):
    """The text is no trace of Kineto's, or is cut."""


class Collective(NamedTuple):
    """What calls of one kind share: ``size`` in bytes as nccl-tests counts it, None where the trace
    does not say, ``ranks`` of the group and which they are (``members``) likewise: groups of
    different ranks may have one name."""

    operation: str
    group: str
    ranks: int | None
    size: int | None
    members: tuple[int, ...] | None = None


@dataclass
class RankTrace:
    """One rank's trace. ``base_s``: what times are counted from; ``groups``: ranks by the name of a
    group; ``negative``: events of impossible times; ``unseen``: why the work of a device is not in
    the trace, empty where it is."""

    rank: int | None = None
    world: int | None = None
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    base_s: float = 0.0
    on_gpu: bool = False
    negative: int = 0
    unseen: str = ""
    blocks: list[Floats] = field(default_factory=list)  # of ``events``
    names: dict[Any, int] = field(default_factory=dict)  # what an event is ``of``, with its place

    @cached_property
    def events(self) -> pd.DataFrame:
        """A row per event: ``kind``, ``begin`` and ``end`` in microseconds, what it is ``of`` (the
        place of a collective or an optimiser in ``names``), and the ``number`` that the trace has
        for it: of a step, a call, or an optimiser's step on host and GPU; -1 of none."""
        columns = ["kind", "begin", "end", "of", "number"]
        return pd.DataFrame(np.concatenate([np.zeros((0, 5)), *self.blocks]), columns=columns)

    @cached_property
    def calls(self) -> dict[Collective, pd.DataFrame]:
        """The events of each kind of collective."""
        named, own = [*self.names], self.events[self.events["kind"] == CALL]
        return {named[int(of)]: own[own["of"] == of] for of in own["of"].unique()}

    def spans(self, kind: int) -> Floats:
        """Begins and ends of the events of a kind, ``[event, 2]``, in microseconds."""
        own = self.events.loc[self.events["kind"] == kind, ["begin", "end"]]
        return np.asarray(own, np.float64)

    @property
    def working(self) -> Floats:
        """Those of computation: kernels, without a GPU operations."""
        return self.spans(KERNEL if self.on_gpu else OPERATION)


def read_stream(stream: IO[bytes]) -> RankTrace:
    """The trace in a stream of JSON; raises NoTraceError where it is none, or cut."""
    import orjson  # only where a trace is read

    head = b""
    while (match := _LIST.search(head)) is None:
        block = stream.read(BLOCK)
        if not block or len(head) > _MOST_HEAD:
            raise NoTraceError("no list traceEvents")
        head += block
    try:
        about = orjson.loads(head[: match.start()] + b'"traceEvents": []}')
    except orjson.JSONDecodeError as error:
        raise NoTraceError(f"what stands before traceEvents: {error}") from None
    trace = RankTrace()
    _about(trace, about)
    # The collector of cycles would look at each of millions of dicts, and there are none.
    collecting = gc.isenabled()
    gc.disable()
    try:
        _read_blocks(trace, stream, head[match.end() :], orjson.loads)
    finally:
        if collecting:
            gc.enable()
    return trace


def _about(trace: RankTrace, written: Mapping[str, Any]) -> None:
    """Note what stands beside the events: before them, or behind."""
    base = written.get("baseTimeNanoseconds")
    if isinstance(base, int) and not isinstance(base, bool):
        trace.base_s = base * 1e-9
    info = written.get("distributedInfo")
    if not isinstance(info, dict):
        return
    trace.rank, trace.world = _count(info.get("rank"), 0), _count(info.get("world_size"), 1)
    if trace.rank is not None and trace.world is not None and trace.rank >= trace.world:
        raise NoTraceError(f"says that it is of rank {trace.rank} of {trace.world} ranks")
    config = info.get("pg_config")
    for group in config if isinstance(config, list) else ():
        members = _members(group.get("ranks")) if isinstance(group, dict) else None
        if members is not None:
            trace.groups[str(group.get("pg_name"))] = members


def _members(value: Any) -> tuple[int, ...] | None:
    """The ranks of a group, in order; None where a trace has cut them ("[0, 1, ..., 15]")."""
    if isinstance(value, str):
        words = value.strip("[] ").split(",")
        value = [int(word) if word.strip().isdecimal() else None for word in words]
    if not isinstance(value, list) or not value:
        return None
    numbers = [_count(each, 0) for each in value]
    if None in numbers or len(set(numbers)) < len(numbers):
        return None
    return tuple(sorted(number for number in numbers if number is not None))


def _count(value: Any, least: int) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and least <= value < 2**31 else None


def _read_blocks(trace: RankTrace, stream: IO[bytes], rest: bytes, loads: Any) -> None:
    """Read all events; raises NoTraceError where what counts of them is no JSON, or the list has no
    end."""
    while block := stream.read(BLOCK):
        rest += block
        if (cut := _last_begin(rest)) is not None:
            _take(trace, _wanted(trace, rest[:cut], loads))
            rest = rest[cut + 1 :]
        elif len(rest) > 64 * BLOCK:
            raise NoTraceError("events do not begin with 'ph', as Kineto writes them")
    _seen(trace, rest)
    events, behind = _last(rest, loads)
    _about(trace, behind)
    _take(trace, events)


def _seen(trace: RankTrace, block: bytes) -> None:
    """Note of what devices the work is not in the trace."""
    if not trace.unseen and not trace.on_gpu:
        trace.unseen = next((words for kind, words in _UNSEEN.items() if kind in block), "")


def _wanted(trace: RankTrace, text: bytes, loads: Any) -> list[Any]:
    """The events of a block that may count: looking for their kinds is faster than parsing all."""
    _seen(trace, text)
    text = text.strip()
    if not (text.startswith(b"{") and text.endswith(b"}")):
        raise NoTraceError(f"no event where one is expected: {text[:40]!r}")
    events = _BETWEEN.split(text[1:-1])
    kinds = (*_KINDS, _RARE) if _RARE in text else _KINDS
    kept = [event for event in events if any(kind in event for kind in kinds)]
    if not trace.on_gpu:
        kept += [event for event in events if any(name in event for name in _NAMES)]
    if not kept:
        return []
    try:
        parsed: list[Any] = loads(b"[{" + b"},{".join(kept) + b"}]")
    except ValueError as error:
        raise NoTraceError(f"an event that is no JSON: {error}") from None
    return parsed


def _last_begin(text: bytes) -> int | None:
    """Where the comma before the last event stands; None where there is no other event."""
    end = len(text)
    while (place := text.rfind(b'"ph"', 0, end)) >= 0:
        start = max(place - 64, 0)
        before = text[start:place].rstrip()
        outer = before[:-1].rstrip()
        if before.endswith(b"{") and outer.endswith(b","):
            return start + len(outer) - 1
        end = place
    return None


def _last(text: bytes, loads: Any) -> tuple[list[Any], dict[str, Any]]:
    """The last events, up to the bracket behind which the rest of the object makes sense, and that
    rest."""
    end = len(text)
    for _ in range(_ENDS):
        end = text.rfind(b"]", 0, end)
        if end < 0:
            break
        try:
            events = loads(b"[" + text[:end] + b"]")
            behind = loads(b'{"traceEvents": []' + text[end + 1 :])
        except ValueError:
            continue
        return events, behind
    raise NoTraceError("cut: its list of events has no end")


def _take(trace: RankTrace, events: list[Any]) -> None:
    """Keep what counts of a block of events."""
    rows: list[tuple[float, ...]] = []
    for event in events:
        if not isinstance(event, dict) or event.get("ph") != "X":
            continue
        kind, name = event.get("cat"), event.get("name")
        begin, length = event.get("ts"), event.get("dur")
        if not (isinstance(begin, int | float) and isinstance(length, int | float)):
            continue
        if not (isinstance(kind, str) and isinstance(name, str)):
            continue
        if kind == "cpu_op":
            # The most of a trace by far: looked at first, and only where no GPU computes.
            if trace.on_gpu or not name.startswith(_OPERATIONS):
                continue
        elif kind not in _KEPT:
            continue
        if length < 0 or not abs(begin) < _MOST_TIME or length > _MOST_TIME:
            trace.negative += 1
        elif kind == "cpu_op":
            rows.append((OPERATION, begin, begin + length, -1, -1))
        elif kept := _kept(trace, kind, name, event.get("args")):
            rows.append((kept[0], begin, begin + length, *kept[1:]))
    trace.blocks.append(np.array(rows, np.float64).reshape(-1, 5))


def _kept(trace: RankTrace, kind: str, name: str, args: Any) -> tuple[int, int, int] | None:
    """Kind, ``of`` and ``number`` of a kernel, a copy, or what the profiler and the exchange wrote
    themselves; None of other marks."""
    said: Mapping[str, Any] = args if isinstance(args, dict) else {}
    if kind == "user_annotation":
        return _mark(trace, name, said)
    if kind == _GPU_MARK:
        number = _number(said, "External id")
        return (ON_GPU, -1, number) if name.startswith(_OPTIMIZER) and number >= 0 else None
    trace.on_gpu = True
    if kind == "kernel" and any(library in name for library in _LIBRARIES):
        return _call(trace, said, name)
    return KERNEL if kind == "kernel" else COPY, -1, -1


def _mark(trace: RankTrace, name: str, said: Mapping[str, Any]) -> tuple[int, int, int] | None:
    if name.startswith(_STEP):
        step = name[len(_STEP) :]
        return STEP, -1, int(step) if step.isdecimal() else -1
    if name.startswith(_OPTIMIZER):
        return OPTIMIZER, _place(trace, name), _number(said, "External id")
    if name == BETWEEN or name.startswith(_BATCH):
        return MET if name == BETWEEN else BATCH, -1, -1
    return _call(trace, said, name) if name.startswith(_GLOO) else None


def _place(trace: RankTrace, name: Any) -> int:
    return trace.names.setdefault(name, len(trace.names))


def _number(said: Mapping[str, Any], key: str) -> int:
    """A number of an event; -1 where it has none."""
    number = _count(said.get(key), 0)
    return -1 if number is None else number


def _call(trace: RankTrace, said: Mapping[str, Any], name: str) -> tuple[int, int, int]:
    """A call of a collective."""
    operation = _operation(said.get("Collective name"), name)
    own = str(said.get("Process Group Name") or "")
    group = said.get("Process Group Description") or ""
    kind = Collective(
        operation,
        str(own if group in ("", _UNDEFINED) else group)[:60],
        _count(said.get("Group size"), 1),
        _size(said, operation),
        _members(said.get("Process Group Ranks")) or trace.groups.get(own),
    )
    return CALL, _place(trace, kind), _number(said, "Seq")


def _operation(stated: Any, name: str) -> str:
    """A collective in one word: ``_allgather_base`` and ``ncclDevKernel_AllGather_RING_LL`` are
    ``allgather``."""
    if not (isinstance(stated, str) and stated) and "Generic" in name:
        return "unknown"  # RCCL has one kernel for all
    text = stated if isinstance(stated, str) and stated else name.partition("(")[0]
    word = re.sub(r"^(?:gloo|mpi|ucc):|^nccl(?:DevKernel|Kernel)?_?", "", text)
    word = re.sub(r"[^a-z]", "", word.lower().removesuffix("_base").replace("_coalesced", ""))
    for known in ("allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "sendrecv"):
        if known in word:
            return known
    return word[:30] or "unknown"


def _size(said: Mapping[str, Any], operation: str) -> int | None:
    """Bytes of a call: of the result of an allgather, else of what a rank puts in."""
    width = _BYTES.get(str(said.get("dtype")))
    key = "Out msg nelems" if operation == "allgather" else "In msg nelems"
    count = said.get(key)
    if not width or not isinstance(count, int) or isinstance(count, bool):
        return None
    return count * width if 0 < count < 2**53 else None
