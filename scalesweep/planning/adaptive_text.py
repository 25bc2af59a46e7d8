"""Repeats until points are precise, as text."""

from collections.abc import Sequence

from scalesweep.analysis.repeat_rule import (
    IDENTICAL,
    MORE,
    PRECISE,
    UNKNOWN,
    WAITING,
    WIDE,
)
from scalesweep.core.formatting import counted, listed
from scalesweep.core.plan_format import PlanExperiment, PlanRepeated

NEW = "new"  # of a point: no repeat has begun
# What is said of the points in a state, in the order of a line.
_WORDS = {
    NEW: "{points} of {least:,} to {most:,} runs in all, known once the first {first} repeats of "
    "each have finished",
    MORE: "{points} {need} about {runs} more",
    PRECISE: "{points} precise after {done}",
    WIDE: "{points} stayed wide: {names}",
    WAITING: "{points} {wait} for a repeat that has failed or is pending",
    UNKNOWN: "{points} with fewer than two values, which say nothing",
    IDENTICAL: "{points} with identical repeats, which say nothing",
}


def repeats_line(experiment: PlanExperiment) -> str:
    """What is known of an experiment's repeats, in one line; empty where their number is fixed."""
    if (repeats := experiment.get("repeats")) is None:
        return ""
    parts = []
    for state, words in _WORDS.items():
        if points := [point for point in repeats["points"] if point["state"] == state]:
            single, done = len(points) == 1, sum(point["done"] for point in points)
            said = words.format(
                points=counted(len(points), "point"),
                need="needs" if single else "need",
                wait="waits" if single else "wait",
                least=sum(point["planned"] for point in points),
                most=sum(max(repeats["most"], point["planned"]) for point in points),
                first=repeats["least"],
                runs=counted(sum(point["expected"] for point in points) - done, "run"),
                done=counted(done, "run"),
                names=_names(points, [*experiment["axes"], *experiment["linked"]]),
            )
            parts.append(said)
    metric = f" of {repeats['metric']}" if repeats["metric"] else ""
    rule = f"{repeats['least']} to {repeats['most']}, until ±{_percent(repeats['until'])}{metric}"
    return f"repeats in {experiment['name']}: {rule}: {'; '.join(parts)}"


def _names(points: Sequence[PlanRepeated], axes: Sequence[str]) -> str:
    return listed(
        [
            " ".join(
                [f"{axis}={point['point'][axis]}" for axis in axes if axis in point["point"]]
                + [f"±{_percent(point['width'])}"]
            )
            for point in points
        ]
    )


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.3g} %"
