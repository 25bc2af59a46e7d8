"""Measurements of commits in words: lines for a terminal."""

from scalesweep.analysis.verdicts import INCONCLUSIVE
from scalesweep.core.formatting import PHASES, counted, percent
from scalesweep.history.settled import SettledPoint


def line_of(label: str, point: SettledPoint) -> str:
    """``regression: steps, ranks 2: step_time +49.8 [48.9, 50.7] %, 5 pairs``."""
    phase = "" if point.phase == "run" else f", {PHASES[point.phase]}"
    text = f"{point.kind}: {label}: {point.metric}{phase} {change_of(point)}, "
    text += counted(point.pairs, "pair")
    if point.kind == INCONCLUSIVE:
        text += f"; {settling(point)}"
    return text


def change_of(point: SettledPoint) -> str:
    """How much new differs from base: ``+49.8 [48.9, 50.7] %``."""
    if point.ratio is None:
        return "–"
    ends = [None if end is None else end - 1 for end in (point.low, point.high)]
    text = percent(point.ratio - 1, *ends)
    return text if text.startswith("-") else f"+{text}"


def settling(point: SettledPoint) -> str:
    """What would settle an inconclusive verdict."""
    why = f"{point.reason}; " if point.reason else ""
    if point.needed is None:
        return f"{why}more repeats would hardly settle it: the change is close to the margin"
    more = counted(point.needed - point.pairs, "more repeat")
    return f"{why}{more} of each would probably settle it (--config repeats={point.needed})"
