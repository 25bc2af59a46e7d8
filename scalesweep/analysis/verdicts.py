"""Whether a point became slower or faster: a verdict on its newest level against a baseline.

The ratio new / baseline has an interval from the noise among sessions (``levels``), not from
the repeats of a session, which are alike in whatever made that day different.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scalesweep.analysis.levels import LEAST_LEVEL, Series
from scalesweep.analysis.multiple import adjusted_p
from scalesweep.analysis.stats import CONFIDENCE, t_chance, t_quantile
from scalesweep.analysis.trend import Trend, steady_change
from scalesweep.analysis.wander import RECENT, moved_before

REGRESSION, IMPROVEMENT, NO_CHANGE = "regression", "improvement", "no change"
INCONCLUSIVE, CONFOUNDED, TOO_EARLY = "inconclusive", "confounded", "cannot judge yet"
TREND = "trend"
VERDICTS = (REGRESSION, TREND, CONFOUNDED, IMPROVEMENT, INCONCLUSIVE, NO_CHANGE, TOO_EARLY)

LEAST_SESSIONS = 6
STABLE = 4  # sessions of a level that a newer one is compared with
WINDOW = 12  # its last ones, since machines drift
LEVEL = 1 - CONFIDENCE
MOST_NEEDED = 50  # sessions or repeats
# What is asked each evening is asked many times a year: p values are multiplied by as many looks as
# a year of evenings is worth, so that at most 5 % of series get a false verdict in one. Looks at
# the same sessions overlap, so that these are fewer than 250 (bench/history.py).
LOOKS = 100
# A change of so many standard deviations of a session is no wandering, though steps came before.
CLEAR = 8.0


@dataclass(frozen=True)
class Verdict:
    """A verdict on sessions ``new`` against sessions ``base``, without spikes.

    ``ratio`` with its 95 % interval ``low`` and ``high``; ``p``: that there is no change at all,
    for a year of evenings at which it is asked; ``adjusted``: after the correction for the
    number of verdicts of a page. ``sessions``, ``repeats``: how many of either in all (of
    the new level; of each new session) are likely to settle what is inconclusive, None where none
    would; ``wanted``: how many more sessions a verdict takes at all. ``stepped``: the new level
    begins with a step that the series itself shows.
    """

    kind: str
    reason: str = ""
    base: tuple[int, ...] = ()
    new: tuple[int, ...] = ()
    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    adjusted: float = math.nan
    sessions: int | None = None
    repeats: int | None = None
    wanted: int = 0
    stepped: bool = False


def judge(series: Series, better: str, margin: float, base: Sequence[int] | None = None) -> Verdict:
    """The verdict on the newest level of a series, before the correction of ``corrected``.

    ``better``: higher or lower; ``margin``: relative change that matters (0.03: 3 %); ``base``:
    sessions of the named baseline, None: the last stable level before the newest.
    """
    # Levels that differ by less than what matters are drift: they widen the interval.
    series = series.merged(math.log1p(margin))
    n = len(series.centres)
    newest = range(series.starts[-1], n)
    stepped = len(series.starts) > 1
    if base is not None:
        old = series.steady(base) or list(base)
        after = max(base, default=-1)
        new = [place for place in series.steady(newest) if place > after]
        if not old:
            return Verdict(TOO_EARLY, "no session of the baseline has this point")
        stepped = stepped and newest[0] > after
    elif stepped and (level := series.steady(_stable(series, newest))):
        new = series.steady(newest)
        old = level[-WINDOW:]
    else:
        stepped = False
        steady = series.steady(newest)
        old, new = steady[-LEAST_LEVEL - WINDOW : -LEAST_LEVEL], steady[-LEAST_LEVEL:]
    there = len(series.steady(range(n)))
    wanted = max(LEAST_SESSIONS - there, LEAST_LEVEL - len(new), 0)
    if wanted or series.degrees < 1:
        wanted = max(wanted, 1)
        return Verdict(TOO_EARLY, "too few sessions", tuple(old), tuple(new), wanted=wanted)
    if not series.between > 0:
        return Verdict(
            TOO_EARLY, "all sessions have the same value: no noise to judge by",
            tuple(old), tuple(new),
        )  # fmt: skip
    trend = None if base is not None else steady_change(series.centres, series.steady(range(n)))
    if trend is not None and max(trend.low, -trend.high) > math.log1p(margin):
        return _steady(trend)
    return _judged(series, better, margin, tuple(old), tuple(new), stepped)


def _steady(trend: Trend) -> Verdict:
    """The verdict on a series that changes steadily: its end against its begin."""
    tenth = max(LEAST_LEVEL, len(trend.sessions) // 10)
    reason = f"steadily over {len(trend.sessions)} sessions"
    return Verdict(
        TREND, reason, trend.sessions[:tenth], trend.sessions[-tenth:], math.exp(trend.change),
        math.exp(trend.low), math.exp(trend.high),
    )  # fmt: skip


def worse(verdict: Verdict, better: str) -> bool:
    """Whether a verdict is that something became worse: by a step, or steadily."""
    if verdict.kind == TREND:
        return (verdict.ratio > 1) == (better == "lower")
    return verdict.kind == REGRESSION


def _stable(series: Series, newest: range) -> range:
    """The last level before the newest that is long enough for one to rely on.

    Where none is: nothing, if the newest one is long enough to be compared with itself, else the
    longest.
    """
    ends = series.starts[1:]
    levels = [range(a, b) for a, b in zip(series.starts, ends, strict=False)]
    long = [level for level in levels if len(level) >= STABLE]
    if not long and len(newest) >= STABLE + LEAST_LEVEL:
        return range(0)
    return long[-1] if long else max(reversed(levels), key=len)


def _judged(
    series: Series,
    better: str,
    margin: float,
    old: tuple[int, ...],
    new: tuple[int, ...],
    stepped: bool,
) -> Verdict:
    shift = series.mean(new) - series.mean(old)
    # Sessions that pass on what they have are fewer than they seem.
    noise = series.between * math.sqrt(series.longer)
    error = noise * math.sqrt(1 / len(old) + 1 / len(new))
    half = t_quantile(series.degrees) * error
    # Few sessions of a heavy-tailed noise are further off than normal ones would be.
    normal = _normal_score(abs(shift) / error, series.tails / len(new))
    p = min(1.0, LOOKS * t_chance(normal, 1.0, series.degrees))
    bound = math.log1p(margin)
    found = Verdict(
        INCONCLUSIVE, "", old, new, math.exp(shift), math.exp(shift - half),
        math.exp(shift + half), p, p, stepped=stepped,
    )  # fmt: skip
    if abs(shift) > bound and half < abs(shift) and p <= LEVEL:
        if why := _why_not(series, shift, old, new):
            return replace(found, reason=why, sessions=len(new) + 1)
        slower = (shift > 0) == (better == "lower")
        return replace(found, kind=REGRESSION if slower else IMPROVEMENT)
    if abs(shift) + half <= bound:
        return replace(found, kind=NO_CHANGE)
    return _inconclusive(series, found, shift, bound, noise)


def _normal_score(score: float, kurtosis: float) -> float:
    """The score of a normal distribution that is as far out as that of a mean with an excess
    kurtosis: by the expansion of Cornish and Fisher (Revue de l'Institut International de
    Statistique 5, 1938, 307-320), score = z + (z^3 - 3 z) kurtosis / 24, solved for z."""
    if score <= math.sqrt(3) or kurtosis <= 0:
        return score
    low, high = math.sqrt(3), score
    for _ in range(40):
        middle = (low + high) / 2
        if middle + (middle**3 - 3 * middle) * kurtosis / 24 < score:
            low = middle
        else:
            high = middle
    return low


def _why_not(series: Series, shift: float, old: tuple[int, ...], new: tuple[int, ...]) -> str:
    """Why a change that is large enough is not called one yet; empty if it is."""
    before = range(new[0])
    if len(new) == LEAST_LEVEL:
        if len(series.steady(before)) < len(before):
            return "the series has had outliers before, of which two in a row would look like this"
        sign = math.copysign(1, shift)
        if (sign * series.centres[list(new)]).min() <= (sign * series.centres[list(old)]).max():
            return "one of the two newest sessions is not beyond all of the base"
    if abs(shift) < CLEAR * series.between:
        since = series.centres[series.steady(range(new[0], len(series.centres)))]
        for level in (series.centres[series.steady(before)], since):
            if moved_before(level, shift, len(new)):
                return f"the series moves as much without a step, or did within {RECENT} sessions"
    return ""


def _inconclusive(
    series: Series, found: Verdict, shift: float, bound: float, noise: float
) -> Verdict:
    """The same with what would probably settle it."""

    def settled(spread: float, sessions: int) -> bool:
        error = spread * math.sqrt(1 / len(found.base) + 1 / sessions)
        degrees = series.degrees + sessions - len(found.new)
        if abs(shift) > bound:
            return LOOKS * t_chance(shift, error, degrees) <= LEVEL
        return t_quantile(degrees) * error < bound - abs(shift)

    now = len(found.new)
    sessions = next((k for k in range(now + 1, MOST_NEEDED + 1) if settled(noise, k)), None)
    repeats = None
    each = float(series.repeats[list(found.new)].mean())
    if series.within > 0:
        own = noise**2 - series.within**2 / each  # of the sessions, whatever their repeats
        for count in range(math.ceil(each) + 1, MOST_NEEDED + 1):
            if own >= 0 and settled(math.sqrt(own + series.within**2 / count), now):
                repeats = count
                break
    return replace(found, sessions=sessions, repeats=repeats)


def corrected(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Verdicts of one page, in their order, with p values corrected for their number.

    Of regressions and improvements that remain at 5 % at most 5 % are false on average (Benjamini
    and Hochberg 1995); others become inconclusive.
    """
    given = list(verdicts)
    tested = [place for place, one in enumerate(given) if not math.isnan(one.p)]
    for place, p in zip(tested, adjusted_p([given[at].p for at in tested]), strict=True):
        one = replace(given[place], adjusted=p)
        if one.kind in (REGRESSION, IMPROVEMENT) and p > LEVEL:
            why = f"one of {len(tested)} points: by chance alone one of them may look like this"
            one = replace(one, kind=INCONCLUSIVE, reason=why, sessions=len(one.new) + 1)
        given[place] = one
    return given
