"""Whether a series has moved as much before: then what its newest sessions do is nothing new."""

import numpy as np

from scalesweep.analysis.types import Floats

RECENT = 30  # sessions in which an earlier move counts
_BASE, _LEAST_BASE = 12, 6  # sessions that each window is compared with
_WINDOW = 8  # sessions of a window at most
_SHARE = 2 / 3  # of a change: an earlier move of this size is as large


def moved_before(centres: Floats, change: float, length: int) -> bool:
    """Whether the mean of ``length`` successive sessions has lain off those before it by as much.

    ``centres``: the sessions before the newest level, in their order; ``change``: of the newest
    level, on logarithms. A machine that wanders, or has a cycle, does again what it did before.
    """
    newest = centres[-(RECENT + _BASE) :]
    length = min(length, _WINDOW)
    sums = np.concatenate([[0.0], np.cumsum(newest)])
    begin = np.arange(_LEAST_BASE, newest.size - length + 1)
    if not begin.size:
        return False
    base = np.minimum(begin, _BASE)
    moves = (sums[begin + length] - sums[begin]) / length - (
        sums[begin] - sums[begin - base]
    ) / base
    return bool(np.abs(moves).max() >= _SHARE * abs(change))
