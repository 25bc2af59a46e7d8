"""Ratios within blocks with what the machine did as covariate: analysis of covariance.

Where runs stood between canaries (docs/guide/machine_check.md), part of what their repeats differ
by may be the machine's. With the logarithm x of a rate of the canary before each run,

    log y[point, block] = level[point] + state[block] + slope * x[point, block] + error,

the blocks' two-way layout with one covariate (Montgomery, Design and Analysis of Experiments,
chapter 15). Ratios of levels are then those at equal machines. Only the look *before* a run counts:
what a run does to its machine must not enter the covariate.

**Rule.** One kind of canary is used for all points of a quantity, or none: that whose slope has the
smallest p value (F test), if that times the number of kinds is at most ``CHANCE``. Which kind is
taken does not depend on any single ratio. ``bench/covariate.py`` simulates what that covers.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scalesweep.analysis.blocks import Blocks
from scalesweep.analysis.stats import LogError
from scalesweep.analysis.types import Floats

# How seldom a slope as clear as this is chance, over all kinds.
CHANCE = 0.01
# With fewer of either a slope that is clear by chance alone is too often one that misleads.
LEAST_POINTS, LEAST_DEGREES = 4, 8


@dataclass(frozen=True)
class Covariate:
    """A fitted covariate of some blocks; ``slope`` per unit of its logarithm, ``p`` that of chance.

    ``values[point, block]`` are its logarithms, in the order of the blocks' places.
    """

    kind: str
    blocks: Blocks
    values: Floats
    slope: float
    p: float
    variance: float  # of single runs within a block, at equal covariate
    degrees: int

    @property
    def places(self) -> Mapping[Hashable, int]:
        """Which place each point has."""
        return self.blocks.places

    @cached_property
    def _adjusted(self) -> Blocks:
        return Blocks(self.blocks.logs - self.slope * self.values, self.blocks.places)

    @cached_property
    def _scatter(self) -> float:
        return float((_within(self.values) ** 2).sum())

    def ratio(self, top: Hashable, bottom: Hashable) -> tuple[float, LogError] | None:
        """Logarithm of the ratio of two points at equal machines, and its error; None without."""
        error = self._adjusted.ratio_error(top, bottom)
        if error is None:
            return None
        first, second = self.blocks.places[top], self.blocks.places[bottom]
        logs = self._adjusted.logs.mean(axis=1)
        apart = float(self.values[first].mean() - self.values[second].mean())
        # The slope took one degree of freedom, and what it is not known to enters with the
        # distance of the two points in the covariate.
        own = error.error**2 * (self.degrees + 1) / self.degrees
        total = own + self.variance * apart**2 / self._scatter
        degrees = max(error.degrees - 1, 1.0)
        return float(logs[first] - logs[second]), LogError(math.sqrt(total), degrees)


def choose(blocks: Blocks, kinds: Mapping[str, Floats]) -> Covariate | None:
    """The covariate to use, by the rule above; None where there is none.

    ``kinds``: logarithms ``[point, block]`` in the order of the blocks' places, complete.
    """
    fits = [fit for kind, values in kinds.items() if (fit := _fit(blocks, kind, values))]
    if not fits:
        return None
    best = min(fits, key=lambda fit: fit.p)
    return best if best.p * len(fits) <= CHANCE else None


def _within(values: Floats) -> Floats:
    """What is left of ``[point, block]`` beyond the means of points and blocks."""
    rest = values - values.mean(axis=0)
    return np.asarray(rest - rest.mean(axis=1, keepdims=True))


def _fit(blocks: Blocks, kind: str, values: Floats) -> Covariate | None:
    from scipy.special import fdtrc

    points, repeats = blocks.logs.shape
    degrees = (points - 1) * (repeats - 1) - 1
    if points < LEAST_POINTS or degrees < LEAST_DEGREES or blocks.pool is None:
        return None
    x, y = _within(values), _within(blocks.logs)
    scatter = float((x * x).sum())
    total = float((y * y).sum())
    if scatter <= 1e-20 or total <= 1e-20:
        return None
    slope = float((x * y).sum()) / scatter
    rest = max(total - slope**2 * scatter, 1e-300)
    p = float(fdtrc(1, degrees, slope**2 * scatter / (rest / degrees)))
    return Covariate(kind, blocks, values, slope, p, rest / degrees, degrees)
