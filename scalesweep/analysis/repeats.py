"""How many more repeats a question needs, from the interval that the present ones give."""

import math

from scalesweep.analysis.stats import t_quantile

# Beyond that a question is not worth its repeats: what it asks for is too small to matter.
MOST = 20
# How surely the repeats asked for decide, if the scatter stays as it is.
POWER = 0.8


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
