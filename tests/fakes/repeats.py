"""Made repeats of points that are measured until they are precise, and what comes of them."""

from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.repeat_rule import level_of
from scalesweep.analysis.stats import mean_bounds
from scalesweep.analysis.types import Floats

# Kinds of noise, each with mean 1.
NORMAL, SKEWED, SLOW = "log-normal", "skewed", "with slow runs"
KINDS = (NORMAL, SKEWED, SLOW)


@dataclass(frozen=True)
class Outcome:
    """Over many points: share of intervals that hold the mean, repeats of each point, and half
    widths over the mean, both as the points ended."""

    coverage: float
    repeats: Floats
    widths: Floats


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


def measure(
    least: int,
    most: int,
    until: float,
    spread: float,
    rounds: int,
    rng: np.random.Generator,
    kind: str = NORMAL,
    level: float | None = None,
) -> Outcome:
    """Measure ``rounds`` points of one spread until each is precise, with intervals of ``level``
    (None: the one that the rule has)."""
    level = level_of(least) if level is None else level
    values = draw(kind, spread, (rounds, most), rng)
    bounds = np.full((rounds, 2), np.nan)
    repeats = np.full(rounds, most)
    open_points = np.arange(rounds)
    for count in range(least, most + 1):
        seen = values[open_points, :count]
        found = mean_bounds(seen, level)
        bounds[open_points] = found
        repeats[open_points] = count
        wide = (found[:, 1] - found[:, 0]) / 2 > until * seen.mean(axis=1)
        open_points = open_points[wide]
    covered = (bounds[:, 0] <= 1) & (bounds[:, 1] >= 1)
    means = np.array([row[:count].mean() for row, count in zip(values, repeats, strict=True)])
    widths = (bounds[:, 1] - bounds[:, 0]) / 2 / means
    return Outcome(float(covered.mean()), repeats.astype(np.float64), widths)
