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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.stats import t_quantile
from scalesweep.analysis.types import Floats, Places

RING, HALVING, TREE = "ring", "recursive halving and doubling", "tree"
ALGORITHMS = (RING, HALVING, TREE)
MAX_RANGES = 3
LEAST_SIZES = 3  # in a range: fewer would be fitted whatever they are
# Another range, or another algorithm, must predict better by more than this many standard errors.
CLEAR = 2.0
# Messages so many times larger than the largest measured one are still read off the last line.
BEYOND = 8.0
_FAR = 1e6


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % bounds; NaN where the data do not give them."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class AlgorithmFit:
    """What an algorithm's formula gives in a range of sizes."""

    algorithm: str
    latency: Estimate  # s
    bandwidth: Estimate  # B/s; infinite where no size takes longer than another
    error: float  # root mean square of relative errors at sizes left out of the fit
    indistinguishable: bool  # the data do not speak against it, in favour of the best one
    # Of latency and seconds per byte (variance, covariance, variance), and degrees of freedom; NaN
    # where the data do not give them.
    covariance: tuple[float, float, float]
    degrees: int


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

    @property
    def supported(self) -> list[str]:
        """The algorithms that the data cannot tell apart from the best one, and that one."""
        return [fit.algorithm for fit in self.fits if fit.indistinguishable]


def fit_network(ranks: Floats, sizes: Floats, seconds: Floats) -> list[RangeFit]:
    """Fit times ``seconds`` of allreduces of ``sizes`` bytes on ``ranks`` ranks, all ``[time]``.

    Errors are relative, coefficients at least 0. Returns the ranges of sizes in order; none where
    there are fewer than three sizes, or times that are not positive.
    """
    known = np.isfinite(seconds) & (seconds > 0) & (sizes > 0) & (ranks > 1)
    ranks, sizes, seconds = ranks[known], sizes[known], seconds[known]
    data = _Data(ranks, sizes, seconds)
    if len(data.sizes) < LEAST_SIZES:
        return []
    return [data.fit(begin, end) for begin, end in _split(data)]


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
    """Times with what their fits need: all sums are by size, so that any range adds them up."""

    def __init__(self, ranks: Floats, sizes: Floats, seconds: Floats) -> None:
        self.sizes: Floats = np.unique(sizes)
        self.place: Places = np.searchsorted(self.sizes, sizes)
        # Times of one size and number of ranks share what a fit gets wrong there: one cluster.
        _, self.cluster = np.unique(np.stack([sizes, ranks]), axis=1, return_inverse=True)
        self.cluster = self.cluster.ravel()
        # Relative errors: rows and times are divided by the mean time of their cluster. By each
        # time itself, the fit would lie below the mean: short times would weigh more than long.
        mean = _cluster_means(seconds, self.cluster)[self.cluster]
        self.rows = {name: _terms(name, ranks, sizes) / mean[:, None] for name in ALGORITHMS}
        self.times = seconds / mean
        self._errors: dict[tuple[int, int], dict[str, Floats]] = {}

    def within(self, begin: int, end: int) -> Places:
        """The times of the sizes ``begin`` to ``end``, the latter not included."""
        return np.flatnonzero((self.place >= begin) & (self.place < end))

    def errors(self, begin: int, end: int) -> dict[str, Floats]:
        """By algorithm the squared relative error of each time of a range, its size left out."""
        if (begin, end) not in self._errors:
            chosen = self.within(begin, end)
            place = self.place[chosen] - begin
            self._errors[begin, end] = {
                name: _left_out(rows[chosen], self.times[chosen], place, end - begin)
                for name, rows in self.rows.items()
            }
        return self._errors[begin, end]

    def best(self, begin: int, end: int) -> Floats:
        """The same of the algorithm that predicts best in this range."""
        errors = self.errors(begin, end)
        return errors[min(errors, key=lambda name: float(errors[name].sum()))]

    def fit(self, begin: int, end: int) -> RangeFit:
        """The fits of a range."""
        chosen, errors = self.within(begin, end), self.errors(begin, end)
        order = sorted(ALGORITHMS, key=lambda name: float(errors[name].mean()))
        cluster = self.cluster[chosen]
        fits = []
        for name in order:
            fitted = _coefficients(self.rows[name][chosen], self.times[chosen], cluster)
            worse = clearly_better(errors[name], errors[order[0]], cluster)
            error = math.sqrt(float(errors[name].mean()))
            fits.append(
                AlgorithmFit(
                    name, fitted.latency, fitted.bandwidth, error, not worse, fitted.covariance,
                    fitted.degrees,
                )
            )  # fmt: skip
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


def _solve(gram: Floats, right: Floats) -> Floats:
    """Coefficients at least 0 of normal equations ``[..., 2, 2]`` and ``[..., 2]``."""
    first_square, both, two = gram[..., 0, 0], gram[..., 0, 1], gram[..., 1, 1]
    first, second = right[..., 0], right[..., 1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        determinant = first_square * two - both * both
        a = (first * two - second * both) / determinant
        b = (second * first_square - first * both) / determinant
        a_alone, b_alone = np.nan_to_num(first / first_square), np.nan_to_num(second / two)
    # Scales differ by many orders: a tiny determinant is one that rounding has made.
    good = determinant > 1e-12 * first_square * two
    # Of the two on the edge the one that explains more.
    with np.errstate(over="ignore"):
        more = first * a_alone >= second * b_alone
    edge = np.stack([np.where(more, a_alone, 0.0), np.where(more, 0.0, b_alone)], axis=-1)
    inside = good & (a >= 0) & (b >= 0)
    return np.where(inside[..., None], np.stack([a, b], axis=-1), edge)


def _sums(rows: Floats, times: Floats, place: Places, count: int) -> tuple[Floats, Floats]:
    """Normal equations of each place, ``[place, 2, 2]`` and ``[place, 2]``."""
    gram, right = np.zeros((count, 2, 2)), np.zeros((count, 2))
    np.add.at(gram, place, rows[:, :, None] * rows[:, None, :])
    np.add.at(right, place, rows * times[:, None])
    return gram, right


def _left_out(rows: Floats, times: Floats, place: Places, count: int) -> Floats:
    """Squared relative error of each time, by a fit without the times of its size."""
    gram, right = _sums(rows, times, place, count)
    solutions = _solve(gram.sum(axis=0) - gram, right.sum(axis=0) - right)
    # Of times that no formula is near to, an error beyond all measure is as good as a large one.
    with np.errstate(over="ignore"):
        wrong = np.clip(times - (rows * solutions[place]).sum(axis=1), -_FAR, _FAR)
    return np.asarray(wrong**2, np.float64)


@dataclass(frozen=True)
class _Coefficients:
    latency: Estimate
    bandwidth: Estimate
    covariance: tuple[float, float, float]
    degrees: int


def _coefficients(rows: Floats, times: Floats, cluster: Places) -> _Coefficients:
    """Latency and bandwidth with bounds that hold where times of a cluster err together.

    Cluster-robust (sandwich) errors with each cluster's residuals divided by what it leaves to the
    others (HC3 for clusters: A. C. Cameron, D. L. Miller, J. Human Resources 50(2), 2015), and
    Student's t with clusters - 2 degrees of freedom, on logarithms.
    """
    names, place = np.unique(cluster, return_inverse=True)
    grams, rights = _sums(rows, times, place, len(names))
    gram = grams.sum(axis=0)
    solution = _solve(gram, rights.sum(axis=0))
    covariance = np.full((2, 2), math.nan)
    if len(names) > 2 and np.linalg.det(gram / np.outer(*[np.sqrt(np.diag(gram))] * 2)) > 1e-12:
        inverse = np.linalg.inv(gram)
        scores = np.zeros((len(names), 2))
        np.add.at(scores, place, rows * (times - rows @ solution)[:, None])
        # (I - G_c G^-1)^-1 applied to each cluster's score.
        left = np.linalg.pinv(np.eye(2) - grams @ inverse)
        scores = np.einsum("cij,cj->ci", left, scores)
        covariance = inverse @ (scores.T @ scores) @ inverse
    width = np.sqrt(np.diag(covariance)) * _quantile(len(names) - 2)
    latency = _estimate(float(solution[0]), float(width[0]))
    slope = _estimate(float(solution[1]), float(width[1]))
    inverted = [1 / x if x > 0 else math.inf for x in (slope.value, slope.high, slope.low)]
    if math.isnan(slope.low):
        inverted[1:] = [math.nan, math.nan]
    varied = (float(covariance[0, 0]), float(covariance[0, 1]), float(covariance[1, 1]))
    return _Coefficients(latency, Estimate(*inverted), varied, len(names) - 2)


def _quantile(degrees: int) -> float:
    """Student's t of a 95 % interval; NaN without degrees of freedom."""
    return t_quantile(degrees) if degrees > 0 else math.nan


def message_seconds(fits: Sequence[RangeFit], ranks: int, size: float) -> Estimate | None:
    """What an allreduce of ``size`` bytes takes by the fit of its range.

    The value is that of the best algorithm; the bounds are the widest of the algorithms that the
    data cannot tell apart, which differ at a number of ranks that was not measured. None for a
    message far beyond the measured ones.
    """
    if not fits or size > BEYOND * fits[-1].high or ranks < 2 or size <= 0:
        return None
    within = next((fit for fit in fits if size <= fit.high), fits[-1])
    estimates = [_seconds(fit, ranks, size) for fit in within.fits if fit.indistinguishable]
    low, high = (
        min(estimate.low for estimate in estimates),
        max(estimate.high for estimate in estimates),
    )
    if any(math.isnan(estimate.low) for estimate in estimates):
        low = high = math.nan
    return Estimate(_seconds(within.best, ranks, size).value, low, high)


def _seconds(fit: AlgorithmFit, ranks: int, size: float) -> Estimate:
    terms = _terms(fit.algorithm, np.array([float(ranks)]), np.array([size]))[0]
    slope = 1 / fit.bandwidth.value  # 0 of an infinite one
    value = float(terms @ np.array([fit.latency.value, slope]))
    first, both, second = fit.covariance
    variance = terms[0] ** 2 * first + 2 * terms[0] * terms[1] * both + terms[1] ** 2 * second
    return _estimate(value, math.sqrt(max(float(variance), 0.0)) * _quantile(fit.degrees))


def _estimate(value: float, width: float) -> Estimate:
    if value <= 0:
        return Estimate(0.0, 0.0, width)
    try:
        factor = math.exp(width / value)
    except OverflowError:
        return Estimate(value, 0.0, math.inf)
    return Estimate(value, value / factor, value * factor)


def _split(data: _Data) -> list[tuple[int, int]]:
    """The ranges of sizes, as places: as few as predict left-out sizes as well as more would."""
    count = len(data.sizes)
    most = min(MAX_RANGES, count // LEAST_SIZES)
    best: Mapping[int, list[tuple[int, int]]] = {
        ranges: _best_split(data, ranges, count) for ranges in range(1, most + 1)
    }
    chosen = best[1]
    for ranges in range(2, most + 1):
        if _clearly(data, chosen, best[ranges]):
            chosen = best[ranges]
    return chosen


def _clearly(data: _Data, few: list[tuple[int, int]], many: list[tuple[int, int]]) -> bool:
    """Whether more ranges predict clearly better than fewer."""

    def joined(ranges: list[tuple[int, int]]) -> tuple[Floats, Places]:
        errors = np.concatenate([data.best(*bounds) for bounds in ranges])
        rows = np.concatenate([data.within(*bounds) for bounds in ranges])
        order = np.argsort(rows)
        return errors[order], data.cluster[rows[order]]

    (before, cluster), (after, _) = joined(few), joined(many)
    return clearly_better(before, after, cluster)


def _best_split(data: _Data, ranges: int, count: int) -> list[tuple[int, int]]:
    """The split into so many ranges with the least error, by dynamic programming."""

    def cost(begin: int, end: int) -> float:
        return float(data.best(begin, end).sum())

    best: dict[int, tuple[float, list[tuple[int, int]]]] = {
        end: (cost(0, end), [(0, end)]) for end in range(LEAST_SIZES, count + 1)
    }
    for number in range(2, ranges + 1):
        longer = {}
        for end in range(number * LEAST_SIZES, count + 1):
            begins = range((number - 1) * LEAST_SIZES, end - LEAST_SIZES + 1)
            begin = min(begins, key=lambda b: best[b][0] + cost(b, end))
            total, parts = best[begin]
            longer[end] = (total + cost(begin, end), [*parts, (begin, end)])
        best = longer
    return best[count][1]
