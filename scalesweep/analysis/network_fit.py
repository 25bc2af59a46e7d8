"""Latency and bandwidth of a network from the times of allreduce, by range of message size.

An allreduce of S bytes on p ranks takes, with a latency a and b seconds per byte,

* ring: 2 (p - 1) a + 2 (p - 1)/p S b;
* recursive halving and doubling: 2 log2(p) a + 2 (p - 1)/p S b;
* tree (reduce, then broadcast): 2 log2(p) (a + S b)

(R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH,
IJHPCA 19(1), 2005; log2 rounded up). What the sum of numbers costs per byte adds to b, from which
times cannot tell it. Libraries change the algorithm with the size: each range has a fit of its own,
and ranges are split where that predicts sizes better that were left out of the fit.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from scalesweep.analysis.stats import Estimate, t_quantile
from scalesweep.analysis.types import Floats, Places

RING, HALVING, TREE = "ring", "recursive halving and doubling", "tree"
ALGORITHMS = (RING, HALVING, TREE)
MAX_RANGES = 3
LEAST_SIZES = 3  # in a range: fewer would be fitted whatever they are
# Another range, or another algorithm, must predict better by more than this many standard errors.
CLEAR = 2.0
# Messages so many times larger than the largest measured one are still read off the last line.
BEYOND = 8.0
_FAR, _FAR_LOG = 1e6, 100.0


@dataclass(frozen=True, eq=False)
class AlgorithmFit:
    """What an algorithm's formula gives in a range of sizes: latency (s) and seconds per byte.

    ``covariance`` ``[2, 2]`` of both and ``degrees`` of freedom; NaN where the data do not give
    them. ``error``: root mean square of relative errors at sizes left out of the fit.
    ``indistinguishable``: the data do not speak against it, in favour of the best one.
    """

    algorithm: str
    solution: Floats
    covariance: Floats
    degrees: int
    error: float
    indistinguishable: bool

    def estimate(self, terms: Floats) -> Estimate:
        """The time of so many latencies and bytes, at least 0, whose interval (Student's t) is of
        its logarithm; far beyond it has none."""
        quantile = t_quantile(self.degrees) if self.degrees > 0 else math.nan
        value = float(terms @ self.solution)
        width = quantile * math.sqrt(max(float(terms @ self.covariance @ terms), 0.0))
        if value <= 0:
            return Estimate(0.0, 0.0, width) if math.isfinite(width) else Estimate(0.0)
        factor = math.exp(min(width / value, _FAR_LOG))
        return Estimate.of(value, value / factor, value * factor)

    @property
    def latency(self) -> Estimate:
        """Seconds of a message without content."""
        return self.estimate(np.array([1.0, 0.0]))

    @property
    def bandwidth(self) -> Estimate:
        """Bytes per second; infinite where no size takes longer than another."""
        slope = self.estimate(np.array([0.0, 1.0]))
        ends = (1 / end if end else None for end in (slope.high, slope.low))
        return Estimate(1 / slope.value if slope.value > 0 else math.inf, *ends)


@dataclass(frozen=True)
class RangeFit:
    """The fits of all algorithms to sizes from ``low`` to ``high`` bytes, the best one first."""

    low: float
    high: float
    fits: Sequence[AlgorithmFit]

    @property
    def best(self) -> AlgorithmFit:
        """The one that predicts best."""
        return self.fits[0]


def fit_network(ranks: Floats, sizes: Floats, seconds: Floats) -> list[RangeFit]:
    """Fit times ``seconds`` of allreduces of ``sizes`` bytes on ``ranks`` ranks, all ``[time]``.

    Errors are relative, coefficients at least 0. Returns the ranges of sizes in order: as few as
    predict left-out sizes as well as more would. None where there are fewer than three sizes, or
    times that are not positive.
    """
    known = np.isfinite(seconds) & (seconds > 0) & (sizes > 0) & (ranks > 1)
    data = _Data(ranks[known], sizes[known], seconds[known])
    count = len(data.sizes)
    if count < LEAST_SIZES:
        return []
    chosen: list[tuple[int, int]] = [(0, count)]
    for ranges in range(2, min(MAX_RANGES, count // LEAST_SIZES) + 1):
        cuts = (
            [0, *inner, count]
            for inner in combinations(range(LEAST_SIZES, count - LEAST_SIZES + 1), ranges - 1)
        )
        splits = [list(pairwise(edges)) for edges in cuts if min(np.diff(edges)) >= LEAST_SIZES]
        many = min(splits, key=lambda split: float(data.best(split).sum()))
        if clearly_better(data.best(chosen), data.best(many), data.cluster):
            chosen = many
    return [data.fit(begin, end) for begin, end in chosen]


def _terms(algorithm: str, ranks: Floats, sizes: Floats) -> Floats:
    """What latency and seconds per byte are multiplied with, ``[time, 2]``."""
    steps = np.ceil(np.log2(ranks))
    share = 2 * (ranks - 1) / ranks * sizes
    if algorithm == RING:
        return np.stack([2 * (ranks - 1), share], axis=1)
    if algorithm == HALVING:
        return np.stack([2 * steps, share], axis=1)
    return np.stack([2 * steps, 2 * steps * sizes], axis=1)


def predicted_seconds(
    algorithm: str, ranks: int, sizes: Floats, latency: float, bandwidth: float | None
) -> Floats:
    """The times of allreduces of ``sizes`` bytes; ``bandwidth`` None where size takes no time."""
    terms = _terms(algorithm, np.full(len(sizes), float(ranks)), sizes)
    slope = 1 / bandwidth if bandwidth else 0.0
    return np.asarray(terms @ np.array([latency, slope]), np.float64)


class _Data:
    """Times with what their fits need; a range is of the sizes from one place to another."""

    def __init__(self, ranks: Floats, sizes: Floats, seconds: Floats) -> None:
        self.sizes: Floats = np.unique(sizes)
        self.place: Places = np.searchsorted(self.sizes, sizes)
        # Times of one size and number of ranks share what a fit gets wrong there: one cluster.
        pairs = np.stack([sizes, ranks])
        self.cluster: Places = np.unique(pairs, axis=1, return_inverse=True)[1].ravel()
        # Relative errors: rows and times are divided by the mean time of their cluster. By each
        # time itself, the fit would lie below the mean: short times would weigh more than long.
        mean = _cluster_means(seconds, self.cluster)[self.cluster] if len(sizes) else seconds
        self.rows = {name: _terms(name, ranks, sizes) / mean[:, None] for name in ALGORITHMS}
        self.times: Floats = seconds / mean
        self._errors: dict[tuple[int, int], dict[str, Floats]] = {}

    def errors(self, begin: int, end: int) -> dict[str, Floats]:
        """By algorithm the squared relative error of each time of a range, by a fit without the
        times of its size."""
        if (begin, end) not in self._errors:
            within = (self.place >= begin) & (self.place < end)
            errors = {name: np.zeros(len(self.times)) for name in ALGORITHMS}
            for name, rows in self.rows.items():
                for place in range(begin, end):
                    out, rest = self.place == place, within & (self.place != place)
                    wrong = self.times[out] - rows[out] @ _solve(rows[rest], self.times[rest])
                    errors[name][out] = np.minimum(wrong**2, _FAR)
            self._errors[begin, end] = {name: each[within] for name, each in errors.items()}
        return self._errors[begin, end]

    def best(self, split: Sequence[tuple[int, int]]) -> Floats:
        """The errors of all times, of the algorithm that predicts best in each range."""
        errors = np.zeros(len(self.times))
        for begin, end in split:
            within = (self.place >= begin) & (self.place < end)
            errors[within] = min(self.errors(begin, end).values(), key=np.sum)
        return errors

    def fit(self, begin: int, end: int) -> RangeFit:
        """The fits of a range."""
        chosen = (self.place >= begin) & (self.place < end)
        cluster, errors = self.cluster[chosen], self.errors(begin, end)
        order = sorted(ALGORITHMS, key=lambda name: float(errors[name].mean()))
        fits = [
            AlgorithmFit(
                name, *_coefficients(self.rows[name][chosen], self.times[chosen], cluster),
                error=math.sqrt(float(errors[name].mean())),
                indistinguishable=not clearly_better(errors[name], errors[order[0]], cluster),
            )
            for name in order
        ]  # fmt: skip
        return RangeFit(float(self.sizes[begin]), float(self.sizes[end - 1]), fits)


def clearly_better(errors: Floats, others: Floats, cluster: Places) -> bool:
    """Whether ``others`` are smaller than ``errors`` by more than chance, over clusters of both.

    The mean difference is held against its standard error over the means of clusters.
    """
    differences = _cluster_means(errors - others, cluster)
    mean = float(differences.mean())
    if mean <= 1e-9 * float(errors.mean()) or len(differences) < 2:
        return False
    return mean > CLEAR * float(differences.std(ddof=1)) / math.sqrt(len(differences))


def _cluster_means(values: Floats, cluster: Places) -> Floats:
    names, index = np.unique(cluster, return_inverse=True)
    sums = np.bincount(index, values, len(names))
    return sums / np.bincount(index, minlength=len(names))


def _solve(rows: Floats, times: Floats) -> Floats:
    """Coefficients at least 0 by least squares."""
    from scipy.optimize import nnls

    norms = np.linalg.norm(rows, axis=0)  # scales differ by many orders
    solution: Floats = nnls(rows / norms, times)[0] / norms
    return solution


def _coefficients(rows: Floats, times: Floats, cluster: Places) -> tuple[Floats, Floats, int]:
    """Latency and seconds per byte, their covariance if times of a cluster err together, and
    degrees of freedom.

    Cluster-robust (sandwich) errors with each cluster's residuals divided by what it leaves to the
    others (HC3 for clusters: A. C. Cameron, D. L. Miller, J. Human Resources 50(2), 2015), and
    clusters - 2 degrees of freedom.
    """
    names, place = np.unique(cluster, return_inverse=True)
    gram, solution = rows.T @ rows, _solve(rows, times)
    covariance = np.full((2, 2), math.nan)
    if len(names) > 2 and np.linalg.det(gram / np.outer(*[np.sqrt(np.diag(gram))] * 2)) > 1e-12:
        inverse = np.linalg.inv(gram)
        scores = []
        for number in range(len(names)):
            own, left = rows[place == number], times[place == number]
            score = own.T @ (left - own @ solution)
            scores.append(np.linalg.pinv(np.eye(2) - own.T @ own @ inverse) @ score)
        covariance = inverse @ (np.transpose(scores) @ np.array(scores)) @ inverse
    return solution, covariance, len(names) - 2


def message_seconds(fits: Sequence[RangeFit], ranks: int, size: float) -> Estimate | None:
    """What an allreduce of ``size`` bytes takes by the fit of its range.

    The value is that of the best algorithm; the bounds are the widest of the algorithms that the
    data cannot tell apart, which differ at a number of ranks that was not measured. None for a
    message far beyond the measured ones.
    """
    if not fits or size > BEYOND * fits[-1].high or ranks < 2 or size <= 0:
        return None
    within = next((fit for fit in fits if size <= fit.high), fits[-1])

    def seconds(fit: AlgorithmFit) -> Estimate:
        return fit.estimate(_terms(fit.algorithm, np.array([ranks]), np.array([size]))[0])

    return spanning(within, seconds)


def spanning(fit: RangeFit, of: Callable[[AlgorithmFit], Estimate]) -> Estimate:
    """That of the best algorithm; its interval holds those of all that may be at work."""
    likely = [of(each) for each in fit.fits if each.indistinguishable]
    ends = np.array([(each.low, each.high) for each in likely], np.float64)
    return Estimate.of(of(fit.best).value, ends[:, 0].min(), ends[:, 1].max())
