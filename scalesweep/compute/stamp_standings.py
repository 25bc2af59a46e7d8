"""Which rank held up a run whose time was up, by the stamps that its ranks printed last.

Standard library only, for the launcher.
"""

import math
from pathlib import Path
from typing import Any

from scalesweep.compute.hangs import (
    ABSENT,
    ELSEWHERE,
    IN_FRAMEWORK,
    WAITS,
    Standing,
    Verdict,
    conclude,
)
from scalesweep.compute.job_spec import Order
from scalesweep.compute.stamp_lines import Damage, StampLine, stamp_lines
from scalesweep.core.errors import UserError

_NOWHERE = "printed nothing (never started, hangs before its first step, or has ended)"
# Spans in which a rank waits for others.
_TOGETHER = frozenset(("communication", "data_parallel", "tensor_parallel", "pipeline_wait"))
# Clocks of nodes differ; beyond that a begin is no Unix time.
_CLOCKS_S = 60.0
_NUMBERS = frozenset((int, float))


class _Last:
    """The last step that a rank has printed, and where it said to be since."""

    def __init__(self) -> None:
        self.done: tuple[int, int] | None = None
        self.step: int | None = None
        self.at: str | None = None
        self.epoch: int | None = None  # of what was said last
        self.further: float | None = None  # Unix time
        self.host: str | None = None

    def note(self, stamp: StampLine) -> None:
        """Take what a line says; what is odd in it is left out."""
        fields = stamp.fields
        if isinstance(host := fields.get("host"), str):
            self.host = host
        if type(step := fields.get("step")) is not int:
            return
        epoch = fields.get("epoch")
        epoch = epoch if type(epoch) is int else None
        if "at" in fields:
            if self.done is not None and (self._or_same(epoch), step) <= self.done:
                return  # of another process of this rank, such as a worker that loads data
            self.step, self.at, self.epoch = step, str(fields["at"] or "")[:40], epoch
            self._further(fields.get("since"))
            return
        self.done, self.at, self.epoch = (epoch or 0, step), None, epoch
        self.step = step + 1
        begin, seconds = fields.get("begin"), fields.get("s", 0.0)
        if type(begin) in _NUMBERS and type(seconds) in _NUMBERS:
            self._further(begin + seconds)

    def _or_same(self, epoch: int | None) -> int:
        """The epoch that a line says, else that of the step that was printed last."""
        return epoch if epoch is not None else self.order[0]

    def _further(self, when: Any) -> None:
        if type(when) in _NUMBERS:
            self.further = max(when, self.further or when)

    @property
    def order(self) -> tuple[int, int]:
        """How far it has come."""
        return self.done or (-1, -1)

    def place(self, furthest: tuple[int, int]) -> tuple[int, str]:
        """Its state and its place in words; ``furthest``: how far any rank has come."""
        behind = ELSEWHERE if self.order < furthest else IN_FRAMEWORK
        of = "" if self.epoch is None else f" of epoch {self.epoch}"
        if self.at:
            state = WAITS if self.at in _TOGETHER else ELSEWHERE
            return state, f"{self.at} of step {self.step}{of}"
        last = "no step was printed"
        if self.done is not None:
            last = f"{self.done[1]}{of} was printed last"
        return behind, f"step {self.step} ({last})"


def judge(spec: Order, work: Path, ended: float) -> Verdict | None:
    """Judge a run that was ended at its time limit, at the Unix time ``ended``.

    None where its ranks have printed no stamps. A program whose lines do not say when is not known
    to hang: how far each rank has come is said all the same.
    """
    order, ranks = spec["extract"], spec["params"]["ranks"]
    limit_s = spec["time_limit_s"]
    lasts: dict[int, _Last] = {}
    try:
        for stamp in stamp_lines(
            order["stamps"]["source"], work, ranks, order["srun_labels"], Damage()
        ):
            if stamp.rank is not None or ranks == 1:
                lasts.setdefault(stamp.rank or 0, _Last()).note(stamp)
    except (UserError, OSError):
        return None
    lasts = {rank: last for rank, last in lasts.items() if last.step is not None and rank < ranks}
    if not lasts:
        return None
    furthest = max(last.order for last in lasts.values())
    began = ended - limit_s - _CLOCKS_S
    times = [last.further for last in lasts.values()]
    known = [t for t in times if t is not None and began <= t <= ended + _CLOCKS_S]
    still_s = max(0.0, ended - max(known)) if len(known) == len(times) else math.inf
    standings = []
    for rank in range(ranks):
        last = lasts.get(rank)
        place = (ABSENT, _NOWHERE) if last is None else last.place(furthest)
        since = last.further if last and still_s < math.inf else None
        still = math.inf if since is None else max(0.0, ended - since)
        standings.append(Standing(rank, place, last.host if last else None, None, still))
    seen = f"by the stamps of {len(lasts)} of {ranks} ranks in {order['stamps']['source']}"
    return conclude(standings, still_s, limit_s, seen)
