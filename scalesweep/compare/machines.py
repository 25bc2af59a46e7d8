"""Whether the machine itself was as fast on both sides, by the canaries of the compared runs."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from scalesweep.analysis.canary import Apart, apart
from scalesweep.compare.inputs import Side
from scalesweep.compare.matching import Pair
from scalesweep.tables.canary_rates import CANARY, KINDS, WORDS


@dataclass(frozen=True)
class MachineRate:
    """A kind of canary on both sides, over so many runs of points that have it on both."""

    kind: str
    base_runs: int
    new_runs: int
    apart: Apart

    @property
    def words(self) -> str:
        """What was done, in words."""
        return WORDS[self.kind]


def machine_rates(pairs: Sequence[Pair], base: Side, new: Side) -> list[MachineRate]:
    """Each kind of canary that points have on both sides; of a run the mean of its two looks.

    Points are compared with themselves, so that ranks and nodes are the same.
    """
    both = [(_rates(base, pair.base.rows), _rates(new, pair.new.rows))
            for pair in pairs if pair.base and pair.new]  # fmt: skip
    rates = []
    for kind in KINDS:
        groups = [
            (mine, theirs)
            for first, second in both
            if (mine := first.get(kind, [])) and (theirs := second.get(kind, []))
        ]
        sides = [mine for mine, _ in groups], [theirs for _, theirs in groups]
        if groups and (change := apart(*sides)) is not None:
            counts = [sum(map(len, side)) for side in sides]
            rates.append(MachineRate(kind, counts[0], counts[1], change))
    return rates


def _rates(side: Side, rows: Sequence[int]) -> dict[str, list[float]]:
    """By kind the rates of these runs: of the slowest host, the geometric mean over the looks."""
    if CANARY not in side.summary:
        return {}
    texts = side.summary[CANARY].tolist()
    by_kind: dict[str, list[float]] = {}
    for row in rows:
        if not isinstance(texts[row], str):
            continue
        looks = json.loads(texts[row]).values()
        for kind in KINDS:
            rates = [math.log(float(look[kind][1])) for look in looks if kind in look]
            if rates:
                by_kind.setdefault(kind, []).append(math.exp(sum(rates) / len(rates)))
    return by_kind
