"""What a comparison says first: which side is faster at how many points, and by how much."""

import math
from collections.abc import Sequence

from scalesweep.compare.environment_diff import Difference
from scalesweep.compare.significance import (
    IDENTICAL,
    IMPROVED,
    SINGLE,
    WORSE,
    Change,
    geometric_mean,
)
from scalesweep.core.formatting import PHASES, counted, percent

# A metric of these units is of speed: better is faster. Of any other, better is better.
_TIMES = ("s", "ms")


def subject_words(subject: Difference | None) -> str:
    """What the comparison is about: the new commit of the measured program, else the new side."""
    return f"the new commit ({subject.new}, against {subject.base})" if subject else "the new side"


def verdict_words(group: Sequence[Change], subject: Difference | None) -> tuple[str, str]:
    """The verdict on a metric of an experiment in one phase, and its tag.

    ``group``: its points; those count whose verdict stands among all that may be said first of the
    experiment, so that any such line is false in at most 5 % of comparisons without a change.
    Of several the geometric mean of their ratios is given.
    """
    known = [change for change in group if change.error is not None]
    first = group[0]
    where = f"{first.pair.experiment}, {first.quantity.label.lower()}, {PHASES[first.phase]}"
    sure = [change for change in known if change.stands]
    better, worse = (
        [change for change in sure if change.verdict == verdict] for verdict in (IMPROVED, WORSE)
    )
    head = subject_words(subject)
    unknown = len(group) - len(known)
    if not known:
        return f"{where}: {_why_unknown(group)}.", "unclear"
    fast = first.quantity.unit in _TIMES or first.quantity.unit.endswith("/s")
    words = ("faster", "slower") if fast else ("better", "worse")
    parts = [
        f"{word} at {len(alike)} of {counted(len(known), 'point')} ({_by(alike)})"
        for word, alike in zip(words, (better, worse), strict=True)
        if alike
    ]
    rest = len(known) - len(sure)
    if parts:
        text = f"{head[:1].upper()}{head[1:]} is {' and '.join(parts)}"
        others = "at the other one" if rest == 1 else f"at the other {rest}"
        text += f"; no clear difference {others}" if rest else ""
    else:
        low, high = _widest(known)
        at = "the only point" if len(known) == 1 else f"any of {len(known)} points"
        text = f"No clear difference between {head} and base at {at}"
        text += f": the intervals lie between {percent(low - 1)} and {percent(high - 1)}"
    if unknown:
        text += f"; {counted(unknown, 'point')} cannot be compared"
    tag = (
        "both ways" if better and worse
        else IMPROVED if better
        else WORSE if worse
        else "unclear"
    )  # fmt: skip
    return f"{text} [{where}].", tag


def _why_unknown(group: Sequence[Change]) -> str:
    """Why no ratio of a group has an interval, and of identical repeats how far the sides differ,
    which nothing says the scatter of."""
    alike = [change for change in group if change.reason == IDENTICAL]
    if not alike:
        reasons = {change.reason for change in group} - {SINGLE}
        if not reasons:
            return "no point has two or more repeats on both sides, so no change can be established"
        return f"no change can be established at {_points(group, group)} ({'; '.join(reasons)})"
    text = (
        f"no change can be established, because repeats are identical on a side at "
        f"{_points(alike, group)}: they have no scatter to judge a difference by"
    )
    if apart := [change for change in alike if change.ratio != 1]:
        farthest = max(apart, key=lambda change: abs(math.log(change.ratio)))
        least = "" if len(apart) == 1 else ", the largest"
        sign = "+" if farthest.ratio > 1 else ""
        text += (
            f"; the sides differ at {counted(len(apart), 'point')}{least} by "
            f"{sign}{percent(farthest.ratio - 1)}, which cannot be judged for this reason"
        )
    return text


def _points(chosen: Sequence[Change], group: Sequence[Change]) -> str:
    if len(chosen) == len(group):
        return "the only point" if len(group) == 1 else f"all {len(group)} points"
    return f"{len(chosen)} of {counted(len(group), 'point')}"


def _by(chosen: Sequence[Change]) -> str:
    """By how much: ``+4.2 [3.1, 5.3] %``, of several points on average."""
    if len(chosen) == 1:
        value, low, high = chosen[0].ratio, chosen[0].low, chosen[0].high
    else:
        mean = geometric_mean(chosen)
        assert mean is not None
        value, low, high = mean.value, mean.low, mean.high
    sign = "+" if value > 1 else ""
    average = " on average" if len(chosen) > 1 else ""
    return f"{sign}{percent(value - 1, low - 1, high - 1)}{average}"


def _widest(known: Sequence[Change]) -> tuple[float, float]:
    return min(change.low for change in known), max(change.high for change in known)
