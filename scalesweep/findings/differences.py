"""Ratios of points, and the p values behind "higher", "best" and "below" in sentences."""

import math
from typing import Any

from scalesweep.analysis.stats import (
    LogError,
    t_chance,
    t_quantile,
)
from scalesweep.core.formatting import finite

# Degrees of freedom of an interval whose source does not say how many repeats it is of.
_UNSTATED = 2

Span = tuple[float | None, float | None]


def share_p(share: float, low: float | None, high: float | None, repeats: Any, of: float) -> float:
    """Two-sided p value of a share with this 95 % interval being ``of``, of so many repeats.

    The degrees of freedom are those of one side alone, the least that the interval may have. NaN
    where the error is not known, or the share is not positive.
    """
    count = int(repeats) if finite(repeats) else 1
    error = interval_error(low, high, count - 1)
    if error is None or share <= 0:
        return math.nan
    return t_chance(math.log(share / of), error.error, error.degrees)


def interval_error(low: float | None, high: float | None, degrees: int) -> LogError | None:
    """Of the logarithm of a mean or ratio, by its 95 % interval, taken by Student's t with as many
    degrees of freedom (0: not known); None without an interval, or where it reaches to 0."""
    if low is None or high is None or not finite(low, high) or low <= 0:
        return None
    degrees = degrees if degrees > 0 else _UNSTATED
    return LogError(math.log(high / low) / 2 / t_quantile(degrees), degrees)
