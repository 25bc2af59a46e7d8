"""A change: what was compared, the verdict on it, and why."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from scalesweep.analysis.types import Floats

REGRESSION, IMPROVEMENT, NO_CHANGE = "regression", "improvement", "no change"
INCONCLUSIVE, CONFOUNDED, TOO_EARLY = "inconclusive", "confounded", "cannot judge yet"
VERDICTS = (REGRESSION, CONFOUNDED, IMPROVEMENT, INCONCLUSIVE, NO_CHANGE, TOO_EARLY)
CHANGED = (REGRESSION, IMPROVEMENT)
LEVEL = 0.05
_TINY = 1e-18  # of variances of logarithms: below it there is none
LEAST_PAIRS = 3
MOST_NEEDED = 50  # more pairs are not asked for


@dataclass(frozen=True)
class Change:
    """The ratio new / base with its 95 % interval, and the verdict on it.

    ``p``: that there is no change; ``adjusted``: after the correction for all that is judged
    together. ``base``, ``new``: places of the sessions or pairs of both sides; ``needed``: how many
    more pairs are likely to settle what is inconclusive, None where that is not known or too many.
    Numbers are NaN where missing.
    """

    verdict: str
    reason: str = ""
    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan
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
    return Change(verdict, reason, math.exp(step), low, high, p)


def moments(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """A row per group of the column ``value``: ``repeats``, ``mean`` with its 95 % interval
    (``low``, ``high``; Student's t), ``least``, and ``log_var``, the variance of the logarithms.

    Numbers are NaN if not known: one repeat, or identical ones, have no interval.
    """
    logs = np.log(rows["value"].where(rows["value"] > 0))
    grouped = rows.assign(log=logs).groupby(list(by), observed=True, sort=False)
    made = grouped.agg(
        repeats=("value", "size"), mean=("value", "mean"), low=("value", "std"),
        least=("value", "min"), log_var=("log", "var"),
    )  # fmt: skip
    spread = made["low"].where(made["low"] > 0)
    half = special.stdtrit(made["repeats"] - 1, 1 - LEVEL / 2) * spread / np.sqrt(made["repeats"])
    return made.assign(low=made["mean"] - half, high=made["mean"] + half)


def ratios(base: pd.DataFrame, new: pd.DataFrame, better: Any) -> pd.DataFrame:
    """Two groups of values a row, as ``moments`` has them: Welch's t on logarithms.

    ``better``: ``higher`` or ``lower``, of all rows or of each. The ratio is that of the means;
    columns are those of ``Change``, with the reason where there is no interval, and ``se`` and
    ``df``: standard error of the ratio's logarithm, and its degrees of freedom.
    """
    sides = (base, new)
    positive = (base["least"] > 0) & (new["least"] > 0)
    quotient = (new["mean"] / base["mean"]).where(positive)
    step = pd.Series(np.log(quotient), base.index)
    parts = [(side["log_var"] / side["repeats"]).where(side["log_var"] > _TINY) for side in sides]
    total = parts[0] + parts[1]
    error = np.sqrt(total)
    freedom = [part**2 / (side["repeats"] - 1) for part, side in zip(parts, sides, strict=True)]
    df = total**2 / (freedom[0] + freedom[1])
    half = special.stdtrit(df, 1 - LEVEL / 2) * error
    p = 2 * special.stdtr(df, -step.abs() / error)
    worse = (step < 0) == (np.asarray(better) == "higher")
    reasons = {
        "nothing on one side": base["mean"].isna() | new["mean"].isna(),
        "a value is not positive: no ratio": ~positive,
        "one repeat on a side": (base["repeats"] < 2) | (new["repeats"] < 2),
        "identical repeats on a side": error.isna(),
    }
    return pd.DataFrame({
        "verdict": np.select([~(p <= LEVEL), worse], [INCONCLUSIVE, REGRESSION], IMPROVEMENT),
        "reason": np.select(list(reasons.values()), list(reasons), ""),
        "ratio": np.exp(step), "low": np.exp(step - half), "high": np.exp(step + half),
        "se": error, "df": df, "p": p,
    }, index=base.index)  # fmt: skip


def overall(rows: pd.DataFrame) -> Change | None:
    """The geometric mean of ratios of points that share no run; None of fewer than two.

    Its interval is of these very points: their errors added up, Student's t with the degrees of
    freedom after Welch and Satterthwaite. Missing if a point has none.
    """
    known = rows[rows["ratio"].notna()]
    if len(known) < 2:
        return None
    step = float(np.log(known["ratio"]).mean())
    if known["se"].isna().any():
        return Change(INCONCLUSIVE, ratio=math.exp(step))
    variances = known["se"] ** 2 / len(known) ** 2
    df = float(variances.sum() ** 2 / (variances**2 / known["df"]).sum())
    return student(step, math.sqrt(float(variances.sum())), df, "higher", 0.0)


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


def paired(logs: Floats, better: str, margin: float) -> Change:
    """The verdict on pairs of positive values that were measured next to each other.

    Student's t on the logarithms of the pairs' ratios; at least three pairs.
    """
    if logs.size < LEAST_PAIRS:
        return Change(TOO_EARLY, f"{logs.size} pairs: three are needed")
    step, noise, places = float(logs.mean()), float(logs.std(ddof=1)), range(logs.size)
    change = student(step, noise / math.sqrt(logs.size), logs.size - 1, better, margin)
    needed = None
    if change.verdict == INCONCLUSIVE and noise > 0:
        bound, half = math.log1p(margin), math.log(change.high / change.low) / 2
        gap = abs(step) if abs(step) >= bound else bound - abs(step)
        more = math.ceil(logs.size * ((half / gap) ** 2 - 1))
        needed = more if 1 <= more <= MOST_NEEDED else None
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
