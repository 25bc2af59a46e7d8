"""A series of sessions: its levels, the steps between them, its spikes, and two kinds of noise.

A session is a few repeats. Their scatter says little about how sessions scatter among each other
(another day, other nodes), so both are estimated: the first within sessions, the second among them
with steps and spikes taken out. All of it is on natural logarithms.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.types import Floats

LEAST_LEVEL = 2  # sessions: a single one is a spike, whatever it is like
SPIKE = 4.0  # standard deviations of a session's mean
_PENALTY = 3.0
_TRIM = 0.2
_COARSE = 3.0  # times the noise
_SAME = 1e-9  # logarithms that differ by less are of one value
_MULTIPLE = 1e-4  # of their least difference, by which multiples of it may be off
# The lowest of the differences of successive sessions, and what their mean square is of a normal
# variance: 1 - 2 z f(z) / 0.6 with z = 0.842, the quantile at 0.8, and its density f.
_LOWER, _LOWER_SQUARE = 0.6, 0.2146
DAYS = 7
_WEEKS = 2  # that each weekday has to be there for
_LEVEL = 0.01


@dataclass(frozen=True)
class Series:
    """The sessions of a point in order of time, on logarithms, and what they show.

    ``centres[session]``: trimmed mean of the repeats; ``starts``: first session of each level;
    ``spikes[session]``: lies off both its neighbours, or, as the last one, off those before it.
    ``within``: standard deviation of a repeat within its session, NaN where no session has two;
    ``between``: of a session's centre about its level, with ``degrees`` of freedom, and at least
    ``floor``, what repeats alone make of it, and rounding. ``weekly[session]``: what its weekday
    adds, which is taken out of everything else; None where no weekly cycle is recognised.
    ``grid``: what values are rounded to, 0 where it does not show.
    """

    centres: Floats
    repeats: NDArray[np.int64]
    starts: tuple[int, ...]
    spikes: NDArray[np.bool_]
    within: float
    between: float
    degrees: int
    floor: float
    weekly: Floats | None = None
    grid: float = 0.0

    @property
    def left(self) -> Floats:
        """All sessions about the means of their levels, spikes too."""
        means: Floats = np.concatenate([np.full(b - a, mean) for a, b, mean in self.levels])
        return self.centres - means

    @property
    def levels(self) -> list[tuple[int, int, float]]:
        """Of each level its first session, the one behind its last, and its mean."""
        ends = (*self.starts[1:], len(self.centres))
        return [(a, b, self.mean(range(a, b))) for a, b in zip(self.starts, ends, strict=True)]

    def merged(self, bound: float) -> "Series":
        """The same with the levels before the newest one made one where neighbours differ by less
        than ``bound``: what they differ counts as noise among sessions then."""
        starts = list(self.starts)
        while len(starts) > 2:
            means = [self.mean(range(a, b)) for a, b in pairwise(starts)]
            steps = [abs(b - a) for a, b in pairwise(means)]
            least = min(range(len(steps)), key=steps.__getitem__)
            if steps[least] >= bound:
                break
            del starts[least + 1]
        if len(starts) == len(self.starts):
            return self
        kept = np.flatnonzero(~self.spikes)
        between, degrees = _scatter(self.centres, kept, starts, self._phases)
        between = max(between, self.between)
        return replace(self, starts=tuple(starts), between=between, degrees=degrees)

    def coarse(self, sessions: Sequence[int], bound: float) -> tuple[int, ...]:
        """First sessions of the levels of some, where only large steps are cut, of ``bound`` or
        more: what neighbouring sessions have in common stays in them."""
        chosen = np.asarray(sessions, np.int64)
        rough = max(_rough(self.centres), self.floor)
        cut = chosen[segments(self.centres[chosen], _COARSE * rough)]
        starts = (0, *(int(start) for start in cut[1:]), int(chosen[-1]) + 1)
        return replace(self, starts=starts).merged(bound).starts[:-1]

    @property
    def _phases(self) -> int:
        """Weekdays that were told apart, less one."""
        return 0 if self.weekly is None else np.unique(self.weekly).size - 1

    def mean(self, sessions: Sequence[int]) -> float:
        """Mean of some sessions, without those that are spikes unless all are."""
        chosen = np.array(self.steady(sessions) or sessions)
        return float(self.centres[chosen].mean())

    def steady(self, sessions: Sequence[int]) -> list[int]:
        """Those of some sessions that are no spikes."""
        return [place for place in sessions if not self.spikes[place]]


def _centres(logs: Floats) -> Floats:
    """Mean of each row of repeats without the lowest and highest fifth of them; of three or four,
    without the lowest and the highest, so that no single hiccup moves it."""
    n = logs.shape[1]
    cut = max(1, int(_TRIM * n)) if n > 2 else 0
    trimmed: Floats = np.sort(logs, axis=1)[:, cut : n - cut].mean(axis=1)
    return trimmed


def read_series(groups: Sequence[Floats], weekdays: Sequence[int] | None = None) -> Series:
    """What sessions show; ``groups`` holds the logarithms of the repeats of each, one or more.

    ``weekdays``: a number for each session; None: one a day.
    """
    repeats = np.array([group.size for group in groups], np.int64)
    centres, variances = np.empty(repeats.size), np.full(repeats.size, np.nan)
    for size in np.unique(repeats):
        places = np.flatnonzero(repeats == size)
        equal = np.stack([groups[place] for place in places])
        centres[places] = _centres(equal)
        if size > 1:
            variances[places] = equal.var(axis=1, ddof=1)
    days = [place % DAYS for place in range(centres.size)] if weekdays is None else weekdays
    weekly = weekly_effect(centres, days)
    if weekly is not None:
        centres = centres - weekly
    within = _within(variances, repeats)
    floor = 0.0 if math.isnan(within) else within / math.sqrt(float(np.median(repeats)))
    resolution, rounded = _resolution(np.concatenate(groups))
    floor = max(floor, resolution / math.sqrt(12))  # standard deviation of what rounding adds
    rough = max(_rough(centres), floor)
    spikes = find_spikes(centres, rough)
    kept = np.flatnonzero(~spikes)
    starts = tuple(int(kept[start]) for start in segments(centres[kept], rough))
    starts = (0, *starts[1:])
    grid = resolution if rounded else 0.0
    series = Series(centres, repeats, starts, spikes, within, math.nan, 0, floor, weekly, grid)
    between, degrees = _scatter(centres, kept, starts, series._phases)
    return replace(series, between=max(between, floor), degrees=degrees)


def _about_levels(centres: Floats, kept: NDArray[np.int64], starts: Sequence[int]) -> Floats:
    """The ``kept`` sessions less the means of their levels."""
    left = centres[kept].copy()
    for a, b in zip(starts, (*starts[1:], centres.size), strict=True):
        of_level = (kept >= a) & (kept < b)
        if of_level.any():
            left[of_level] -= left[of_level].mean()
    return left


def _scatter(
    centres: Floats, kept: NDArray[np.int64], starts: Sequence[int], taken: int
) -> tuple[float, int]:
    """Standard deviation of the ``kept`` sessions about their levels and its degrees of freedom, of
    which ``taken`` are of weekdays."""
    left = _about_levels(centres, kept, starts)
    degrees = kept.size - len(starts) - taken
    return (math.sqrt(float(left @ left) / degrees) if degrees > 0 else math.nan), degrees


def _within(variances: Floats, repeats: NDArray[np.int64]) -> float:
    """Standard deviation of a repeat within its session: the median over the sessions, so that a
    session with a hiccup does not count for more than any other."""
    several = repeats > 1
    if not several.any():
        return math.nan
    # The median of a chi-square with k degrees of freedom is about k (1 - 2 / (9 k))^3
    # (Wilson and Hilferty, Proc. Natl. Acad. Sci. 17, 1931, 684).
    k = float(np.median(repeats[several] - 1))
    return math.sqrt(float(np.median(variances[several])) / (1 - 2 / (9 * k)) ** 3)


def _resolution(logs: Floats) -> tuple[float, bool]:
    """The least difference of any two values where most occur more than once, else 0; and whether
    all values are multiples of it, as rounded ones are.

    Values that agree would otherwise have no noise, and no step would be seen in them.
    """
    different = np.unique(logs)
    gaps = np.diff(different)
    gaps = gaps[gaps > _SAME]
    if not gaps.size or gaps.size + 1 > logs.size / 2:
        return 0.0, False
    values = np.exp(different - different[0])
    steps = np.diff(values)
    times = values / steps[steps > _SAME].min()
    return float(gaps.min()), bool(np.abs(times - np.rint(times)).max() < _MULTIPLE)


def _rough(centres: Floats) -> float:
    """Standard deviation of a session's centre from differences of successive ones, of which the
    largest 40 % are left aside: a step or a spike hardly touches it."""
    if centres.size < 2:
        return 0.0
    squares = np.sort(np.diff(centres) ** 2)
    lower = squares[: math.ceil(_LOWER * squares.size)]
    return math.sqrt(float(lower.mean()) / _LOWER_SQUARE / 2)


def find_spikes(centres: Floats, noise: float) -> NDArray[np.bool_]:
    """Single sessions that lie off their neighbours on both sides, in the same direction.

    Neighbours are the two sessions on a side, by the nearer of them. The first and the last session
    have one side: the last one is a spike until another session confirms what it shows.
    """
    n = centres.size
    if n < 3 or noise <= 0:
        return np.zeros(n, np.bool_)
    off = np.full((4, n), np.nan)  # from the sessions one and two places before and after
    for row, distance in enumerate((1, 2)):
        off[row, distance:] = centres[distance:] - centres[:-distance]
        off[row + 2, :-distance] = centres[:-distance] - centres[distance:]
    above, below = (np.where(np.isnan(off), np.inf, sign * off).min(axis=0) for sign in (1, -1))
    spikes: NDArray[np.bool_] = np.maximum(above, below) > SPIKE * noise
    return spikes


def segments(values: Floats, noise: float) -> list[int]:
    """Starts of the levels of a series: the piecewise constant fit that is best exactly.

    Least squares with a penalty of 3 noise^2 log n for each level (the modified BIC of Zhang and
    Siegmund, Biometrics 63, 2007, 22-32, to first order), by optimal partitioning (Jackson et al.,
    IEEE Signal Processing Letters 12, 2005, 105-108). Levels have two sessions or more.
    """
    n = values.size
    if n < 2 * LEAST_LEVEL or noise <= 0:
        return [0]
    shifted = values - values.mean()
    sums = np.concatenate([[0.0], np.cumsum(shifted)])
    squares = np.concatenate([[0.0], np.cumsum(shifted**2)])
    penalty = _PENALTY * noise**2 * math.log(n)
    best = np.full(n + 1, np.inf)
    best[0] = -penalty
    last = np.zeros(n + 1, np.int64)
    for end in range(LEAST_LEVEL, n + 1):
        begin = np.arange(end - LEAST_LEVEL + 1)
        fit = squares[end] - squares[begin] - (sums[end] - sums[begin]) ** 2 / (end - begin)
        cost = best[begin] + fit + penalty
        last[end] = int(cost.argmin())
        best[end] = cost[last[end]]
    starts = [n]
    while starts[-1] > 0:
        starts.append(int(last[starts[-1]]))
    return starts[:0:-1]


def weekly_effect(centres: Floats, weekdays: Sequence[int]) -> Floats | None:
    """How much the weekday of each session adds to it; None where no cycle is recognised.

    ``centres[session]`` on logarithms. By analysis of variance (F at 1 %) of what lies off a
    running median of a week, which steps and slow drifts hardly touch. None with less than two
    weeks. Without it weekends would be steps, or noise.
    """
    days, places = np.unique(np.asarray(weekdays), return_inverse=True)
    counts = np.bincount(places)
    n, k = centres.size, days.size
    if k < 2 or counts.min() < _WEEKS or n < _WEEKS * DAYS:
        return None
    off = centres - _running_median(centres)
    means = np.bincount(places, off) / counts
    between = float((counts * (means - off.mean()) ** 2).sum()) / (k - 1)
    within = float(((off - means[places]) ** 2).sum()) / (n - k)
    if within <= 0:
        return None
    # Behind scipy.stats.f.sf; scipy.stats takes most of a second to import.
    from scipy.special import fdtrc

    if fdtrc(k - 1, n - k, between / within) >= _LEVEL:
        return None
    return np.asarray((means - means.mean())[places], np.float64)


def _running_median(values: Floats) -> Floats:
    """The median of the week around each value; at the ends that of the first and last week."""
    windows = np.lib.stride_tricks.sliding_window_view(values, DAYS)
    medians = np.median(windows, axis=1)
    half = DAYS // 2
    return np.concatenate([np.full(half, medians[0]), medians, np.full(half, medians[-1])])
