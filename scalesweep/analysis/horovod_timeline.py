"""Horovod's timeline: a Chrome trace of rank 0, a JSON array that may never have been closed.

A process id is a tensor. ``B`` and ``E`` nest: NEGOTIATE_ALLREDUCE, then ALLREDUCE with
WAIT_FOR_DATA, QUEUE, MEMCPY_IN_FUSION_BUFFER, MPI_ALLREDUCE (or NCCL_, GLOO_) and so on inside;
``E`` has no name, and the outermost one says dtype and shape. ``X`` in a negotiation is the tick
of a rank that is ready; Horovod writes them only for negotiations that miss its response cache
(Horovod, docs/timeline.rst; common/timeline.cc).

A step begins where the negotiation of one allreduce begins that takes place in every step. Within
the steps after the first, the share of a phase is the union of its intervals, over all tensors.
Phases of different tensors overlap, so that shares do not add up to 1.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scalesweep.analysis.trace_account import covered
from scalesweep.analysis.types import Floats

NEGOTIATE = "NEGOTIATE_"
# Calls that move the data of an operation: MPI_ALLREDUCE in ALLREDUCE.
CALL = re.compile(r"(?:MPI|NCCL|GLOO|CCL|DDL|ADASUM)_\w+")
NEGOTIATION, QUEUE, COPIES, WAIT, REDUCTION, IDLE = (
    "negotiation", "queue", "fusion_copies", "wait_for_data", "reduction", "idle",
)  # fmt: skip
# Phase -> what it is, in the order of an operation.
PHASES: Mapping[str, str] = {
    NEGOTIATION: "Negotiation: at least one rank has not asked for the tensor yet",
    WAIT: "Wait for data: the tensor is not computed yet",
    QUEUE: "Queue: the call before is not finished",
    COPIES: "Copies into and out of the fusion buffer",
    REDUCTION: "Reduction: the data are on their way",
    IDLE: "Horovod idle: input, forward pass, or what comes before the first gradient",
}
_IS: Mapping[str, Callable[[str], bool]] = {
    NEGOTIATION: lambda name: name.startswith(NEGOTIATE),
    WAIT: lambda name: name.startswith("WAIT_FOR"),
    QUEUE: lambda name: name == "QUEUE",
    COPIES: lambda name: name.startswith("MEMCPY_"),
    REDUCTION: lambda name: CALL.fullmatch(name) is not None,
}
NOTE = "timeline"  # where the record of an imported timeline has its rows
_EVERY_STEP = f"{NEGOTIATE}ALLREDUCE"
_BYTES = {
    "uint8": 1, "int8": 1, "bool": 1, "uint16": 2, "int16": 2, "float16": 2, "bfloat16": 2,
    "int32": 4, "float32": 4, "int64": 8, "float64": 8,
}  # fmt: skip
_US = 1e-6


class NoTimelineError(ValueError):
    """What is wrong with a timeline."""


@dataclass
class Phase:
    """A phase of a tensor, in microseconds, within an ``outer`` one; ``size`` of the tensor, where
    the end of its outermost phase says it; ``ready``: when which rank was."""

    name: str
    tensor: int
    begin: float
    outer: "Phase | None"
    end: float = math.nan
    size: int | None = None
    ready: list[tuple[float, int]] = field(default_factory=list)

    @property
    def outermost(self) -> "Phase":
        """The operation that it is a phase of, which may be itself."""
        return self if self.outer is None else self.outer.outermost


@dataclass
class Timeline:
    """The phases of a timeline that have ended; ``unfinished`` have not. ``first`` and ``last``
    event in microseconds; ``closed``: whether the array has its end."""

    phases: list[Phase]
    unfinished: int
    first: float
    last: float
    closed: bool

    @property
    def ranks(self) -> int | None:
        """One more than the highest rank that has a tick; None without ticks."""
        return max((r for phase in self.phases for _, r in phase.ready), default=-1) + 1 or None


def read_timeline(text: str) -> Timeline:
    """The timeline; raises NoTimelineError for what Horovod does not write."""
    events, closed = _events(text)
    phases: list[Phase] = []
    open_: dict[int, list[Phase]] = {}
    times = []
    for place, event in enumerate(events):
        kind, tensor, when = (event.get(name) for name in ("ph", "pid", "ts"))
        if kind not in ("B", "E", "X"):
            continue
        if not isinstance(tensor, int) or not isinstance(when, int | float):
            raise NoTimelineError(f"event {place}: without tensor or time")
        stack = open_.setdefault(tensor, [])
        times.append(when)
        if kind == "B":
            outer = stack[-1] if stack else None
            stack.append(Phase(str(event.get("name")), tensor, float(when), outer))
        elif kind == "X":
            if stack and stack[-1].name.startswith(NEGOTIATE):
                stack[-1].ready.append((float(when), int(event.get("name", -1))))
        elif not stack or when < stack[-1].begin or (len(stack) > 1 and event.get("args")):
            # Only the end of an outermost phase says dtype and shape.
            raise NoTimelineError(f"event {place} ends what has not begun: lines are missing")
        else:
            phase = stack.pop()
            phase.end, phase.size = float(when), _size(event.get("args"))
            phases.append(phase)
    unfinished = sum(map(len, open_.values()))
    return Timeline(phases, unfinished, min(times, default=0), max(times, default=0), closed)


def _events(text: str) -> tuple[list[Mapping[str, Any]], bool]:
    """Every event, and whether the array has its end; the last event may be cut."""
    import orjson

    whole = text.rstrip().removesuffix("]").rstrip().rstrip(",")
    for cut in (whole, whole[: whole.rfind("}\n") + 1], whole[: whole.rfind("},") + 1]):
        try:
            events = orjson.loads(f"{cut}]")
        except ValueError:
            continue
        if isinstance(events, list) and all(isinstance(event, dict) for event in events):
            return events, text.rstrip().endswith("]")
    raise NoTimelineError("not a JSON array of events: damaged")


def _size(args: Any) -> int | None:
    """Bytes of a tensor, from dtype and shape; None where they are not known."""
    if not isinstance(args, dict) or not isinstance(args.get("shape"), str):
        return None
    width = _BYTES.get(str(args.get("dtype")))
    return width and width * math.prod(map(int, re.findall(r"\d{1,15}", args["shape"])))


def timeline_rows(timeline: Timeline) -> list[dict[str, Any]]:
    """A row of the table `timeline` for each of ``PHASES``; none where no allreduce is repeated
    three times or more. Shares are None of a phase that the timeline never shows."""
    begins = _step_begins(timeline)
    if len(begins) < 3:
        return []
    steps, window = len(begins) - 2, np.array([[begins[1], begins[-1]]])
    whole = float(begins[-1] - begins[1])
    spans = {name: _spans(timeline, belongs) for name, belongs in _IS.items()}
    shares = {
        name: covered(each, window) / whole if len(each) else None for name, each in spans.items()
    }
    shares[IDLE] = 1 - covered(_spans(timeline, bool), window) / whole
    every = [phase for phase in timeline.phases if phase.name == _EVERY_STEP]
    ready = [phase.ready for phase in every if len(phase.ready) > 1]
    late = [max(each)[0] - float(np.median([when for when, _ in each])) for each in ready]
    last = Counter(max(each)[1] for each in ready).most_common(1)
    of_run = {
        "steps": steps,
        "negotiations": len(every),
        "ticked": len(ready),
        "last_rank": last[0][0] if last else None,
        "last": last[0][1] if last else None,
        "late_ms": float(np.mean(late)) * 1e-3 if late else None,
    }
    return [
        {
            "phase": name,
            "share": shares[name],
            "ms": None if (share := shares[name]) is None else share * whole * 1e-3 / steps,
            **of_run,
        }
        for name in PHASES
    ]


def _spans(timeline: Timeline, belongs: Callable[[str], bool]) -> Floats:
    every = [(phase.begin, phase.end) for phase in timeline.phases if belongs(phase.name)]
    return np.array(every, np.float64).reshape(-1, 2)


def _step_begins(timeline: Timeline) -> list[float]:
    """When each step begins: the negotiations of the earliest allreduce that is in every step.

    Tensors that are reduced at times only (metrics of an epoch) and those that are broadcast are
    left out: a step has the median number of allreduces of all tensors that have several.
    """
    of_tensor: dict[int, list[float]] = {}
    for phase in timeline.phases:
        if phase.name == _EVERY_STEP:
            of_tensor.setdefault(phase.tensor, []).append(phase.begin)
    several = [begins for begins in of_tensor.values() if len(begins) > 1]
    usual = int(np.median([len(begins) for begins in several])) if several else 0
    return sorted(min((b for b in several if len(b) == usual), key=min, default=[]))
