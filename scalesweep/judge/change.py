"""A change: what was compared, the verdict on it, and why."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from scalesweep.analysis.types import Floats

REGRESSION, IMPROVEMENT, NO_CHANGE = "regression", "improvement", "no change"
INCONCLUSIVE, CONFOUNDED, TOO_EARLY = "inconclusive", "confounded", "cannot judge yet"
VERDICTS = (REGRESSION, CONFOUNDED, IMPROVEMENT, INCONCLUSIVE, NO_CHANGE, TOO_EARLY)
CHANGED = (REGRESSION, IMPROVEMENT)
LEVEL = 0.05
_TINY = 1e-18  # of variances of logarithms: below it there is none
LEAST_PAIRS = 3
MOST_NEEDED = 50  # more sessions or pairs are not asked for


@dataclass(frozen=True)
class Change:
    """The ratio new / base with its 95 % interval, and the verdict on it.

    ``se``, ``df``: standard error of the ratio's logarithm, and its degrees of freedom.
    ``p``: that there is no change; ``adjusted``: after the correction for all that is judged
    together. ``base``, ``new``: places of the sessions or pairs of both sides; ``needed``: how many
    more are likely to settle what is inconclusive, None where that is not known or too many.
    Numbers are NaN where missing.
    """

    verdict: str
    reason: str = ""
    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan
    se: float = math.nan
    df: float = math.nan
    p: float = math.nan
    adjusted: float = math.nan
    base: Sequence[int] = ()
    new: Sequence[int] = ()
    needed: int | None = None


def student(
    step: float, error: float, df: float, better: str, margin: float, looks: float = 1.0
) -> Change:
    """The verdict on a step of logarithms with its standard error and degrees of freedom.

    It is a change where p, times ``looks``, is at most 5 % and the step at least the ``margin``
    (relative); no change where the 95 % interval lies within the margin.
    """
    half = float(special.stdtrit(df, 1 - LEVEL / 2)) * error
    p = min(1.0, looks * 2 * float(special.stdtr(df, -abs(step) / error))) if error else math.nan
    bound = math.log1p(margin)
    if not error:
        verdict, reason = INCONCLUSIVE, "identical values: they have no scatter to judge by"
    elif p <= LEVEL and abs(step) >= bound:
        verdict, reason = (REGRESSION if (step > 0) == (better == "lower") else IMPROVEMENT), ""
    elif max(abs(step - half), abs(step + half)) <= bound:
        verdict, reason = NO_CHANGE, ""
    else:
        verdict, reason = INCONCLUSIVE, ""
    low, high = (math.exp(step - half), math.exp(step + half)) if error else (math.nan, math.nan)
    return Change(verdict, reason, math.exp(step), low, high, error or math.nan, df, p)


def welch(base: Floats, new: Floats, better: str, margin: float = 0.0) -> Change:
    """The verdict on two groups of values: Welch's t on logarithms, the ratio that of the means."""
    if not base.size or not new.size:
        return Change(INCONCLUSIVE, "nothing on one side")
    if min(base.min(), new.min()) <= 0:
        return Change(INCONCLUSIVE, "a value is not positive: no ratio")
    step = math.log(new.mean() / base.mean())
    if min(base.size, new.size) < 2:
        return Change(INCONCLUSIVE, "one repeat on a side", math.exp(step))
    parts = [float(np.log(side).var(ddof=1)) / side.size for side in (base, new)]
    if min(parts) <= _TINY:
        return Change(INCONCLUSIVE, "identical repeats on a side", math.exp(step))
    sizes = base.size - 1, new.size - 1
    df = sum(parts) ** 2 / sum(part**2 / n for part, n in zip(parts, sizes, strict=True))
    return student(step, math.sqrt(sum(parts)), df, better, margin)


def overall(changes: Sequence[Change]) -> Change | None:
    """The geometric mean of ratios of points that share no run; None of fewer than two.

    Its interval is of these very points: their errors added up, Student's t with the degrees of
    freedom after Welch and Satterthwaite. Missing if a point has none.
    """
    known = [change for change in changes if math.isfinite(change.ratio)]
    if len(known) < 2:
        return None
    steps = np.log([change.ratio for change in known])
    variances = np.array([change.se**2 for change in known]) / len(known) ** 2
    if not np.isfinite(variances).all():
        return Change(INCONCLUSIVE, ratio=math.exp(float(steps.mean())))
    df = float(variances.sum() ** 2 / (variances**2 / [change.df for change in known]).sum())
    return student(float(steps.mean()), math.sqrt(float(variances.sum())), df, "higher", 0.0)


def corrected(changes: Iterable[Change]) -> list[Change]:
    """With p values adjusted after Benjamini and Hochberg (1995); what no longer stands becomes
    inconclusive."""
    from scipy import stats

    changes = list(changes)
    tested = [n for n, change in enumerate(changes) if math.isfinite(change.p)]
    if not tested:
        return changes
    adjusted = stats.false_discovery_control([changes[n].p for n in tested])
    for n, p in zip(tested, adjusted.tolist(), strict=True):
        change = replace(changes[n], adjusted=p)
        if change.verdict in CHANGED and p > LEVEL:
            why = f"one of {len(tested)} comparisons: by chance alone one of them may look like it"
            change = replace(change, verdict=INCONCLUSIVE, reason=why)
        changes[n] = change
    return changes


def paired(base: Floats, new: Floats, better: str, margin: float) -> Change:
    """The verdict on pairs of positive values that were measured next to each other.

    Student's t on the logarithms of the pairs' ratios; at least three pairs.
    """
    logs = np.log(new) - np.log(base)
    if logs.size < LEAST_PAIRS:
        return Change(TOO_EARLY, f"{logs.size} pairs: three are needed")
    places = range(logs.size)
    error = float(logs.std(ddof=1)) / math.sqrt(logs.size)
    change = student(float(logs.mean()), error, logs.size - 1, better, margin)
    needed = None
    if change.verdict == INCONCLUSIVE and error:
        needed = _more_pairs(float(logs.mean()), float(logs.std(ddof=1)), logs.size, margin)
    return replace(change, base=places, new=places, needed=needed)


def side_of(logs: Floats, bound: float, level: float = LEVEL) -> int:
    """On which side of ``bound`` the mean of some logarithms lies: 1 above, -1 below.

    0 if Student's t at ``level`` cannot tell, or there are fewer than three.
    """
    from scipy import stats

    if logs.size < LEAST_PAIRS:
        return 0
    p = float(stats.ttest_1samp(logs, bound).pvalue)
    return (1 if logs.mean() > bound else -1) if p <= level else 0


def _more_pairs(step: float, noise: float, n: int, margin: float) -> int | None:
    """How many more pairs would show a step as large as this one, or that it is within the
    margin."""
    room = max(
        abs(step) if abs(step) >= math.log1p(margin) else 0.0, math.log1p(margin) - abs(step)
    )
    for more in range(1, MOST_NEEDED + 1):
        half = float(special.stdtrit(n + more - 1, 0.975)) * noise / math.sqrt(n + more)
        if half <= room:
            return more
    return None


def estimates(groups: Sequence[Floats]) -> Floats:
    """``[3, group]``: mean of each group and the ends of its 95 % interval, NaN if not known."""
    made = np.full((3, len(groups)), np.nan)
    factors = {
        n: special.stdtrit(n - 1, 0.975) / math.sqrt(n) for n in {g.size for g in groups} if n > 1
    }
    for place, values in enumerate(groups):
        made[0, place] = values.mean()
        if values.size > 1 and (half := factors[values.size] * values.std(ddof=1)) > 0:
            made[1:, place] = made[0, place] + np.array([-half, half])
    return made
