"""How precise repeats are, and how many more a point (``repeat_rule``) or a question needs.

Pure functions on NumPy arrays.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from scalesweep.analysis.repeat_rule import IDENTICAL, MORE, PRECISE, UNKNOWN, WIDE, Look, level_of
from scalesweep.analysis.stats import identical, mean_of, t_quantile
from scalesweep.analysis.types import Floats

# Beyond that a question is not worth its repeats: what it asks for is too small to matter.
MOST = 20
# How surely the repeats asked for decide, if the scatter stays as it is.
POWER = 0.8


def relative_width(values: ArrayLike, level: float) -> float:
    """Half width of the interval of the mean of ``values[repeat]`` at ``level``, over the mean.

    The interval is that of ``stats.mean_of``. NaN without one, infinite where the mean is 0.
    """
    array = np.asarray(values, np.float64)
    mean = mean_of(array, level) if array.size else None
    if mean is None or mean.low is None or mean.high is None:
        return math.nan
    return (mean.high - mean.low) / 2 / abs(mean.value) if mean.value else math.inf


def expected_repeats(values: ArrayLike, until: float, level: float, most: int) -> int:
    """Fewest repeats, at least as many as there are, whose interval would be narrow enough.

    If further repeats scatter as ``values[repeat]`` do (two or more): the smallest n with
    exp(t(n - 1) s / sqrt(n)) as ``relative_width`` has it, or ``most``.
    """
    array = np.asarray(values, np.float64)
    positive = bool((array > 0).all())
    spread = float((np.log(array) if positive else array).std(ddof=1))
    mean = abs(float(array.mean()))
    for count in range(array.size, most):
        half = t_quantile(count - 1, level=level) * spread / math.sqrt(count)
        if (math.sinh(half) if positive else half / mean if mean else math.inf) <= until:
            return count
    return max(most, array.size)


def look_at(values: ArrayLike, asked: int, least: int, most: int, until: float) -> Look:
    """What to do with a point whose repeats have these finite ``values[repeat]``.

    ``asked``: repeats planned so far, all of which have ended; ``until``: half width over the mean.
    """
    array: Floats = np.asarray(values, np.float64)
    if array.size < 2:
        return Look(UNKNOWN, math.nan, asked)
    if identical(array):
        return Look(IDENTICAL, math.nan, asked)
    level = level_of(least)
    width = relative_width(array, level)
    if array.size < least:  # some repeats have no value
        state = UNKNOWN if asked >= most else MORE
    elif width <= until:
        state = PRECISE
    else:
        state = WIDE if asked >= most else MORE
    missing = asked - array.size
    expected = expected_repeats(array, until, level, max(most - missing, array.size)) + missing
    return Look(state, width, max(expected, asked + 1) if state == MORE else asked)


def more_repeats(half_width: float, repeats: int, distance: float, most: int = MOST) -> int | None:
    """How many repeats to add so that a 95 % interval of a difference ends short of a bound.

    ``half_width`` is that of the interval from ``repeats`` of each side, ``distance`` is from its
    middle to the bound, both in one unit (for ratios: logarithms). The standard error s is taken
    from Student's t with 2 (n - 1) degrees of freedom and falls with the root of the repeats; n is
    enough if (t(97.5 %) + t(80 %)) s(n) <= distance: the interval is then clear of the bound in
    four of five series of measurements (Cohen, Statistical Power Analysis, chapter 2). None if that
    takes more than ``most``, or the interval has no width to go by.
    """
    from scipy.special import stdtrit

    if repeats < 2 or not (math.isfinite(half_width) and half_width > 0 and distance > 0):
        return None
    error = half_width / t_quantile(2 * (repeats - 1)) * math.sqrt(repeats)
    for more in range(1, most + 1):
        count = repeats + more
        degrees = 2 * (count - 1)
        needed = t_quantile(degrees) + float(stdtrit(degrees, POWER))
        if needed * error / math.sqrt(count) <= distance:
            return more
    return None
