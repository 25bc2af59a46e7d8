"""Two versions measured alternately: a verdict on their ratio, from pairs of neighbouring runs.

Pairs are measured in the order A B, B A, A B, ... (blocks of A B B A), so that a machine that
drifts steadily adds to every second pair what it takes off the others: the mean of their
logarithms is free of it, and their scatter holds it, which makes the interval wider, not wrong.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from scalesweep.analysis.stats import CONFIDENCE, identical, t_chance, t_quantile
from scalesweep.analysis.types import Floats
from scalesweep.analysis.verdicts import IMPROVEMENT, INCONCLUSIVE, NO_CHANGE, REGRESSION

LEAST_PAIRS = 3
MOST_NEEDED = 200  # pairs: more are not proposed
IDENTICAL = "all pairs have the same ratio: nothing says how they scatter"


@dataclass(frozen=True)
class Paired:
    """A verdict on new over base, each pair one ratio.

    ``ratio``: geometric mean of the pairs' ratios with its interval ``low`` to ``high``; ``p``:
    that there is no change at all (two-sided t-test); ``noise``: standard deviation of the
    logarithm of a pair's ratio; ``needed``: pairs in all that are likely to settle what is
    inconclusive, None where it is settled or hardly can be.
    """

    kind: str
    pairs: int
    reason: str = ""
    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    noise: float = math.nan
    needed: int | None = None


def log_ratios(base: ArrayLike, new: ArrayLike) -> Floats:
    """Logarithms of ``new[pair] / base[pair]`` of the pairs whose values are both above 0."""
    first, second = (np.asarray(side, np.float64) for side in (base, new))
    good = (first > 0) & (second > 0) & np.isfinite(first) & np.isfinite(second)
    logs: Floats = np.log(second[good]) - np.log(first[good])
    return logs


def paired_verdict(
    base: ArrayLike, new: ArrayLike, better: str, margin: float, level: float = CONFIDENCE
) -> Paired:
    """The verdict on ``new[pair]`` against ``base[pair]``; ``better``: higher or lower.

    A change is one above the ``margin`` (0.03: 3 %) whose interval excludes 0, no change an
    interval within the margin (the rules of ``verdicts.judge``). ``level`` of the interval:
    Student's t on the logarithms of the ratios.
    """
    logs = log_ratios(base, new)
    n = int(logs.size)
    if n < LEAST_PAIRS:
        return Paired(INCONCLUSIVE, n, "too few pairs", needed=LEAST_PAIRS)
    shift, spread = float(logs.mean()), float(logs.std(ddof=1))
    if identical(np.exp(logs)):
        return Paired(INCONCLUSIVE, n, IDENTICAL, math.exp(shift))
    half, p = _half(n, spread, level), t_chance(shift, spread / math.sqrt(n), n - 1)
    bound = math.log1p(margin)
    kind, needed = INCONCLUSIVE, None
    if abs(shift) > bound and half < abs(shift):
        kind = REGRESSION if (shift > 0) == (better == "lower") else IMPROVEMENT
    elif abs(shift) + half <= bound:
        kind = NO_CHANGE
    else:
        gap = abs(shift) if abs(shift) > bound else bound - abs(shift)
        needed = pairs_for(spread, gap, level, n + 1)
    low, high = math.exp(shift - half), math.exp(shift + half)
    return Paired(kind, n, "", math.exp(shift), low, high, p, spread, needed)


def side_of(logs: Floats, bound: float, level: float) -> int:
    """On which side of ``bound`` the mean of the logarithms lies: 1 above, -1 below, and 0 where
    its interval at ``level`` holds it, or there are fewer than ``LEAST_PAIRS``."""
    if logs.size < LEAST_PAIRS:
        return 0
    off = float(logs.mean()) - bound
    half = _half(logs.size, float(logs.std(ddof=1)), level)
    return 0 if abs(off) <= half else 1 if off > 0 else -1


def pairs_for(spread: float, gap: float, level: float, least: int = LEAST_PAIRS) -> int | None:
    """Fewest pairs, ``least`` or more, whose interval is narrower than ``gap`` to either side, if
    they scatter by ``spread``; None where more than ``MOST_NEEDED`` are."""
    for count in range(least, MOST_NEEDED + 1):
        if _half(count, spread, level) < gap:
            return count
    return None


def _half(pairs: int, spread: float, level: float) -> float:
    return t_quantile(pairs - 1, level=level) * spread / math.sqrt(pairs)
