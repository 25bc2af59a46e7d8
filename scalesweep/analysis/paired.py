"""Two versions measured alternately: on which side of a bound their ratio lies.

Pairs are measured in the order A B, B A, A B, ... (blocks of A B B A), so that a machine that
drifts steadily adds to every second pair what it takes off the others: the mean of their
logarithms is free of it, and their scatter holds it, which makes the interval wider, not wrong.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from scalesweep.analysis.stats import t_quantile
from scalesweep.analysis.types import Floats

LEAST_PAIRS = 3
MOST_NEEDED = 200  # pairs: more are not proposed


def log_ratios(base: ArrayLike, new: ArrayLike) -> Floats:
    """Logarithms of ``new[pair] / base[pair]`` of the pairs whose values are both above 0."""
    first, second = (np.asarray(side, np.float64) for side in (base, new))
    good = (first > 0) & (second > 0) & np.isfinite(first) & np.isfinite(second)
    logs: Floats = np.log(second[good]) - np.log(first[good])
    return logs


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
