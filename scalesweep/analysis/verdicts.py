"""Whether a point became slower or faster: a verdict on its newest level against a baseline.

The ratio new / baseline has an interval from the noise among sessions (``levels``), not from
the repeats of a session, which are alike in whatever made that day different.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scalesweep.analysis.fdr import adjusted_p
from scalesweep.analysis.levels import LEAST_LEVEL, Series
from scalesweep.analysis.stats import CONFIDENCE, t_chance, t_quantile

REGRESSION, IMPROVEMENT, NO_CHANGE = "regression", "improvement", "no change"
INCONCLUSIVE, CONFOUNDED, TOO_EARLY = "inconclusive", "confounded", "cannot judge yet"
VERDICTS = (REGRESSION, CONFOUNDED, IMPROVEMENT, INCONCLUSIVE, NO_CHANGE, TOO_EARLY)

LEAST_SESSIONS = 6
STABLE = 4  # sessions of a level that a newer one is compared with
WINDOW = 12  # its last ones, since machines drift
LEVEL = 1 - CONFIDENCE
MOST_NEEDED = 50  # sessions or repeats


@dataclass(frozen=True)
class Verdict:
    """A verdict on sessions ``new`` against sessions ``base``, without spikes.

    ``ratio`` with its 95 % interval ``low`` and ``high``; ``p``: that there is no change at all,
    for all places at which the step might have been; ``adjusted``: after the correction for the
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
    places = 1
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
        # Bonferroni's correction: half of all errors are for a step right before the last two
        # sessions, where one is always looked for, the other half for all other places together.
        others = len(level) + len(new) - 2 * LEAST_LEVEL
        places = 2 if len(new) == LEAST_LEVEL else 2 * max(1, others)
    else:
        stepped = False
        steady = series.steady(newest)
        old, new = steady[-LEAST_LEVEL - WINDOW : -LEAST_LEVEL], steady[-LEAST_LEVEL:]
        places = 2
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
    return _judged(series, better, margin, tuple(old), tuple(new), places, stepped)


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
    places: int,
    stepped: bool,
) -> Verdict:
    shift = series.mean(new) - series.mean(old)
    # Sessions that pass on what they have are fewer than they seem.
    noise = series.between * math.sqrt((1 + series.rho) / (1 - series.rho))
    error = noise * math.sqrt(1 / len(old) + 1 / len(new))
    half = t_quantile(series.degrees) * error
    p = min(1.0, places * t_chance(shift, error, series.degrees))
    bound = math.log1p(margin)
    found = Verdict(
        INCONCLUSIVE, "", old, new, math.exp(shift), math.exp(shift - half),
        math.exp(shift + half), p, p, stepped=stepped,
    )  # fmt: skip
    if abs(shift) > bound and half < abs(shift) and p <= LEVEL:
        worse = (shift > 0) == (better == "lower")
        return replace(found, kind=REGRESSION if worse else IMPROVEMENT)
    if abs(shift) + half <= bound:
        return replace(found, kind=NO_CHANGE)
    return _inconclusive(series, found, shift, bound, noise)


def _inconclusive(
    series: Series, found: Verdict, shift: float, bound: float, noise: float
) -> Verdict:
    """The same with what would probably settle it."""

    def settled(spread: float, sessions: int) -> bool:
        error = spread * math.sqrt(1 / len(found.base) + 1 / sessions)
        half = t_quantile(series.degrees + sessions - len(found.new)) * error
        return half < (abs(shift) if abs(shift) > bound else bound - abs(shift))

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
