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


def during(before: Sequence[float], after: Sequence[float]) -> Apart | None:
    """The change of a rate from before to after, over runs, by Student's t on logarithms; None of
    fewer than ``LEAST_RUNS``."""
    from scipy.stats import t

    logs = np.log(after) - np.log(before)
    if len(logs) < LEAST_RUNS:
        return None
    change, error = float(logs.mean()), float(logs.std(ddof=1)) / math.sqrt(len(logs))
    degrees = len(logs) - 1
    far = abs(math.expm1(change)) >= LEAST_CHANGE
    clear = far and 2 * float(t.sf(abs(change) / max(error, 1e-300), degrees)) <= ALPHA
    half = float(t.ppf(0.975, degrees)) * error
    ends = (math.expm1(change - half), math.expm1(change + half))
    return Apart(math.expm1(change), *ends, clear)


def between(groups: Sequence[Sequence[float]]) -> tuple[int, int, float] | None:
    """Slowest and fastest of groups (points), each the rates of its runs, and by which share the
    fastest is above.

    One-way analysis of variance of the logarithms at ``ALPHA``; groups of one run are left out.
    None if no difference is clear and notable.
    """
    from scipy.stats import f_oneway

    known = {place: np.log(group) for place, group in enumerate(groups) if len(group) > 1}
    if len(known) < 2 or sum(map(len, known.values())) < LEAST_RUNS + len(known):
        return None
    means = {place: float(logs.mean()) for place, logs in known.items()}
    low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    more = math.expm1(means[high] - means[low])
    if more < LEAST_CHANGE or float(f_oneway(*known.values()).pvalue) > ALPHA:
        return None
    return low, high, more
