"""Made repeats of points that are measured until they are precise, and their intervals."""

import numpy as np

from scalesweep.analysis.repeat_rule import level_of
from scalesweep.analysis.stats import mean_bounds
from scalesweep.analysis.types import Floats

# Kinds of noise, each with mean 1.
NORMAL, SKEWED, SLOW = "log-normal", "skewed", "with slow runs"
KINDS = (NORMAL, SKEWED, SLOW)


def draw(kind: str, spread: float, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    """Times with mean 1 and this relative standard deviation."""
    if kind == SKEWED:
        # A floor that nothing is faster than: a shifted gamma distribution of shape 4 (skewness 1).
        noise = (rng.gamma(4, 1, shape) - 4) / 2
    elif kind == SLOW:
        # One run in ten is disturbed, by twice the spread of the others at least.
        slow = rng.random(shape) < 0.1
        raw = rng.standard_normal(shape) + slow * (2 + rng.exponential(1, shape))
        noise = (raw - 0.3) / np.sqrt(1 + 0.1 * (9 + 1) - 0.09)
    else:
        sigma = np.sqrt(np.log1p(spread**2))
        return np.asarray(np.exp(sigma * rng.standard_normal(shape) - sigma**2 / 2))
    return np.asarray(1 + spread * noise)


def held(values: Floats, least: int, until: float, level: float | None) -> float:
    """Of points that take from ``values[point, repeat]``, of mean 1, until each is precise, the
    share whose interval of ``level`` (None: the one that the rule has) holds the mean."""
    level = level_of(least) if level is None else level
    rounds, most = values.shape
    bounds, wide = np.full((rounds, 2), np.nan), np.arange(rounds)
    for count in range(least, most + 1):
        seen = values[wide, :count]
        bounds[wide] = known = mean_bounds(seen, level)
        wide = wide[(known[:, 1] - known[:, 0]) / 2 > until * seen.mean(axis=1)]
    return float(((bounds[:, 0] <= 1) & (bounds[:, 1] >= 1)).mean())
