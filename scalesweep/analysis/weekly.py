"""A weekly cycle of sessions: recognised, so that weekends are neither steps nor noise."""

from collections.abc import Sequence

import numpy as np

from scalesweep.analysis.types import Floats

DAYS = 7
_WEEKS = 2  # that each weekday has to be there for
_LEVEL = 0.01


def weekly_effect(centres: Floats, weekdays: Sequence[int]) -> Floats | None:
    """How much the weekday of each session adds to it; None where no cycle is recognised.

    ``centres[session]`` on logarithms. By analysis of variance (F at 1 %) of what lies off a
    running median of a week, which steps and slow drifts hardly touch. None with less than two
    weeks.
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
