"""What else than steps a history shows: a steady change, moves as large before, noise that grows.

Each keeps the newest sessions from being taken for a step, or from saying more than they can.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.levels import Series
from scalesweep.analysis.stats import CONFIDENCE, t_quantile
from scalesweep.analysis.types import Floats

# Of a steady change.
SPAN = 100  # sessions at most, the newest ones
FEWEST = 60
# Newest sessions that a step is told from a line by, and in which an earlier move counts.
RECENT = 30
_PLACE_COST = 2.0  # times log n: what the place of a step costs (Zhang and Siegmund 2007)
_BLOCKS = 10
# A line explains at least this much of the means of blocks. Two equal steps reach it in a fifth of
# series, three in most; a random walk on 3 % of evenings (bench/history.py).
_EXPLAINED = 0.95
# Of moves before.
_BASE, _LEAST_BASE = 12, 6  # sessions that each window is compared with
_WINDOW = 8  # sessions of a window at most
_SHARE = 2 / 3  # of a change: an earlier move of this size is as large
# Of noise that has grown.
_WINDOWS = (4, 6, 8, 12, 16)  # newest sessions in which it may have grown
_LEAST_BEFORE = 6  # sessions before them that show what it was
_LASTING = 6  # sessions of a level that is no scatter
_FAR = 11.0  # standard deviations: what is off by so many is an outlier, not noise that has grown
_RARE = 0.003  # p value of the F test below which it counts as grown


@dataclass(frozen=True)
class Trend:
    """A steady change over the last ``sessions`` (their places, without spikes): ``change`` in all,
    on logarithms, with its 95 % interval."""

    sessions: tuple[int, ...]
    change: float
    low: float
    high: float


def steady_change(centres: Floats, sessions: list[int]) -> Trend | None:
    """The trend of the newest sessions among some, None where a line does not describe them.

    A straight line through the means of ten blocks of neighbouring sessions: noise that sessions
    pass on to the next, and weekly cycles, cancel within a block; a step or a pause bends the row
    of means.
    """
    if len(sessions) < FEWEST:
        return None
    newest = sessions[-SPAN:]
    blocks = np.array([part.mean() for part in np.array_split(centres[newest], _BLOCKS)])
    place = np.arange(_BLOCKS) - (_BLOCKS - 1) / 2
    off = blocks - blocks.mean()
    slope = float(place @ off) / float(place @ place)
    total = float(off @ off)
    left = off - slope * place
    if not total > 0 or 1 - float(left @ left) / total < _EXPLAINED:
        return None
    error = float(np.sqrt(left @ left / (_BLOCKS - 2) / (place @ place)))
    half = t_quantile(_BLOCKS - 2, level=CONFIDENCE) * error
    low, high = sorted(((slope - half) * _BLOCKS, (slope + half) * _BLOCKS))
    return Trend(tuple(newest), slope * _BLOCKS, low, high)


def slopes(centres: Floats, sessions: list[int], first: int) -> bool:
    """Whether a line describes the newest of some sessions as well as a step at ``first`` does:
    by a modified BIC."""
    since = sum(place >= first for place in sessions)
    newest = np.array(sessions[-max(RECENT, 2 * since) :])
    values = centres[newest] - centres[newest].mean()
    line = newest - newest.mean()
    step = (newest >= first) - (newest >= first).mean()
    total = float(values @ values)
    by_line, by_step = (total - float(x @ values) ** 2 / float(x @ x) for x in (line, step))
    cost = float(newest.size ** (_PLACE_COST / newest.size))
    return by_line <= by_step * cost


def moved_before(centres: Floats, change: float, length: int) -> bool:
    """Whether the mean of ``length`` successive sessions has lain off those before it by as much.

    ``centres``: the sessions before the newest level, in their order; ``change``: of the newest
    level, on logarithms. A machine that wanders, or has a cycle, does again what it did before.
    """
    newest = centres[-(RECENT + _BASE) :]
    length = min(length, _WINDOW)
    sums = np.concatenate([[0.0], np.cumsum(newest)])
    begin = np.arange(_LEAST_BASE, newest.size - length + 1)
    if not begin.size:
        return False
    base = np.minimum(begin, _BASE)
    moves = (sums[begin + length] - sums[begin]) / length - (
        sums[begin] - sums[begin - base]
    ) / base
    return bool(np.abs(moves).max() >= _SHARE * abs(change))


@dataclass(frozen=True)
class Grown:
    """Scatter of the newest sessions: a standard deviation with ``degrees`` of freedom."""

    scale: float
    degrees: int

    def chance(self, shift: float, old: int, new: int) -> float:
        """p value of a difference of the means of so many sessions, two-sided: Student's t."""
        from scipy.special import stdtr

        error = self.scale * math.sqrt(1 / old + 1 / new)
        return float(2 * stdtr(self.degrees, -abs(shift) / error))


def grown_noise(series: Series, first: int, old: Sequence[int], floor: float) -> Grown | None:
    """The scatter of the newest sessions that is most clearly more than what came before, None
    where none is.

    ``first``: of the new level; ``old``: sessions that it is compared with. What is off the mean of
    a level that lasted, or off that of all since the last one, is scatter, outliers too, but for
    one, and for those as the series had them before.
    """
    from scipy.special import fdtrc

    centres, left, usual = series.centres, series.left, ~series.spikes
    means = np.full(centres.size, series.mean(old))
    since = first
    for begin, end, mean in series.levels:
        if end - begin >= _LASTING:
            means[begin:end] = mean
            since = end if end <= first else first
    means[since:] = series.mean(range(since, centres.size))
    off = (centres - means) ** 2
    candidates: list[tuple[float, Grown]] = []
    for size in _WINDOWS:
        begin = centres.size - size
        if begin < _LEAST_BEFORE:
            break
        before = left[:begin]
        calm = before[usual[:begin]]
        was = max(float(calm @ calm) / max(calm.size - 1, 1), floor**2)
        spikes = off[begin:][series.spikes[begin:]]
        if usual[:begin].all():
            spikes = spikes[spikes > _FAR**2 * was]
        degrees = size - 1 - min(spikes.size, 1)
        scatter = float(off[begin:].sum() - spikes.max(initial=0.0)) / degrees
        sums = np.concatenate([[0.0], np.cumsum(before**2)])
        most = (sums[size:] - sums[:-size]).max(initial=0.0) / degrees
        chance = float(fdtrc(degrees, calm.size - 1, scatter / was))
        if scatter > most and chance < _RARE:
            candidates.append((chance, Grown(math.sqrt(scatter), degrees)))
    return min(candidates, key=lambda candidate: candidate[0])[1] if candidates else None
