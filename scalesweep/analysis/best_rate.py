"""The rate that a machine reaches undisturbed, from runs that may each have been disturbed.

What disturbs a run only makes it slower, so the mean of runs says how busy the machine was, and the
best run what it can do. How far the truth may lie above the best run is read from how close the
next ones come to it: runs that are near the truth are near each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.stats import CONFIDENCE, Estimate, finite_values, mean_of
from scalesweep.analysis.types import Floats

# A run below this share of the best one was disturbed.
STEADY = 0.9
# So many runs have to agree, since one or two may all have been disturbed.
AGREEING = 3
# The best runs whose spacings count: all that agree but one, within these.
_FEWEST, _MOST = 3, 4
# Half of the 2.5 % above an interval, for runs that were all disturbed a little.
_ABOVE = (1 - CONFIDENCE) / 4

# A rate that is larger than all others by this still grows.
GROWS = 1.02
LARGER, SMALLER = "larger", "smaller"


@dataclass(frozen=True, slots=True)
class BestRate:
    """The best of some runs, in their unit.

    ``rate`` has the 95 % interval of the undisturbed rate, unless fewer than ``AGREEING`` runs come
    near to the best: ``agreeing`` of them, the best among them. The ``disturbed`` others are below
    ``STEADY`` of it.
    """

    rate: Estimate
    agreeing: int
    disturbed: int


def best_rate(rates: Floats) -> BestRate:
    """The best of the rates ``[run]``, higher ones being better, with its interval.

    The interval begins where that of the mean of the runs that agree does (Student's t), since
    rates scatter a little in both directions on an undisturbed machine too. It ends there or at
    the end point that the spacings of the best runs allow, whichever is higher: with the k best
    rates X1 to Xk below an end point C at which their density is positive, spacings are exponential
    and P(C - X1 > c (X1 - Xk)) = (1 + c)^(1 - k) whatever their scale (D. S. Robson and J. H.
    Whitlock, Estimation of a truncation point, Biometrika 51, 1964, 33-39, for k = 2). A
    disturbance that slowed all runs alike is not seen in it.
    """
    array = finite_values(rates).reshape(-1)
    best = float(array.max())
    steady = np.sort(array[array >= STEADY * best])[::-1]
    counts = steady.size, array.size - steady.size
    mean = mean_of(steady)
    if steady.size < AGREEING or best <= 0 or mean.low is None or mean.high is None:
        return BestRate(Estimate(best), *counts)
    near = min(max(_FEWEST, steady.size - 1), _MOST)
    end = best + (_ABOVE ** (-1 / (near - 1)) - 1) * (best - float(steady[near - 1]))
    return BestRate(Estimate(best, min(mean.low, best), max(mean.high, end)), *counts)


def growth(sizes: Sequence[Any], rates: Sequence[float]) -> str:
    """Towards which sizes the best rate still grew where the sizes tried end.

    ``larger`` or ``smaller``; empty where the best one is not at an end, or is within 2 % of
    another, or ``sizes`` are not numbers (kernels) or only one, which say nothing.
    """
    if len(sizes) < 2 or any(isinstance(size, str) for size in sizes):
        return ""
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    ordered = [rates[place] for place in order]
    if ordered[-1] > GROWS * max(ordered[:-1]):
        return LARGER
    return SMALLER if ordered[0] > GROWS * max(ordered[1:]) else ""
