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

from scalesweep.analysis.stats import MAD_TO_STD
from scalesweep.analysis.types import Floats

LEAST_LEVEL = 2  # sessions: a single one is a spike, whatever it is like
SPIKE = 4.0  # standard deviations of a session's mean
_PENALTY = 3.0
_TRIM = 0.2
_MOST_RHO, _RHO_FROM = 0.7, 10


@dataclass(frozen=True)
class Series:
    """The sessions of a point in order of time, on logarithms, and what they show.

    ``centres[session]``: trimmed mean of the repeats; ``starts``: first session of each level;
    ``spikes[session]``: lies off both its neighbours, or, as the last one, off those before it.
    ``within``: standard deviation of a repeat within its session, NaN where no session has two;
    ``between``: of a session's centre about its level, with ``degrees`` of freedom; ``rho``: how
    much of that a session passes on to the next (lag-1 autocorrelation, 0 or more).
    """

    centres: Floats
    repeats: NDArray[np.int64]
    starts: tuple[int, ...]
    spikes: NDArray[np.bool_]
    within: float
    between: float
    degrees: int
    rho: float

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
        between, degrees, rho = _scatter(self.centres, np.flatnonzero(~self.spikes), starts)
        within = 0.0 if math.isnan(self.within) else self.within
        floor = within / math.sqrt(float(np.median(self.repeats)))
        between = max(between, floor)
        return replace(self, starts=tuple(starts), between=between, degrees=degrees, rho=rho)

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


def read_series(groups: Sequence[Floats]) -> Series:
    """What sessions show; ``groups`` holds the logarithms of the repeats of each, one or more."""
    repeats = np.array([group.size for group in groups], np.int64)
    centres, variances = np.empty(repeats.size), np.full(repeats.size, np.nan)
    for size in np.unique(repeats):
        places = np.flatnonzero(repeats == size)
        equal = np.stack([groups[place] for place in places])
        centres[places] = _centres(equal)
        if size > 1:
            variances[places] = equal.var(axis=1, ddof=1)
    within = _within(variances, repeats)
    floor = 0.0 if math.isnan(within) else within / math.sqrt(float(np.median(repeats)))
    rough = max(_rough(centres), floor)
    spikes = find_spikes(centres, rough)
    kept = np.flatnonzero(~spikes)
    starts = tuple(int(kept[start]) for start in segments(centres[kept], rough))
    starts = (0, *starts[1:])
    between, degrees, rho = _scatter(centres, kept, starts)
    return Series(centres, repeats, starts, spikes, within, max(between, floor), degrees, rho)


def _scatter(
    centres: Floats, kept: NDArray[np.int64], starts: Sequence[int]
) -> tuple[float, int, float]:
    """Standard deviation of the ``kept`` sessions about their levels, its degrees of freedom, and
    how much a session passes on to the next."""
    left = centres[kept].copy()
    for a, b in zip(starts, (*starts[1:], centres.size), strict=True):
        of_level = (kept >= a) & (kept < b)
        left[of_level] -= left[of_level].mean()
    degrees = kept.size - len(starts)
    between = math.sqrt(float(left @ left) / degrees) if degrees > 0 else math.nan
    rho = 0.0
    if kept.size >= _RHO_FROM and between > 0:
        rho = min(max(float(left[1:] @ left[:-1] / (left @ left)), 0.0), _MOST_RHO)
    return between, degrees, rho


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


def _rough(centres: Floats) -> float:
    """Standard deviation of a session's centre from differences of successive ones, which a step
    or a spike hardly touches: their median absolute deviation from 0."""
    if centres.size < 2:
        return 0.0
    return float(MAD_TO_STD * np.median(np.abs(np.diff(centres))) / math.sqrt(2))


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
