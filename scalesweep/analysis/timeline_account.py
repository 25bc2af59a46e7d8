"""Where the time of a step goes in a timeline of Horovod: shares of a step by phase.

A step begins where the negotiation of one allreduce begins that takes place in every step, and ends
where the next one begins. Within the steps after the first, the share of a phase is the union of
its intervals, over all tensors, over the length of these steps. Phases of different tensors
overlap, so that shares do not add up to 1.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.horovod_trace import CALL, NEGOTIATE, Interval, Trace
from scalesweep.analysis.profile import union_length

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
NOTE = "timeline"  # where the record of an imported timeline has its account
_EVERY_STEP = f"{NEGOTIATE}ALLREDUCE"
_US = 1e-6


@dataclass(frozen=True)
class TimelineAccount:
    """``shares`` of a step by phase; None for a phase that the timeline never shows.

    ``step_s``: mean length of the ``steps`` looked at. ``negotiations`` of allreduces, ``ticked``
    of which show when each rank was ready, and ``last``: of these, how often which rank came last;
    ``late_s``: by how much on average, after the median rank.
    """

    steps: int
    step_s: float
    shares: Mapping[str, float | None]
    negotiations: int
    ticked: int
    last: Mapping[int, int]
    late_s: float | None

    def to_json(self) -> dict[str, Any]:
        """The account as JSON has it."""
        return {**asdict(self), "last": {str(rank): count for rank, count in self.last.items()}}

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "TimelineAccount":
        """The account that ``to_json`` gave; raises TypeError, ValueError or KeyError for what is
        none."""
        last = {int(rank): int(count) for rank, count in content["last"].items()}
        shares = {
            phase: None if content["shares"][phase] is None else float(content["shares"][phase])
            for phase in PHASES
        }
        late = content["late_s"]
        return TimelineAccount(
            steps=int(content["steps"]),
            step_s=float(content["step_s"]),
            shares=shares,
            negotiations=int(content["negotiations"]),
            ticked=int(content["ticked"]),
            last=last,
            late_s=None if late is None else float(late),
        )


def timeline_account(trace: Trace) -> TimelineAccount | None:
    """The account of a timeline; None where no allreduce is repeated three times or more."""
    begins = _step_begins(trace)
    if len(begins) < 3:
        return None
    begin, end = begins[1], begins[-1]
    whole = end - begin
    if whole <= 0:
        return None
    inside = [
        (interval.name, max(interval.begin, begin), min(interval.end, end))
        for interval in trace.intervals
        if interval.end > begin and interval.begin < end
    ]
    seen = {interval.name for interval in trace.intervals}
    shares: dict[str, float | None] = {}
    for phase, belongs in _IS.items():
        spans = [(low, high) for name, low, high in inside if belongs(name)]
        known = any(map(belongs, seen))
        shares[phase] = union_length(spans) / whole if known else None
    shares[IDLE] = 1 - union_length([(low, high) for _, low, high in inside]) / whole
    ready = [moments for name, moments in trace.ready if name == _EVERY_STEP and len(moments) > 1]
    last = Counter(max(moments)[1] for moments in ready)
    late = [max(moments)[0] - float(np.median([when for when, _ in moments])) for moments in ready]
    return TimelineAccount(
        steps=len(begins) - 2,
        step_s=whole * _US / (len(begins) - 2),
        shares=shares,
        negotiations=sum(interval.name == _EVERY_STEP for interval in trace.intervals),
        ticked=len(ready),
        last=dict(sorted(last.items())),
        late_s=float(np.mean(late)) * _US if late else None,
    )


def _step_begins(trace: Trace) -> list[float]:
    """When each step begins: the negotiations of the earliest allreduce that is in every step.

    Tensors that are reduced at times only (metrics of an epoch) and those that are broadcast are
    left out: a step has the median number of allreduces of all tensors that have several.
    """
    by_tensor: dict[int, list[Interval]] = {}
    for interval in trace.intervals:
        if interval.name == _EVERY_STEP:
            by_tensor.setdefault(interval.tensor, []).append(interval)
    several: list[Sequence[Interval]] = [
        intervals for intervals in by_tensor.values() if len(intervals) > 1
    ]
    if not several:
        return []
    usual = int(np.median([len(intervals) for intervals in several]))
    every = [intervals for intervals in several if len(intervals) == usual]
    if not every:
        return []
    first = min(every, key=lambda intervals: min(interval.begin for interval in intervals))
    return sorted(interval.begin for interval in first)
