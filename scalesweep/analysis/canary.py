"""Whether machines differed between points, or changed during runs: tests on canaries.

Rates are compared on a logarithmic scale: differences are shares.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.stats import t_chance, t_quantile

# Chance of a warning where nothing differs, for each test of the two rates.
ALPHA = 0.005
# Differences below this are no reason to doubt a comparison.
LEAST_CHANGE = 0.02
LEAST_RUNS = 4


@dataclass(frozen=True)
class Change:
    """A change as a share, with the bounds of its 95 % interval."""

    change: float
    low: float
    high: float


@dataclass(frozen=True)
class Spread:
    """The slowest and the fastest of groups, and by how much the fastest is above: a share."""

    slowest: int
    fastest: int
    more: float
    chance: float


def during(before: Sequence[float], after: Sequence[float]) -> Change | None:
    """The change of a rate from before to after, over runs; None if none is clear and notable.

    Student's t on the runs' differences of logarithms, two-sided at ``ALPHA``.
    """
    logs = np.log(after) - np.log(before)
    if len(logs) < LEAST_RUNS:
        return None
    mean, error = float(logs.mean()), float(logs.std(ddof=1)) / math.sqrt(len(logs))
    chance = t_chance(mean, error, len(logs) - 1)
    if chance > ALPHA or abs(math.expm1(mean)) < LEAST_CHANGE:
        return None
    half = t_quantile(len(logs) - 1) * error
    return Change(*(math.expm1(value) for value in (mean, mean - half, mean + half)))


def between(groups: Sequence[Sequence[float]]) -> Spread | None:
    """Whether a rate differs between groups (points), each the rates of its runs.

    One-way analysis of variance of the logarithms at ``ALPHA``; groups of one run only add to the
    others' freedom, and are left out. None if no difference is clear and notable.
    """
    known = [(place, np.log(group)) for place, group in enumerate(groups) if len(group) > 1]
    if len(known) < 2 or sum(len(logs) for _, logs in known) < LEAST_RUNS + len(known):
        return None
    means = [float(logs.mean()) for _, logs in known]
    low, high = int(np.argmin(means)), int(np.argmax(means))
    more = math.expm1(means[high] - means[low])
    if more < LEAST_CHANGE or all(float(np.ptp(logs)) == 0 for _, logs in known):
        return None
    from scipy.stats import f_oneway  # noqa: TID251

    chance = float(f_oneway(*(logs for _, logs in known)).pvalue)
    if not chance <= ALPHA:
        return None
    return Spread(known[low][0], known[high][0], more, chance)


@dataclass(frozen=True)
class Apart:
    """How much faster machines were on one of two sides: a share with its 95 % interval.

    ``clear``: beyond chance (``ALPHA``) and notable.
    """

    change: float
    low: float
    high: float
    clear: bool


def apart(base: Sequence[Sequence[float]], new: Sequence[Sequence[float]]) -> Apart | None:
    """The change of a rate from base to new, of points (groups) that both sides have.

    The mean of the points' differences of mean logarithms; the variance within the points of a side
    is taken as one, with Student's t. None where fewer than ``LEAST_RUNS`` - 1 degrees of freedom
    are left to know it.
    """
    sides = [[np.log(group) for group in side] for side in (base, new)]
    logs = [group for side in sides for group in side]
    degrees = sum(len(group) - 1 for group in logs)
    if not logs or degrees < LEAST_RUNS - 1 or any(len(group) == 0 for group in logs):
        return None
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in logs) / degrees
    means = [np.array([group.mean() for group in side]) for side in sides]
    change = float((means[1] - means[0]).mean())
    error = math.sqrt(within * sum(1 / len(group) for group in logs)) / len(base)
    half = t_quantile(degrees) * error
    chance = t_chance(change, error, degrees)
    clear = chance <= ALPHA and abs(math.expm1(change)) >= LEAST_CHANGE
    middle, low, high = (math.expm1(value) for value in (change, change - half, change + half))
    return Apart(middle, low, high, clear)
