"""The measured side of a prediction: costs by rank count, and when they do not suffice."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from scalesweep.analysis.prediction.topology import Border, Growth
from scalesweep.analysis.types import Floats

LEAST_COUNTS = 3
# Of the largest over the smallest rank count: over less, terms that grow cannot be told apart.
LEAST_RANGE = 4.0


Collective = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Parts:
    """What the costs of a series add up from, where that is known.

    ``cost[part, point]`` in the unit of the series, of the parts ``names``, computation first.
    ``exchange`` is the name of the part that the exchange of gradients is; None where it is in the
    first one, not known apart. ``collective`` gives what the exchange costs at rank counts if
    nothing hides it, in the same unit, from a probe of up to ``probed_to`` ranks.
    """

    names: tuple[str, ...]
    cost: Floats
    collective: Collective | None = None
    exchange: str | None = None
    probed_to: float = 0.0


@dataclass(frozen=True, eq=False)
class Series:
    """Measured points of one scaling series, sorted by rank count.

    ``ranks[point]``; ``cost[point]``: rank-seconds for a unit of work, positive, in any unit (time
    of an epoch in weak scaling, time x ranks in strong scaling, ranks over throughput in both), so
    that perfect scaling is a constant; ``error[point]``: relative standard error of the mean over
    repeats, NaN where it is not known. ``scaling``: "weak" or "strong". ``parts`` of the costs,
    where they are known. ``borders`` of the machine, the smallest first; None where they are not
    known. ``similar``: finished series of the same program on the same machine.
    """

    ranks: Floats
    cost: Floats
    error: Floats
    scaling: str
    parts: Parts | None = None
    borders: tuple[Border, ...] | None = None
    similar: tuple[Growth, ...] = ()

    def first(self, count: int) -> "Series":
        """Its ``count`` smallest points."""
        own = self.parts and replace(self.parts, cost=self.parts.cost[:, :count])
        ranks, cost, error = self.ranks[:count], self.cost[:count], self.error[:count]
        return replace(self, ranks=ranks, cost=cost, error=error, parts=own)


def make_series(
    ranks: Floats,
    cost: Floats,
    scaling: str = "weak",
    error: Floats | None = None,
    parts: Parts | None = None,
    borders: tuple[Border, ...] | None = None,
    similar: tuple[Growth, ...] = (),
) -> Series:
    """A series of the points whose cost is known, sorted; a count given twice is an error.

    Raises ValueError for counts below 1 or repeated, and for costs that are not positive.
    """
    ranks, cost = np.asarray(ranks, np.float64), np.asarray(cost, np.float64)
    errors = np.full(len(ranks), np.nan) if error is None else np.asarray(error, np.float64)
    order = np.argsort(ranks)
    order = order[np.isfinite(cost[order])]
    ranks, cost, errors = ranks[order], cost[order], errors[order]
    if len(np.unique(ranks)) < len(ranks) or (ranks < 1).any() or (cost <= 0).any():
        raise ValueError("rank counts must differ and be 1 or more, costs positive")
    own = parts and replace(parts, cost=parts.cost[:, order])
    return Series(ranks, cost, errors, scaling, own, borders, similar)


def refusal(series: Series) -> str:
    """Why nothing is predicted from a series, with what to measure; empty if it suffices."""
    counts = [int(count) for count in series.ranks]
    missing = LEAST_COUNTS - len(counts)
    if missing > 0:
        more = _next_counts(counts, missing)
        have = {0: "no rank count has", 1: "one rank count has"}.get(
            len(counts), f"{len(counts)} rank counts have"
        )
        return (
            f"{have} a result, and a prediction needs {LEAST_COUNTS} over a factor of "
            f"{LEAST_RANGE:g}: measure {' and '.join(f'{count:,}' for count in more)} ranks too"
        )
    if series.ranks[-1] / series.ranks[0] < LEAST_RANGE:
        return (
            f"the rank counts reach from {counts[0]:,} to {counts[-1]:,}, and a prediction needs "
            f"a factor of {LEAST_RANGE:g}: measure {int(LEAST_RANGE * counts[0]):,} ranks too"
        )
    return ""


def _next_counts(counts: list[int], missing: int) -> list[int]:
    """The rank counts that continue a series by doubling."""
    if not counts:
        return [2**k for k in range(missing)]
    return [counts[-1] * 2 ** (k + 1) for k in range(missing)]
