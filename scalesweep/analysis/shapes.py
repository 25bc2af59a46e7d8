"""Whether the repeats of several points, taken together, are shaped as normal noise is.

A few repeats that happen to share a state of the machine, or to miss the long tail of a skewed
noise, look precise, and nothing in them shows it. The other points of a table do: of normal noise,
whatever each point's mean and variance, the residuals of a point's repeats over their length are
uniform on a sphere, so that points of all variances can be taken together. Two things are looked
at: how far the repeats of a point fall into two groups (the least share of their squares that lies
within two groups, whichever they are cut into), over all points by Fisher's method (Statistical
Methods for Research Workers, 1932, 21.1); and the sum of the points' third moments.

Pure functions on NumPy arrays. tests/acceptance/test_clear.py simulates claims.
"""

import math
from functools import lru_cache

import numpy as np

from scalesweep.analysis.types import Floats

# Normal noise is called odd this seldom by either test: so often because few repeats show little.
GROUPED, SKEWED = 0.05, 0.1
_DRAWS, _SEED = 20_000, 7


def odd(residuals: Floats) -> bool:
    """Whether ``residuals[point, repeat]``, about each point's mean, are not those of normal noise:
    of two groups, or skewed to one side.

    Of three repeats or more; points whose repeats are all the same say nothing.
    """
    from scipy.special import chdtrc, ndtr

    if residuals.shape[1] < 3:
        return False
    ordered = np.sort(residuals, axis=1)
    lengths = np.sqrt((ordered**2).sum(axis=1))
    units = ordered[lengths > 0] / lengths[lengths > 0, None]
    if not len(units):
        return False
    within, cubes = _drawn(residuals.shape[1])
    chances = (np.searchsorted(within, _within(units)) + 1) / (within.size + 1)
    grouped = float(chdtrc(2 * len(units), -2 * float(np.log(chances).sum())))
    far = abs(float((units**3).sum())) / math.sqrt(len(units) * cubes)
    return grouped < GROUPED or 2 * float(ndtr(-far)) < SKEWED


def _within(units: Floats) -> Floats:
    """Least share of the squares of each of ``units[point, repeat]``, in order, that lies within
    two groups."""
    count = units.shape[1]
    sums = np.cumsum(units, axis=1)[:, :-1]
    sizes = np.arange(1, count)
    # All add up to 0: what is between two groups is s^2 / k + s^2 / (n - k), s the sum of one.
    between = sums**2 * (1 / sizes + 1 / (count - sizes))
    return np.asarray(1 - between.max(axis=1))


@lru_cache(maxsize=32)
def _drawn(repeats: int) -> tuple[Floats, float]:
    """Of normal noise: such shares in order, and the mean square of a point's third moment."""
    draws = np.random.default_rng(_SEED).normal(size=(_DRAWS, repeats))
    draws -= draws.mean(axis=1, keepdims=True)
    draws = np.sort(draws / np.sqrt((draws**2).sum(axis=1, keepdims=True)), axis=1)
    return np.sort(_within(draws)), float(((draws**3).sum(axis=1) ** 2).mean())
