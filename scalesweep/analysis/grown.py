"""Noise among sessions that has grown of late: then few new sessions say little."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.levels import Series

_WINDOWS = (4, 6, 8, 12, 16)  # newest sessions in which it may have grown
_LEAST_BEFORE = 6  # sessions before them that show what it was
_LASTING = 6  # sessions of a level that is no scatter
_FAR = 11.0  # standard deviations: what is off by so many is an outlier, not noise that has grown
_RARE = 0.003  # p value of the F test below which it counts as grown


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
