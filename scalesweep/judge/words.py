"""A verdict in words, one form for all: history, A/B and comparison."""

from collections.abc import Sequence

from scalesweep.core.formatting import counted, finite, listed, percent
from scalesweep.judge.change import CONFOUNDED, INCONCLUSIVE, NO_CHANGE, TOO_EARLY, Change
from scalesweep.judge.facts import Difference


def ratio_words(change: Change) -> str:
    """How much new differs from base: ``+10.2 [8.1, 12.3] %``."""
    if not finite(change.ratio):
        return "–"
    ends = [end - 1 if finite(end) else None for end in (change.low, change.high)]
    text = percent(change.ratio - 1, *ends)
    return text if text.startswith("-") else f"+{text}"


def sentence(what: str, change: Change, since: str = "") -> str:
    """What a comparison shows of ``what``, without its first word, which is the verdict."""
    if change.verdict == TOO_EARLY:
        return f"{what}: {change.reason}."
    return f"{what} {ratio_words(change)}{f' since {since}' if since else ''}."


def why(change: Change, unit: str, margin: float, others: Sequence[Difference] = ()) -> str:
    """What a reader needs besides: what else changed, or what would settle it; may be empty.

    ``unit``: session or pair.
    """
    if change.verdict == CONFOUNDED:
        return f"Not attributable to the commit: {change.reason}."
    if change.verdict == NO_CHANGE:
        return f"The interval lies within {percent(margin)}."
    if change.verdict != INCONCLUSIVE:
        return f"{listed([str(other) for other in others])} changed too." if others else ""
    reason = f"{change.reason[:1].upper()}{change.reason[1:]}. " if change.reason else ""
    if change.needed:
        return f"{reason}{counted(change.needed, f'more {unit}')} would probably settle it."
    return f"{reason}More {unit}s would hardly settle it." if finite(change.p) else reason.strip()
