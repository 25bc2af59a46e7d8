"""How other tools would judge a series of sessions, each written from its description.

Each takes the repeats of every session, oldest first, and says whether the newest state is a
regression (+1), an improvement (-1) or neither (0); lower values are better.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.types import Floats

NEW = 2  # sessions that the newest state is
WINDOW = 12
PERMUTATIONS = 199


def t_test(groups: Sequence[Floats]) -> int:
    """Welch's t-test of all repeats of the last two sessions against those of the 12 before, at
    5 %: what a comparison of two builds does that takes repeats as independent."""
    from scipy.stats import ttest_ind

    new = np.concatenate(groups[-NEW:])
    old = np.concatenate(groups[-NEW - WINDOW : -NEW])
    p = ttest_ind(new, old, equal_var=False).pvalue
    return int(np.sign(new.mean() - old.mean())) if p < 0.05 else 0


def z_score(groups: Sequence[Floats]) -> int:
    """Conbench: the mean of a session against mean and standard deviation of up to 100 before it;
    5 deviations are a change. Of the last two sessions, the one that is farther off."""
    means = np.array([group.mean() for group in groups])
    worst = 0.0
    for place in range(len(means) - NEW, len(means)):
        past = means[max(place - 100, 0) : place]
        score = (means[place] - past.mean()) / past.std(ddof=1)
        worst = score if abs(score) > abs(worst) else worst
    return int(np.sign(worst)) if abs(worst) > 5 else 0


def asv_steps(groups: Sequence[Floats]) -> int:
    """asv (asv/step_detect.py): a piecewise constant fit by absolute errors to the medians, exact
    by dynamic programming; of all numbers of steps the one with the least
    4 m ln(n) / n + ln(sum of errors). A regression is a last step above 5 % that is larger than
    the mean errors of both levels; single results are ignored. (asv's correction for
    autocorrelation is left out.)"""
    values = np.array([np.median(group) for group in groups])
    n, most = values.size, 6
    cost = np.full((n + 1, n + 1), np.inf)
    for begin in range(n):
        for end in range(begin + 1, n + 1):
            part = values[begin:end]
            cost[begin, end] = np.abs(part - np.median(part)).sum()
    best = cost[0][None].repeat(most, axis=0)
    came = np.zeros((most, n + 1), np.int64)
    for steps in range(1, most):
        through = best[steps - 1][:, None] + cost
        came[steps], best[steps] = through.argmin(axis=0), through.min(axis=0)
    scores = 4 * np.arange(most) * np.log(n) / n + np.log(np.maximum(best[:, n], 1e-300))
    steps, ends = int(scores.argmin()), [n]
    for count in range(steps, 0, -1):
        ends.append(int(came[count, ends[-1]]))
    starts = [0, *sorted(set(ends[1:]))]
    if len(starts) < 2 or n - starts[-1] < 2:
        return 0
    old, new = values[starts[-2] : starts[-1]], values[starts[-1] :]
    levels = [float(np.median(part)) for part in (old, new)]
    errors = [float(np.abs(p - m).mean()) for p, m in zip((old, new), levels, strict=True)]
    change = levels[1] - levels[0]
    if abs(change) <= max(*errors, 0.05 * levels[0]):
        return 0
    return int(np.sign(change))


def e_divisive(groups: Sequence[Floats]) -> int:
    """E-divisive (Matteson and James, J. Am. Stat. Assoc. 109, 2014, 334-345) of the means, as
    Hunter began: the best cut by energy distance, kept if fewer than 5 % of 199 permutations of
    its part do as well, and on in both parts. The last level against the one before, if it began
    within the last three sessions."""
    values = np.array([group.mean() for group in groups])
    rng = np.random.default_rng(0)
    cuts: list[int] = []
    _divide(values, 0, rng, cuts)
    if not cuts or len(values) - max(cuts) > NEW + 1:
        return 0
    cuts.sort()
    old = values[cuts[-2] if len(cuts) > 1 else 0 : cuts[-1]]
    return int(np.sign(values[cuts[-1] :].mean() - old.mean()))


def _divide(values: Floats, offset: int, rng: np.random.Generator, cuts: list[int]) -> None:
    if values.size < 4:
        return
    distances = np.abs(values[:, None] - values[None, :])
    best, cut = _energy(distances)
    better = 0
    for _ in range(PERMUTATIONS):
        order = rng.permutation(values.size)
        better += _energy(distances[np.ix_(order, order)])[0] >= best
        if better >= 0.05 * (PERMUTATIONS + 1):
            return
    cuts.append(offset + cut)
    _divide(values[:cut], offset, rng, cuts)
    _divide(values[cut:], offset + cut, rng, cuts)


def _energy(distances: NDArray[np.float64]) -> tuple[float, int]:
    """The largest energy statistic over all cuts that leave two sessions on a side, and its cut."""
    n = len(distances)
    sums = distances.cumsum(0).cumsum(1)
    cut = np.arange(2, n - 1)
    left = sums[cut - 1, cut - 1]
    cross = sums[cut - 1, n - 1] - left
    right = sums[n - 1, n - 1] - left - 2 * cross
    m, k = cut, n - cut
    energy = 2 * cross / (m * k) - left / (m * (m - 1)) - right / (k * (k - 1))
    scaled = energy * m * k / (m + k)
    at = int(scaled.argmax())
    return float(scaled[at]), int(cut[at])


RIVALS = {
    "t-test": t_test,
    "z-score (Conbench)": z_score,
    "step detection (asv)": asv_steps,
    "E-divisive": e_divisive,
}
