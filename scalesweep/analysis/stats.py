"""Statistics of repeated timings: moments, and intervals of means, ratios and differences.

Pure functions on NumPy arrays. Values must be finite: a caller drops what is missing first, so
that missing never turns into a number here. Results that do not exist (the spread of one
repeat, a ratio of values that are not positive) are NaN, never 0.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from scalesweep.analysis.types import Floats

CONFIDENCE = 0.95
SIGNIFICANT = 1 - CONFIDENCE  # a p value below that is significant
SEED = 20_200_806

# Median absolute deviation of a normal distribution times this is its standard deviation.
MAD_TO_STD = 1.4826
# The same for the mean absolute deviation, sqrt(pi / 2).
MEAN_AD_TO_STD = 1.253314
OUTLIER_SCORE, OUTLIER_FROM = 3.5, 5
ALONE_SPREADS, ALONE_RANGES = 8, 4
ONE_REPEAT = "one repeat"  # why there is no interval


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval; ``low`` and ``high`` are None where there is none."""

    value: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, value: float, low: float | None, high: float | None) -> Self:
        """An estimate; bounds that are not finite are missing."""
        ends = (
            None if end is None or not math.isfinite(end) else float(end) for end in (low, high)
        )
        return cls(value, *ends)

    @property
    def known(self) -> bool:
        """Whether it has an interval."""
        return self.low is not None

    def times(self, factor: float) -> "Estimate":
        """So many times as much; ``factor`` is above 0."""
        ends = (None if end is None else factor * end for end in (self.low, self.high))
        return Estimate(factor * self.value, *ends)

    def over(self, value: float) -> "Estimate":
        """A value over this, which is positive."""
        ends = (None if end is None else value / end for end in (self.high, self.low))
        return Estimate(value / self.value, *ends)

    def less(self, value: float) -> "Estimate":
        """This without so much."""
        ends = (None if end is None else end - value for end in (self.low, self.high))
        return Estimate(self.value - value, *ends)

    def widened(self, share: float) -> "Estimate":
        """If the values may all be off by a share of themselves to the same side, as numbers are
        that are printed with few digits."""
        if not share or self.low is None or self.high is None:
            return self
        more = share * abs(self.low), share * abs(self.high)
        return replace(self, low=self.low - more[0], high=self.high + more[1])


@dataclass(frozen=True, slots=True)
class LogError:
    """Standard error of a logarithm, and its degrees of freedom."""

    error: float
    degrees: float

    def around(self, value: float, level: float = CONFIDENCE) -> Estimate:
        """A positive mean or ratio with its interval: Student's t on the logarithm."""
        factor = math.exp(min(t_quantile(self.degrees, level=level) * self.error, _HUGE))
        return Estimate(value, value / factor, value * factor)

    def p(self, apart: float) -> float:
        """Two-sided p value of a logarithm lying ``apart`` from what is claimed to be another."""
        return t_chance(apart, self.error, self.degrees)


@dataclass(frozen=True, slots=True)
class Stated:
    """What a source states instead of repeats: mean, sample standard deviation (ddof 1), count."""

    mean: float
    std: float
    count: float

    @property
    def error(self) -> LogError | None:
        """Of the logarithm of the mean: its relative standard error (delta method); None of one
        value, or of a mean that is not positive."""
        if self.mean <= 0 or self.count < 2:
            return None
        return LogError(self.std / self.mean / math.sqrt(self.count), self.count - 1)


# Means over ranks may differ in the last digits, by the order of summing.
_ROUNDING = 1e-12
_HUGE = 300.0  # a logarithm that stands for any number


def finite_values(values: ArrayLike, what: str = "values") -> Floats:
    """``values`` as float64. Raises ValueError for what is not finite."""
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite; drop missing ones first")
    return array


def identical(values: ArrayLike) -> Any:
    """Whether the repeats along the last axis, two or more, are the same number.

    They did not vary independently then (they share their seed, or count something that cannot
    vary), so they say nothing about the spread, as one repeat says nothing.
    """
    array = finite_values(values)
    if array.shape[-1] < 2:
        return np.zeros(array.shape[:-1], np.bool_)[()]
    low, high = array.min(axis=-1), array.max(axis=-1)
    return high - low <= _ROUNDING * np.maximum(np.abs(low), np.abs(high))


def without_interval(*repeats: ArrayLike) -> str:
    """Why a mean of such repeats, or a ratio of two such means, has no interval; empty if it has.

    ``one repeat``, ``identical repeats``, ``not positive`` (of a ratio), in this order.
    """
    arrays = [finite_values(values).reshape(-1) for values in repeats]
    if any(array.size < 2 for array in arrays):
        return ONE_REPEAT
    if any(identical(array) for array in arrays):
        return "identical repeats"
    if len(arrays) > 1 and any((array <= 0).any() for array in arrays):
        return "not positive"
    return ""


def epoch_stats(values: ArrayLike) -> tuple[Any, Any]:
    """Mean and standard deviation (ddof 0) over all entries of ``values[..., epoch, rank]``.

    NaN for both if there are none. ddof 0 because the epochs and ranks of a run are all there
    are, as in the published study (cosmoflow-benchmark, notebooks/DataBenchmark.ipynb).
    """
    array = finite_values(values)
    if array.size == 0:
        return np.nan, np.nan
    flat = array.reshape(*array.shape[:-2], -1)
    # As mean and std of NumPy, which take several times as long over a few values.
    means = np.add.reduce(flat, axis=-1, keepdims=True) / flat.shape[-1]
    apart = flat - means
    variance = np.add.reduce(apart * apart, axis=-1) / flat.shape[-1]
    return means[..., 0], np.sqrt(variance)


def t_quantile(degrees: float, among: int = 1, level: float = CONFIDENCE) -> float:
    """Half width of an interval of this ``level`` in standard errors, by Student's t.

    Of the one chosen ``among`` several: so wide that all of them hold in 95 % (Bonferroni).
    """
    # The quantile function behind scipy.stats.t.ppf. scipy.stats takes most of a second to import,
    # and this a fifth, which a summary has no use for.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 1 - (1 - level) / 2 / among))


def t_chance(shift: float, error: float, degrees: float) -> float:
    """Two-sided p value of a shift with this standard error, by Student's t."""
    from scipy.special import stdtr

    if error == 0:
        return 0.0 if shift else 1.0
    return float(2 * stdtr(degrees, -abs(shift) / error))


def share_p(share: float, low: float | None, high: float | None, repeats: Any, of: float) -> float:
    """Two-sided p value of a share with this 95 % interval, over so many repeats, being ``of``; NaN
    without an interval, or if it is not positive."""
    if low is None or high is None or not min(share, low) > 0 or not high < math.inf:
        return math.nan
    degrees = max(repeats - 1, 1) if isinstance(repeats, int) else 1
    return t_chance(math.log(share / of), math.log(high / low) / 2 / t_quantile(degrees), degrees)


def mean_of(values: ArrayLike, level: float = CONFIDENCE) -> Estimate:
    """The mean of ``values[repeat]`` with its 95 % interval; none of one value or identical ones.

    Student's t, on the logarithm for positive data, centred on the logarithm of the arithmetic
    mean, so that the interval is positive and holds the mean that is reported. Another ``level``
    covers 95 % where the number of values depends on themselves (``sequential.level_of``).
    """
    array = finite_values(values).reshape(1, -1)
    return Estimate.of(float(array.mean()), *mean_bounds(array, level)[0].tolist())


def signed_mean_of(values: ArrayLike) -> Estimate:
    """The same by Student's t on the values themselves: of parts of a whole, which may be next to
    nothing, or negative."""
    array = finite_values(values).reshape(-1)
    mean = float(array.mean())
    if without_interval(array):
        return Estimate(mean)
    half = t_quantile(array.size - 1) * float(array.std(ddof=1)) / math.sqrt(array.size)
    return Estimate(mean, mean - half, mean + half)


def mean_bounds(values: ArrayLike, level: float = CONFIDENCE) -> Floats:
    """``[low, high]`` of ``mean_of`` for every row of ``values[row, repeat]``; NaN: none."""
    array = finite_values(values)
    rows, n = array.shape
    bounds = np.full((rows, 2), np.nan)
    if n < 2:
        return bounds
    spread = ~identical(array)
    bounds[spread] = _spread_bounds(array[spread], level)
    return bounds


def _spread_bounds(array: Floats, level: float) -> Floats:
    """``mean_bounds`` of rows whose repeats, two or more, are not all the same."""
    rows, n = array.shape
    bounds = np.empty((rows, 2))
    means = array.mean(axis=1)
    quantile, root = t_quantile(n - 1, level=level), np.sqrt(n)
    positive = (array > 0).all(axis=1)
    factor = np.exp(quantile * np.log(array[positive]).std(axis=1, ddof=1) / root)
    bounds[positive] = np.stack([means[positive] / factor, means[positive] * factor], axis=1)
    half = quantile * array[~positive].std(axis=1, ddof=1) / root
    bounds[~positive] = np.stack([means[~positive] - half, means[~positive] + half], axis=1)
    return bounds


def stated_mean(values: Stated) -> Estimate:
    """A mean with its 95 % interval from a stated standard deviation and count.

    Student's t, for a positive mean on the logarithm, so that a time or a rate is never below 0;
    mean -/+ t(n - 1) * std / sqrt(n) else.
    """
    if values.error is not None:
        return values.error.around(values.mean)
    half = t_quantile(values.count - 1) * values.std / math.sqrt(values.count)
    return Estimate(values.mean, values.mean - half, values.mean + half)


def stated_ratio_error(top: ArrayLike | Stated, bottom: ArrayLike | Stated) -> LogError | None:
    """Standard error of the logarithm of the ratio of two means, as Welch's t takes it.

    A side may be stated by its source. None where a side has one value or identical ones, or one
    that is not positive.
    """
    sides = [_log_error(side) for side in (top, bottom)]
    known = [side for side in sides if side is not None]
    return joined(known) if len(known) == len(sides) else None


def _log_error(side: ArrayLike | Stated) -> LogError | None:
    """Standard error of the logarithm of one mean; None where nothing says what it is."""
    if isinstance(side, Stated):
        return side.error
    values = finite_values(side).reshape(-1)
    if values.size < 2 or (values <= 0).any() or identical(values):
        return None
    return LogError(float(np.log(values).std(ddof=1) / np.sqrt(values.size)), values.size - 1)


def joined(sides: Sequence[LogError]) -> LogError:
    """The error of a difference of logarithms; degrees of freedom after Welch and Satterthwaite."""
    total = sum(side.error**2 for side in sides)
    if total == 0:
        return LogError(0.0, np.inf)
    # Divided before squaring: squares of tiny variances would vanish.
    shares = [(side.error**2 / total, side.degrees) for side in sides]
    degrees = 1 / sum(share**2 / freedom for share, freedom in shares)
    return LogError(float(np.sqrt(total)), degrees)


@dataclass(frozen=True)
class Ratio(Estimate):
    """A ratio: its 95 % interval, and the two-sided p value of another one, by Student's t on the
    logarithm with standard error ``se`` and ``df`` degrees of freedom.

    None where there is none; ``how`` then says why.
    """

    p: float | None = None
    se: float | None = None
    df: float | None = None
    how: str = ""
    rounded: float = 0.0  # the share by which printing with few digits may have moved it

    @property
    def chance(self) -> float:
        """The p value; 1 where nothing tests it."""
        return 1.0 if self.p is None else self.p

    @classmethod
    def by(
        cls,
        value: float,
        error: LogError,
        level: float = CONFIDENCE,
        null: float = 1.0,
        rounded: float = 0.0,
    ) -> Self:
        """With an error. ``level``: at which the interval covers 95 %; p is in terms of 95 %."""
        bounds = error.around(value, level).widened(rounded)
        apart = max(0.0, abs(math.log(value / null)) - rounded)
        p = min(1.0, error.p(apart) * SIGNIFICANT / (1 - level))
        return cls(
            value, bounds.low, bounds.high, p, error.error, error.degrees, "repeats", rounded
        )

    def excluding(self, cut: float, level: float) -> Estimate:
        """With the interval that excludes just what p puts below ``cut``."""
        assert self.se is not None and self.df is not None
        error = LogError(self.se, self.df)
        return error.around(self.value, 1 - cut * (1 - level) / SIGNIFICANT).widened(self.rounded)


def ratio_of_means(
    top: ArrayLike,
    bottom: ArrayLike,
    error: LogError | None,
    level: float = CONFIDENCE,
    *,
    per: float = 1.0,
    null: float = 1.0,
    rounded: float = 0.0,
) -> Ratio:
    """The ratio of the means of two samples over ``per``; the other words as ``Ratio.by`` has them.

    Without an ``error`` it says what keeps it from having one.
    """
    values, others = finite_values(top).reshape(-1), finite_values(bottom).reshape(-1)
    base = float(others.mean())
    value = float(values.mean()) / base / per if base else math.nan
    if error is None or not value > 0:
        return Ratio(value, how=without_interval(values, others) or "not positive")
    return Ratio.by(value, error, level, null, rounded)


def ratio_of(ratios: ArrayLike, null: float = 1.0) -> Ratio:
    """The geometric mean of positive ratios taken within runs, against ``null``.

    No interval of one run, or of the same number in all.
    """
    values = finite_values(ratios).reshape(-1)
    value, error = math.exp(float(np.log(values).mean())), _log_error(values)
    return (
        Ratio(value, how=without_interval(values))
        if error is None
        else Ratio.by(value, error, null=null)
    )


def olympic_mean(values: ArrayLike, unfinished: int = 0, dropped: int = 1) -> float:
    """MLPerf's result of several runs: the mean of ``values`` without the best and the worst.

    ``dropped`` is how many are left out at either end. As many runs that were not finished count as
    the worst. NaN if more were not finished, or if no run is left (MLPerf training rules,
    "Benchmark Results").
    """
    array = np.sort(finite_values(values).reshape(-1))
    if unfinished > dropped or array.size + unfinished < 2 * dropped + 1:
        return np.nan
    return float(array[dropped : array.size - dropped + unfinished].mean())


def usual_spread(samples: Iterable[Floats]) -> float | None:
    """The median over samples of the standard deviation of their logarithms, over the median of
    one of normal values; None without five samples of several positive values."""
    from scipy.special import chdtri

    known = [np.log(each) for each in samples if each.size > 1 and (each > 0).all()]
    spreads = [each.std(ddof=1) / math.sqrt(chdtri(each.size - 1, 0.5) / (each.size - 1))
               for each in known]  # fmt: skip
    return float(np.median(spreads)) if len(spreads) >= OUTLIER_FROM else None


def outliers(values: ArrayLike, usual: float | None = None) -> dict[int, str]:
    """Why values are outliers, in words, by their places; nothing is dropped.

    Those whose modified z-score exceeds 3.5: |x - median| / (1.4826 MAD) (Iglewicz and Hoaglin,
    1993, with their threshold), or over 1.2533 times the mean absolute deviation where more than
    half of the values are equal. Of 3 or 4 the one that lies 8 times as far from the others as what
    is ``usual`` elsewhere, and 4 times as far as they lie apart.
    """
    array = finite_values(values).reshape(-1)
    if array.size < OUTLIER_FROM:
        return _alone(array, usual) if array.size > 2 and usual and (array > 0).all() else {}
    centre = float(np.median(array))
    distance = np.abs(array - centre)
    spread = MAD_TO_STD * float(np.median(distance)) or MEAN_AD_TO_STD * float(distance.mean())
    return {
        int(place): f"{array[place]:.6g} lies {distance[place] / spread:.1f} robust standard "
        f"deviations {'above' if array[place] > centre else 'below'} the median {centre:.6g} of "
        f"{array.size}"
        for place in np.flatnonzero(distance > OUTLIER_SCORE * spread)
    }


def _alone(array: Floats, usual: float) -> dict[int, str]:
    logs = np.log(array)
    place = int(np.argmax(np.abs(logs - np.median(logs))))
    others = np.delete(logs, place)
    away = float(logs[place] - np.median(others))
    if abs(away) <= max(ALONE_SPREADS * usual, ALONE_RANGES * float(np.ptp(others))):
        return {}
    share = f"{abs(math.expm1(away)):.0%} {'above' if away > 0 else 'below'}"
    return {place: f"{array[place]:.6g} lies {share} the other {others.size}"}
