"""Whether a point became slower or faster: a verdict on its newest level against a baseline.

The ratio new / baseline has an interval from the noise among sessions (``levels``), not from
the repeats of a session, which are alike in whatever made that day different.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scalesweep.analysis.levels import LEAST_LEVEL, Series
from scalesweep.analysis.multiple import adjusted_p
from scalesweep.analysis.session_noise import SPAN, Noise, chance_of_each, read_noise
from scalesweep.analysis.stats import CONFIDENCE
from scalesweep.analysis.unsteady import (
    RECENT,
    Trend,
    grown_noise,
    moved_before,
    slopes,
    steady_change,
)

REGRESSION, IMPROVEMENT, NO_CHANGE = "regression", "improvement", "no change"
INCONCLUSIVE, CONFOUNDED, TOO_EARLY = "inconclusive", "confounded", "cannot judge yet"
TREND = "trend"
VERDICTS = (REGRESSION, TREND, CONFOUNDED, IMPROVEMENT, INCONCLUSIVE, NO_CHANGE, TOO_EARLY)

LEAST_SESSIONS = 6
STABLE = 6  # sessions of a level that a newer one is compared with
# Of the baseline's level the newest sessions: so many of these as make the error least.
WINDOWS, DRIFTING = (4, 6, 8, 12, 16, 24), 12
LEVEL = 1 - CONFIDENCE
MOST_NEEDED = 50  # sessions or repeats
# What is asked each evening is asked many times a year: p values are multiplied by as many looks as
# they are worth, so that at most 5 % of series get a false verdict along 55 evenings, and 250.
# Looks at the same sessions overlap, so that these are fewer; while a series is short its noise is
# known less well, and a look costs more power, so that more of the 5 % is spent there. Looks at
# single sessions hardly overlap: of a long series those count twice (bench/history.py).
LOOKS_A_SESSION, LEAST_LOOKS, MOST_LOOKS = 2.5, 60, 300
ONCE, TWICE = 30, 60  # sessions up to which, and from which on
# A change of so many standard deviations of a session is no wandering, though steps came before.
CLEAR = 8.0
# Share of their resolution that scatter is less than where values of one level are rounded alike;
# and what 95 % of the differences of two roundings are below, in units of it.
_COARSE, _ROUNDED = 0.35, 0.776
_BORDER = 1.5  # times the resolution: a larger difference is more than one value to the next
_TINY = 1e-9  # of logarithms: a scatter below it is none


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
    apart, series = series, series.merged(math.log1p(margin))
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
        old = level
    else:
        stepped = False
        steady = series.steady(newest)
        old, new = steady[:-LEAST_LEVEL], steady[-LEAST_LEVEL:]
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
    noise = _noise(series, old, new, math.log1p(margin))
    if base is None:
        old = _window(apart, noise, old, new)
    return _judged(series, noise, better, margin, tuple(old), tuple(new), stepped, base is not None)


def _window(apart: Series, noise: Noise, old: list[int], new: Sequence[int]) -> list[int]:
    """The newest sessions of a level that give the least error; few of one that drifts, in which
    ``apart`` has several levels."""
    last = max(start for start in apart.starts if start <= old[-1])
    sizes = [
        size for size in WINDOWS if size <= len(old) and (size <= DRIFTING or old[-size] >= last)
    ]
    windows = [old[-size:] for size in sizes] or [old]
    return min(windows, key=lambda window: noise.error(window, new))


def _noise(series: Series, old: Sequence[int], new: Sequence[int], bound: float) -> Noise:
    """The noise of the newest sessions, and of those that are compared, about their levels, which
    differ by ``bound`` or more.

    Levels as they are cut, or by large steps only, or none, and the new one or not: a series that
    wanders looks as if it had many, and what is left of one that is cut looks white.
    """
    there = series.steady(range(len(series.centres)))
    places = sorted({*there[-SPAN:], *old[-max(WINDOWS) :], *new})
    before = [place for place in places if place < new[0]]
    cut = [start for start in series.starts if start < new[0]]
    levels: list[Sequence[int]] = [cut, series.coarse(before, bound), []]
    ways = [[*way, *more] for way in levels for more in ([new[0]], [])]
    return read_noise(series.centres, places, ways, max(series.floor, _TINY))


def looks(sessions: int) -> float:
    """How many evenings' looks a p value of a series of so many sessions is corrected for."""
    return min(max(LEAST_LOOKS, LOOKS_A_SESSION * sessions), MOST_LOOKS)


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
    noise: Noise,
    better: str,
    margin: float,
    old: tuple[int, ...],
    new: tuple[int, ...],
    stepped: bool,
    named: bool,
) -> Verdict:
    """The verdict on sessions ``new`` against sessions ``old`` of a series.

    ``stepped``: the levels were found by a step in the series; ``named``: the user named the old
    ones. A change is clear if it is beyond ``margin``, its interval leaves out 0, and chance,
    outliers and rounding explain it rarely enough.
    """
    shift = series.mean(new) - series.mean(old)
    half = noise.half_width(old, new)
    if float(noise.weights @ noise.scales) < _COARSE * series.grid:
        # Rounding is the same in all sessions of a level then: no number of them averages it out.
        half = math.hypot(half, _ROUNDED * series.grid)
    many = looks(len(series.steady(range(len(series.centres)))))
    singly = _chance_singly(series, noise, old, new, shift)
    border = _chance_of_rounding(series, shift, old, new)
    p = min(1.0, many * max(noise.chance(shift, old, new), singly, border))
    bound = math.log1p(margin)
    verdict = Verdict(
        INCONCLUSIVE, "", old, new, math.exp(shift), math.exp(shift - half),
        math.exp(shift + half), p, p, stepped=stepped,
    )  # fmt: skip
    if abs(shift) > bound and half < abs(shift):
        why = ""
        if p <= LEVEL:
            why = _unsteady(series, shift, old, new, many, named)
            if not why:
                slower = (shift > 0) == (better == "lower")
                return replace(verdict, kind=REGRESSION if slower else IMPROVEMENT)
        elif many * singly > LEVEL:
            why = "outliers of this series, several in a row, would look like this"
        elif many * border > LEVEL:
            why = "values are rounded, and so few may have the next one by chance"
        elif many * noise.chance_if_white(shift, old, new) <= LEVEL:
            why = "neighbouring sessions are alike (the series wanders), so few of them say little"
        if why:
            return replace(verdict, reason=why, sessions=len(new) + 1)
    if abs(shift) + half <= bound:
        return replace(verdict, kind=NO_CHANGE)
    return _inconclusive(series, verdict, shift, bound, noise, many)


def _chance_singly(
    series: Series, noise: Noise, old: Sequence[int], new: Sequence[int], shift: float
) -> float:
    """p value of the new sessions one by one (``chance_of_each``), times how often each counts."""
    sign, level = math.copysign(1, shift), series.mean(old)
    earlier = np.flatnonzero(series.spikes[: new[0]])
    times = float(np.interp(len(series.centres), (ONCE, TWICE), (1, 2)))
    return times * chance_of_each(
        sign * (series.centres[list(new)] - level), series.left[~series.spikes],
        sign * (series.centres[earlier] - level), float(noise.weights @ noise.scales),
    )  # fmt: skip


def _chance_of_rounding(
    series: Series, shift: float, old: Sequence[int], new: Sequence[int]
) -> float:
    """p value of what a value near the border of two rounded ones does: the new sessions have the
    other one by chance, of so many of which as many have it."""
    if abs(shift) > _BORDER * series.grid:
        return 0.0
    level = max(start for start in series.starts if start <= old[-1])
    return 1 / math.comb(old[-1] + 1 - min(level, old[0]) + len(new), len(new))


def _unsteady(
    series: Series, shift: float, old: Sequence[int], new: Sequence[int], many: float, named: bool
) -> str:
    """Why a significant change may be no step: what the whole series does; "" where nothing is."""
    grown = grown_noise(series, new[0], old, max(series.floor, _TINY))
    if grown is not None and many * grown.chance(shift, len(old), len(new)) > LEVEL:
        return "noise among sessions has grown, so few of them say little"
    if abs(shift) >= CLEAR * series.between:
        return ""
    if not named and slopes(series.centres, series.steady(range(len(series.centres))), new[0]):
        return "a steady change explains the newest sessions as well as a step"
    sides = (range(new[0]), range(new[0], len(series.centres)))
    if any(moved_before(series.centres[series.steady(s)], shift, len(new)) for s in sides):
        return f"the series moves as much without a step, or did within {RECENT} sessions"
    return ""


def _inconclusive(
    series: Series, verdict: Verdict, shift: float, bound: float, noise: Noise, many: float
) -> Verdict:
    """The same with what would probably settle it."""
    now = len(verdict.new)

    def settled(spread: float, sessions: int) -> bool:
        new = range(verdict.new[0], verdict.new[0] + sessions)
        if abs(shift) > bound:
            return many * noise.chance(shift / spread, verdict.base, new) <= LEVEL
        # The interval is less than this wide to a side where p of it is below 5 %.
        return noise.chance((bound - abs(shift)) / spread, verdict.base, new) < LEVEL

    sessions = next((k for k in range(now + 1, MOST_NEEDED + 1) if settled(1.0, k)), None)
    repeats = None
    each = float(series.repeats[list(verdict.new)].mean())
    if series.within > 0:
        all_of_it = float(noise.weights @ noise.scales**2)
        own = all_of_it - series.within**2 / each  # of the sessions, whatever their repeats
        for count in range(math.ceil(each) + 1, MOST_NEEDED + 1):
            less = own + series.within**2 / count
            if own >= 0 and settled(math.sqrt(less / all_of_it), now):
                repeats = count
                break
    return replace(verdict, sessions=sessions, repeats=repeats)


def corrected(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Verdicts of one page, in their order, with p values corrected for their number.

    Of regressions and improvements that remain at 5 % at most 5 % are false on average (Benjamini
    and Hochberg 1995); others become inconclusive.
    """
    given = list(verdicts)
    tested = [place for place, verdict in enumerate(given) if not math.isnan(verdict.p)]
    for place, p in zip(tested, adjusted_p([given[at].p for at in tested]), strict=True):
        verdict = replace(given[place], adjusted=p)
        if verdict.kind in (REGRESSION, IMPROVEMENT) and p > LEVEL:
            why = f"one of {len(tested)} points: by chance alone one of them may look like this"
            verdict = replace(verdict, kind=INCONCLUSIVE, reason=why, sessions=len(verdict.new) + 1)
        given[place] = verdict
    return given
