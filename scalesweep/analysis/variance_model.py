"""How likely a ratio is chance where each point has its own variance, which few repeats tell little
of: what claims are judged by.

A point's variance is known from a few repeats only, and nothing shows whether those of several
points are one: of noise that grows tenfold with the scale, a test of equal variances passes in a
part of campaigns, and just in those whose noisy points happen to scatter little. So no test decides
here. The logarithms of the points' variances are themselves taken as a sample,

    log variance[point] ~ normal(mu, tau^2), with one in ten far off (``WIDE``),

and all that is not known (mu, tau, each variance) is averaged over with the weight that the repeats
give it (a hierarchical model; Gelman et al., Bayesian Data Analysis, chapter 5; of variances, with
one estimate of their scatter, Smyth, Statistical Applications in Genetics and Molecular Biology 3,
2004, article 3).
Where points scatter alike each profits from all; where they do not, each keeps to its own repeats,
and what lies between is no choice between the two.

Repeats whose noise is skewed or has outliers say less of a variance than those of normal noise: the
weight of a point's own is that of noise with excess kurtosis (``stats.cautious_degrees``).

Pure functions on NumPy arrays. tests/acceptance/test_clear.py simulates how often a claim is false.
"""

import math
from functools import cached_property

import numpy as np

from scalesweep.analysis.stats import cautious_degrees
from scalesweep.analysis.types import Floats, Places

# Standard deviations of the logarithm of the points' variances, and their weights before any repeat
# is seen. Noise that grows tenfold along the points, evenly on the logarithm, has 1.4; at 30, 2.
TAUS = (0.2, 0.5, 1.0, 1.5, 2.0, 2.5)
WEIGHTS = (0.05, 0.1, 0.2, 0.25, 0.2, 0.2)
# Of one point in ten nothing is known but that: what the others are does not say how noisy it is.
FAR, WIDE = 0.1, 2.5
_STEP = 0.25  # of the grids of log variances and of mu; finer where many repeats tell more
_NOTHING = 1e-8  # a weight, of the largest, that changes no p value that matters
_MOST = 200  # grid places, also of variances that differ by many orders of magnitude


class VarianceModel:
    """What the repeats of several points say of the variance of each.

    ``spreads[point]``: sample variances of logarithms, positive, each of ``repeats`` runs.
    """

    def __init__(self, spreads: Floats, repeats: int) -> None:
        self._spreads, self._repeats = spreads, repeats

    def chance(self, first: int, second: int, apart: float) -> float:
        """Two-sided p value of two points' mean logarithms lying ``apart``, were they the same."""
        from scipy.special import ndtr

        weights, kept = self._weights
        both = (weights[:, None] * self._of(first, kept)).T @ self._of(second, kept)
        values = np.exp(self._grid)
        error = np.sqrt((values[:, None] + values) / self._repeats)
        return float(min(1.0, 2 * (both * ndtr(-abs(apart) / error)).sum()))

    @cached_property
    def _degrees(self) -> float:
        return cautious_degrees(self._repeats - 1, self._repeats)

    @cached_property
    def _grid(self) -> Floats:
        """Log variances: from where no repeats would be so far apart to where hardly any would be
        so close."""
        logs = np.log(self._spreads)
        low, high = float(logs.min()) - 3, float(logs.max()) + 2 + 12 / self._degrees
        step = min(_STEP, 0.8 * math.sqrt(2 / self._degrees))
        return np.linspace(low, high, min(math.ceil((high - low) / step) + 1, _MOST))

    @cached_property
    def _likelihood(self) -> Floats:
        """Of each point's spread, ``[point, variance]``: chi-squared, its largest value 1."""
        logs = np.log(self._spreads)[:, None] - self._grid
        values = self._degrees / 2 * (logs - np.exp(logs))
        return np.asarray(np.exp(values - values.max(axis=1, keepdims=True)))

    @cached_property
    def _priors(self) -> Floats:
        """Of a point's variance given mu and tau, ``[mu and tau, variance]``."""
        kernels = [
            (1 - FAR) * self._normal(tau) + FAR * self._normal(math.hypot(tau, WIDE))
            for tau in TAUS
        ]
        return np.concatenate(kernels)

    def _normal(self, width: float) -> Floats:
        """Normal distributions around each place of the grid, ``[mu, variance]``."""
        far = (self._grid - self._grid[:, None]) / width
        weights = np.exp(-far * far / 2)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    @cached_property
    def _evidence(self) -> Floats:
        """Of each point's spread given mu and tau, ``[mu and tau, point]``."""
        return np.maximum(self._priors @ self._likelihood.T, np.finfo(float).tiny)

    @cached_property
    def _weights(self) -> tuple[Floats, Places]:
        """Of mu and tau, given all spreads, and which of them have any."""
        logs = np.log(np.repeat(WEIGHTS, self._grid.size)) + np.log(self._evidence).sum(axis=1)
        weights = np.exp(logs - logs.max())
        kept = np.flatnonzero(weights > _NOTHING)
        return weights[kept] / weights[kept].sum(), kept

    def _of(self, point: int, kept: Places) -> Floats:
        """Weights of a point's variance given mu and tau, ``[mu and tau, variance]``."""
        seen = self._priors[kept] * self._likelihood[point]
        return np.asarray(seen / self._evidence[kept, point][:, None])
