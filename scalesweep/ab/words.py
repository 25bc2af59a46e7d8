"""Measurements of commits in words: lines for a terminal."""

from scalesweep.analysis.paired import MOST_NEEDED
from scalesweep.analysis.verdicts import INCONCLUSIVE
from scalesweep.core.formatting import PHASES, counted
from scalesweep.history.settled import SettledPoint
from scalesweep.history.words import settled_change


def line_of(label: str, point: SettledPoint) -> str:
    """``regression: steps, ranks 2: step_time +49.8 [48.9, 50.7] %, 5 pairs``."""
    phase = "" if point.phase == "run" else f", {PHASES[point.phase]}"
    text = f"{point.kind}: {label}: {point.metric}{phase} {settled_change(point)}, "
    text += counted(point.pairs, "pair")
    if point.kind == INCONCLUSIVE:
        text += f"; {settling(point)}"
    return text


def settling(point: SettledPoint) -> str:
    """What would settle an inconclusive verdict."""
    why = f"{point.reason}; " if point.reason else ""
    if point.needed is None:
        return f"{why}to settle it would take more than {MOST_NEEDED} repeats of each"
    more = counted(point.needed - point.pairs, "more repeat")
    return f"{why}{more} of each would probably settle it (--repeats {point.needed})"
