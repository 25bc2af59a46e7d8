"""Noise of other kinds than the normal one, each with mean 0 and standard deviation 1."""

from collections.abc import Sequence

import numpy as np

from scalesweep.analysis.types import Floats

# Heavy: Student's t with 3 degrees of freedom. Skewed: a lognormal, as times that are disturbed.
# Outliers: one value in ten scatters five times as much as the others.
NORMAL, HEAVY, SKEWED, OUTLIERS = "normal", "heavy", "skewed", "outliers"
KINDS = (NORMAL, HEAVY, SKEWED)
_SIGMA = 0.8  # of the logarithm of skewed noise: its coefficient of variation is 0.95


def draw(generator: np.random.Generator, kind: str, shape: Sequence[int]) -> Floats:
    """Independent values of a kind of noise."""
    if kind == HEAVY:
        return np.asarray(generator.standard_t(3, shape) / np.sqrt(3))
    if kind == SKEWED:
        values = generator.lognormal(-(_SIGMA**2) / 2, _SIGMA, shape)
        return np.asarray((values - 1) / np.sqrt(np.expm1(_SIGMA**2)))
    values = generator.normal(size=shape)
    if kind == OUTLIERS:
        values *= np.where(generator.random(shape) < 0.1, 5, 1) / np.sqrt(0.9 + 0.1 * 25)
    return values
