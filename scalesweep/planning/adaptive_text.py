"""Repeats until points are precise, as text."""

from scalesweep.analysis.repeat_rule import IDENTICAL, MORE, PRECISE, UNKNOWN, WAITING, WIDE
from scalesweep.core.formatting import counted, listed
from scalesweep.core.plan_format import PlanExperiment

NEW = "new"  # of a point: no repeat has begun
# What is said of the points in a state, in the order of a line.
_WORDS = {
    NEW: "not begun",
    MORE: "to be repeated",
    PRECISE: "precise",
    WIDE: "stayed wide",
    WAITING: "waiting for a repeat that has failed or is pending",
    UNKNOWN: "with fewer than two values, which say nothing",
    IDENTICAL: "with identical repeats, which say nothing",
}


def repeats_line(experiment: PlanExperiment) -> str:
    """What is known of an experiment's repeats, in one line; empty where their number is fixed."""
    if (repeats := experiment.get("repeats")) is None:
        return ""
    parts = []
    for state, words in _WORDS.items():
        if points := [point for point in repeats["points"] if point["state"] == state]:
            parts.append(f"{counted(len(points), 'point')} {words}")
            left = sum(point["expected"] - point["done"] for point in points)
            if state in (NEW, MORE):
                about = "about" if state == MORE else "at least"
                parts[-1] += f", {about} {counted(left, 'run')}"
            if state == WIDE:
                axes = [*experiment["axes"], *experiment["linked"]]
                names = [
                    " ".join(f"{axis}={p['point'][axis]}" for axis in axes if axis in p["point"])
                    + f" ±{_percent(p['width'])}"
                    for p in points
                ]
                parts[-1] += f": {listed(names)}"
    metric = f" of {repeats['metric']}" if repeats["metric"] else ""
    rule = f"{repeats['least']} to {repeats['most']}, until ±{_percent(repeats['until'])}{metric}"
    return f"repeats in {experiment['name']}: {rule}: {'; '.join(parts)}"


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.3g} %"
