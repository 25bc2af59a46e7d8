"""Whether machines differed between points, or changed during runs: tests on canaries.

Rates are compared on a logarithmic scale: differences are shares.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Chance of a warning where nothing differs, for each test of the two rates.
ALPHA = 0.005
# Differences below this are no reason to doubt a comparison.
LEAST_CHANGE = 0.02
LEAST_RUNS = 4


@dataclass(frozen=True)
class Apart:
    """How much faster machines were on one of two sides: a share with its 95 % interval.

    ``clear``: beyond chance (``ALPHA``) and notable.
    """

    change: float
    low: float
    high: float
    clear: bool


def _apart(change: float, error: float, degrees: int) -> Apart:
    """A difference of logarithms with its standard error, by Student's t."""
    from scipy.stats import t

    far = abs(math.expm1(change)) >= LEAST_CHANGE
    clear = far and 2 * float(t.sf(abs(change) / max(error, 1e-300), degrees)) <= ALPHA
    half = float(t.ppf(0.975, degrees)) * error
    middle, low, high = (math.expm1(value) for value in (change, change - half, change + half))
    return Apart(middle, low, high, clear)


def during(before: Sequence[float], after: Sequence[float]) -> Apart | None:
    """The change of a rate from before to after, over runs; None of fewer than ``LEAST_RUNS``."""
    logs = np.log(after) - np.log(before)
    if len(logs) < LEAST_RUNS:
        return None
    error = float(logs.std(ddof=1)) / math.sqrt(len(logs))
    return _apart(float(logs.mean()), error, len(logs) - 1)


def between(groups: Sequence[Sequence[float]]) -> tuple[int, int, float, float] | None:
    """Slowest and fastest of groups (points), each the rates of its runs; by which share the
    fastest is above, and p.

    One-way analysis of variance of the logarithms at ``ALPHA``; groups of one run are left out.
    None if no difference is clear and notable.
    """
    known = [(place, np.log(group)) for place, group in enumerate(groups) if len(group) > 1]
    if len(known) < 2 or sum(len(logs) for _, logs in known) < LEAST_RUNS + len(known):
        return None
    means = [float(logs.mean()) for _, logs in known]
    low, high = int(np.argmin(means)), int(np.argmax(means))
    more = math.expm1(means[high] - means[low])
    if more < LEAST_CHANGE:
        return None
    from scipy.stats import f_oneway

    p = float(f_oneway(*(logs for _, logs in known)).pvalue)
    return (known[low][0], known[high][0], more, p) if p <= ALPHA else None


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
    error = math.sqrt(within * sum(1 / len(group) for group in logs)) / len(base)
    return _apart(float((means[1] - means[0]).mean()), error, degrees)
