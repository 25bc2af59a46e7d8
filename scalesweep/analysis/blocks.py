"""Intervals of repeats that ran in randomised blocks: sharper than those of each point alone.

A block holds one run of every point, in random order, and blocks run one after the other
(``scalesweep.config.run_order``). So the logarithms of what was measured are taken as

    log y[point, block] = level[point] + state[block] + error[point, block],

the two-way layout of randomised complete blocks (Montgomery, Design and Analysis of Experiments,
chapter 4). Two things follow. In a ratio of two points the state of the machine cancels, block by
block. And every point tells of the error's variance, which a point alone has too few repeats for.

Noise often grows with the scale, and then the variance of all is that of none. So points share
theirs only where nothing shows that it differs: neither Bartlett's test nor a trend of the
logarithms of the variances along the points, in plan order, at 20 % together. This level is so high
because three repeats show little: at 5 % the noisiest of nine points would be covered too seldom.
Else each point keeps its own interval, as Welch's t takes it.

How far variances are alike below that is estimated, not taken for granted: the scatter of the
logarithms of their own variances over what chance gives them sets the weight ``prior``, in degrees
of freedom, of the pooled variance against a point's own (empirical Bayes; Smyth, Statistical
Applications in Genetics and Molecular Biology 3, 2004, article 3). It is infinite where nothing
shows that variances differ, and falls for a point that scatters more than the others. One that
scatters as chance makes one in a hundred (F test) has no share in this: it keeps its own interval.

All that is of intervals. A claim is judged by a p value that rests on no such test (``ratio_p``).

Pure functions on NumPy arrays. tests/acceptance/test_clear.py simulates coverage.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scalesweep.analysis.shapes import odd
from scalesweep.analysis.stats import (
    Interval,
    LogError,
    cautious_degrees,
    identical,
    one_sidedness,
    t_chance,
    t_quantile,
)
from scalesweep.analysis.types import Floats, Places
from scalesweep.analysis.variance_model import VarianceModel

# Of two points the residuals mirror each other: nothing tells their variances apart.
LEAST_POINTS = 3
# A point that chance makes scatter so much more than the others this seldom is not like them.
NOISIER = 0.01
# Variances that chance makes differ so much this seldom are not shared.
UNEQUAL = 0.2
# The same where blocks differ: the residuals of a point hold a part of the others' noise, so that
# variances look more alike than they are.
UNEQUAL_SHIFTED = 0.5
# Blocks that chance makes differ so much this seldom: the machine did change between them.
DRIFTED = 0.05
_ROUNDING = 1e-12  # a standard deviation of logarithms that is rounding, not scatter
_TERMS = 60  # of a series whose terms fall at least as 4^-k


@dataclass(frozen=True)
class Layout:
    """Points whose runs started block by block: ``runs[point, block]`` are places of runs."""

    points: Sequence[Hashable]
    runs: Places

    def blocks(self, values: ArrayLike) -> "Blocks | None":
        """The blocks of a quantity, ``values[run]`` (NaN: missing), of the points where every
        repeat has a positive value and not all the same; None of fewer than two points."""
        taken = np.asarray(values, np.float64)[self.runs]
        usable = (np.isfinite(taken) & (taken > 0)).all(axis=1)
        usable[usable] = ~identical(taken[usable])
        if usable.sum() < 2:
            return None
        kept = np.flatnonzero(usable)
        places = {self.points[place]: number for number, place in enumerate(kept.tolist())}
        return Blocks(np.log(taken[kept]), places)


def layouts(
    points: Sequence[Hashable], repeats: Sequence[int], started: Sequence[float]
) -> list[Layout]:
    """Which runs form randomised blocks, by each run's point, number of repeat and start in s.

    Points go together that have the same repeats, two or more, and whose first repeats all began
    before any second one: what was added or run again on another day is on its own. Left out are
    points with a run that began more than half a block before its block or after it, and those of
    which a start is not known (NaN).
    """
    of_point: dict[Hashable, dict[int, int]] = {}
    for run, (point, repeat) in enumerate(zip(points, repeats, strict=True)):
        of_point.setdefault(point, {})[repeat] = run
    alike: dict[tuple[int, ...], list[Hashable]] = {}
    for point, runs in of_point.items():
        if len(runs) > 1:
            alike.setdefault(tuple(sorted(runs)), []).append(point)
    began = np.asarray(started, np.float64)
    layouts = []
    for numbers, members in alike.items():
        grid = np.array([[of_point[point][number] for number in numbers] for point in members])
        for places in _cohorts(began[grid]):
            kept = places[_in_order(began[grid[places]])]
            if kept.size > 1:
                layouts.append(Layout([members[place] for place in kept.tolist()], grid[kept]))
    return layouts


def start_seconds(text: Any) -> float:
    """A run's start, as records have it, in s since 1970; NaN where it is not known."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return math.nan


def _cohorts(began: Floats) -> list[Places]:
    """Places of the points, of ``began[point, block]``, whose first blocks began together."""
    known = np.flatnonzero(np.isfinite(began).all(axis=1))
    order = known[np.argsort(began[known, 0], kind="stable")].tolist()
    groups: list[list[int]] = []
    second = -math.inf
    for place in order:
        if began[place, 0] >= second:
            groups.append([])
            second = math.inf
        groups[-1].append(place)
        second = min(second, began[place, 1])
    return [np.array(group, np.intp) for group in groups]


def _in_order(began: Floats) -> NDArray[np.bool_]:
    """Which points of ``began[point, block]`` have each run in its block, or half a block off."""
    points, blocks = began.shape
    order = np.empty(began.size)
    order[np.argsort(began, axis=None, kind="stable")] = np.arange(began.size)
    middle = points * np.arange(blocks) + (points - 1) / 2
    return np.asarray((np.abs(order.reshape(began.shape) - middle) <= points).all(axis=1))


@dataclass(frozen=True)
class Blocks:
    """Logarithms of positive values ``logs[point, block]``, complete, of two points or more and
    as many blocks, and which place each point has."""

    logs: Floats
    places: Mapping[Hashable, int]

    @property
    def free(self) -> int:
        """Degrees of freedom of a point alone: one fewer than blocks."""
        return int(self.logs.shape[1]) - 1

    @cached_property
    def alike(self) -> NDArray[np.bool_]:
        """Which points share their variance; none where fewer than three would."""
        points = len(self.logs)
        if points < LEAST_POINTS:
            return np.zeros(points, np.bool_)
        from scipy.special import fdtrc

        spreads = _residual_variances(self.logs)
        if np.count_nonzero(spreads > _ROUNDING**2) < LEAST_POINTS:
            return np.zeros(points, np.bool_)
        others = (spreads.sum() - spreads) / (points - 1)
        chance = fdtrc(self.free, self.free * (points - 2), spreads / others)
        kept = np.asarray(chance >= NOISIER)
        share = kept.sum() >= LEAST_POINTS and not _unequal(self.logs[kept])
        return kept if share else np.zeros(points, np.bool_)

    @cached_property
    def pool(self) -> "_Pool | None":
        """What the points tell of the variance together; None where fewer than three do."""
        return _pool(self.logs[self.alike]) if self.alike.any() else None

    @cached_property
    def drifted(self) -> bool:
        """Whether the blocks differ by more than chance (F test, 5 %)."""
        return _shifted(self.logs[self.alike] if self.pool else self.logs)

    @cached_property
    def _own(self) -> Floats:
        return np.asarray(self.logs.var(axis=1, ddof=1))

    def mean_error(self, point: Hashable) -> LogError | None:
        """Standard error of the logarithm of a point's mean; None where it has its own only."""
        place = self.places.get(point)
        if place is None or self.pool is None or not self.alike[place]:
            return None
        pooled = Variance(self.pool.total, self.pool.total_degrees)
        return self._error(_shared(pooled, self.pool.prior, float(self._own[place]), self.free))

    def ratio_error(self, top: Hashable, bottom: Hashable) -> LogError | None:
        """Standard error of the logarithm of the ratio of two points' means, within the blocks.

        Of two points that share their variance; of others only where the blocks drifted: the
        difference within each block is then their repeat (paired t). Else None: independent
        repeats say more.
        """
        first, second = self.places.get(top), self.places.get(bottom)
        if first is None or second is None or first == second:
            return None
        apart = float((self.logs[first] - self.logs[second]).var(ddof=1))
        if self.pool is not None and self.alike[first] and self.alike[second]:
            pooled = Variance(2 * self.pool.residual, self.pool.degrees)
            return self._error(_shared(pooled, self.pool.prior, apart, self.free))
        if self.drifted and apart > _ROUNDING**2:
            return self._error(Variance(apart, self.free))
        return None

    def ratio_p(self, top: Hashable, bottom: Hashable, apart: float) -> float | None:
        """Two-sided p value of the logarithm of the ratio of two points' means, ``apart`` from what
        is claimed to be another value: what claims are judged by.

        Of three points or more by what all of them tell of each one's variance
        (``variance_model``), and where their repeats are not shaped as normal noise (``shapes``),
        as if both were as noisy as all on average; of two whose blocks drifted by the differences
        within these. Else None: independent repeats say more.
        """
        first, second = self.places.get(top), self.places.get(bottom)
        if first is None or second is None or first == second:
            return None
        if self._model is not None:
            chance = self._model.chance(first, second, apart)
            return max(chance, self._chance_of_all(apart)) if self._odd else chance
        if (error := self.ratio_error(top, bottom)) is None:
            return None
        one_sided = one_sidedness([float(self._own[first])], [float(self._own[second])])
        degrees = cautious_degrees(error.degrees, self.free + 1, one_sided)
        return t_chance(apart, error.error, degrees)

    @cached_property
    def _odd(self) -> bool:
        """Whether the repeats of all points together are not shaped as normal noise."""
        return odd(_residuals(self.logs, _shifted(self.logs)))

    def _chance_of_all(self, apart: float) -> float:
        """p value of two means lying ``apart``, were both points as noisy as all are on average."""
        repeats, usual = self.free + 1, float(_spreads(self.logs, _shifted(self.logs)).mean())
        degrees = cautious_degrees(self.free, repeats)
        return t_chance(apart, math.sqrt(2 * usual / repeats), degrees)

    @cached_property
    def _model(self) -> VarianceModel | None:
        """What the points tell of the variance of each; None of fewer than three that scatter."""
        spreads = _spreads(self.logs, _shifted(self.logs))
        if np.count_nonzero(spreads > _ROUNDING**2) < LEAST_POINTS:
            return None
        return VarianceModel(np.maximum(spreads, _ROUNDING**2), self.free + 1)

    def _error(self, variance: "Variance") -> LogError:
        """Of the mean over the blocks."""
        return LogError(math.sqrt(variance.value / (self.free + 1)), variance.degrees)


class Variance(NamedTuple):
    """An estimate of a variance, and its degrees of freedom."""

    value: float
    degrees: float


@dataclass(frozen=True)
class _Pool:
    """Variances of logarithms that points share, with their degrees of freedom.

    ``residual``: of single runs within a block; ``total``: with what blocks differ by; ``prior``:
    the weight of both against a point's own.
    """

    residual: float
    degrees: float
    total: float
    total_degrees: float
    prior: float


def interval_of(value: float, error: LogError) -> Interval:
    """95 % confidence interval around a mean or ratio: Student's t on the logarithm."""
    factor = math.exp(t_quantile(error.degrees) * error.error)
    return Interval(value / factor, value * factor, "blocks", error.degrees)


def _shared(pooled: Variance, prior: float, own: float, free: int) -> Variance:
    """A variance that points share together with a point's own, of ``free`` degrees of freedom.

    Each with the weight of its degrees. That of the shared one falls with the p value, times two,
    of the own one being larger (one-sided F test): of points that scatter more than the others,
    more is their own, where chance would hide it at three repeats.
    """
    from scipy.special import fdtrc

    rest = max(pooled.degrees - free, 1.0)
    trust = min(1.0, 2 * float(fdtrc(free, rest, own / pooled.value)))
    if trust == 1 and math.isinf(prior):
        return pooled
    weight = trust * min(prior, pooled.degrees)
    value = (weight * pooled.value + free * own) / (weight + free)
    return Variance(value, min(weight + free, pooled.degrees))


def _unequal(logs: Floats) -> bool:
    """Whether the variances of points, three or more, differ by more than chance, or along them.

    Bartlett's test (Proceedings of the Royal Society A 160, 1937) and the slope of the logarithms
    of the variances over the points, whose error is that of a logarithm of chi-squared; of each
    twice the p value. Variances are those of the residuals where blocks differ, else the points'.
    """
    from scipy.special import chdtrc, ndtr, polygamma

    points, blocks = logs.shape
    free = blocks - 1
    shift = _shifted(logs)
    spreads = np.maximum(_spreads(logs, shift), _ROUNDING**2)
    values = np.log(spreads)
    apart = points * free * math.log(float(spreads.mean())) - free * float(values.sum())
    scale = 1 + (points / free - 1 / (points * free)) / (3 * (points - 1))
    places = np.arange(points) - (points - 1) / 2
    weight = float(places @ places)
    slope = float(values @ places) / weight
    far = abs(slope) * math.sqrt(weight / float(polygamma(1, free / 2)))
    chance = min(float(chdtrc(points - 1, max(apart, 0.0) / scale)), 2 * float(ndtr(-far)))
    return 2 * chance < (UNEQUAL_SHIFTED if shift else UNEQUAL)


def _blocks_differ(between: float, rest: float, points: int, free: int) -> bool:
    """Whether blocks differ by more than chance (F test, 5 %), by their mean squares."""
    from scipy.special import fdtrc

    if rest <= _ROUNDING**2:
        return between > _ROUNDING**2
    return bool(fdtrc(free, free * (points - 1), between / rest) < DRIFTED)


def _shifted(logs: Floats) -> bool:
    """Whether the blocks of points differ by more than chance."""
    points, blocks = logs.shape
    return _blocks_differ(*_mean_squares(logs), points, blocks - 1)


def _spreads(logs: Floats, shifted: bool) -> Floats:
    """The points' variances: those of the residuals where blocks differ, else their own."""
    return _residual_variances(logs) if shifted else np.asarray(logs.var(axis=1, ddof=1))


def _residuals(logs: Floats, shifted: bool) -> Floats:
    """What each run differs from its point's mean, and from its block's where blocks differ."""
    rest = logs - logs.mean(axis=0) if shifted else logs
    return np.asarray(rest - rest.mean(axis=1, keepdims=True))


def _residual_variances(logs: Floats) -> Floats:
    """Variance of each point's residuals in the two-way layout.

    Unbiased, with ``blocks - 1`` degrees of freedom, where all errors have the same variance.
    """
    points, blocks = logs.shape
    rest = logs - logs.mean(axis=0)
    rest -= rest.mean(axis=1, keepdims=True)
    scale = points / (points - 1) / (blocks - 1)
    return np.asarray((rest * rest).sum(axis=1) * scale)


def _mean_squares(logs: Floats) -> tuple[float, float]:
    """Mean squares between blocks and of the residuals."""
    between = len(logs) * float(logs.mean(axis=0).var(ddof=1))
    rest = float(_residual_variances(logs).mean())
    return between, rest


def _pool(logs: Floats) -> _Pool | None:
    """What points of one variance tell of it; None where there is nothing but rounding."""
    points, blocks = logs.shape
    free = blocks - 1
    between, rest = _mean_squares(logs)
    if rest <= _ROUNDING**2:
        return None
    # E[between] = residual + points * variance of the blocks. Their combination is that of a
    # single run, with degrees of freedom after Satterthwaite (Biometrics Bulletin 2, 1946).
    weighted = between + (points - 1) * rest
    total_degrees = free * weighted**2 / (between**2 + (points - 1) * rest**2)
    spreads = np.maximum(_residual_variances(logs), _ROUNDING**2)
    scatter = float(np.log(spreads).var(ddof=1))
    prior = _prior_degrees(scatter - _chance_scatter(points, free))
    return _Pool(rest, free * (points - 1.0), weighted / points, total_degrees, prior)


@lru_cache(maxsize=1024)
def _chance_scatter(points: int, free: int) -> float:
    """Expected variance, over the points, of the logarithms of equal variances' estimates.

    That of the logarithm of chi-squared with ``free`` degrees of freedom, trigamma(free / 2), less
    the covariance of two of them: residuals of two points have the correlation -1 / (points - 1),
    and trigamma(x) = sum over k of B(k, x) / k has the squared correlation to the power of k in
    each term for the covariance.
    """
    from scipy.special import beta, polygamma

    k = np.arange(1, _TERMS + 1)
    shared = (points - 1.0) ** (-2.0 * k) * beta(k, free / 2) / k
    return float(polygamma(1, free / 2) - shared.sum())


def _prior_degrees(excess: float) -> float:
    """Degrees of freedom whose logarithm of chi-squared scatters as much as variances do.

    Solves trigamma(degrees / 2) = ``excess`` by Newton's method (Smyth 2004, appendix).
    """
    if excess <= 1e-7:  # as many degrees as make no difference
        return math.inf
    from scipy.special import polygamma

    x = 0.5 + 1 / excess
    for _ in range(50):
        here = float(polygamma(1, x))
        step = here * (1 - here / excess) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return 2 * x
