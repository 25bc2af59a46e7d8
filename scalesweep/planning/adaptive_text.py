"""Repeats until points are precise, as text."""

from collections.abc import Iterable, Mapping
from typing import Any

from scalesweep.analysis.repeat_rule import (
    IDENTICAL,
    MORE,
    PRECISE,
    UNKNOWN,
    WAITING,
    WIDE,
)
from scalesweep.core.formatting import counted, listed
from scalesweep.core.plan_format import PlanExperiment, PlanRepeated, PlanRepeats

NEW = "new"  # of a point: not looked at as it is now


def repeats_line(experiment: PlanExperiment) -> str:
    """What is known of an experiment's repeats, in one line; empty where their number is fixed."""
    if (repeats := experiment.get("repeats")) is None:
        return ""
    by_state: dict[str, list[PlanRepeated]] = {}
    for point in repeats["points"]:
        by_state.setdefault(point["state"], []).append(point)
    axes = [*experiment["axes"], *experiment["linked"]]
    parts = [
        _WORDS[state](points, repeats, axes) for state in _WORDS if (points := by_state.get(state))
    ]
    metric = f" of {repeats['metric']}" if repeats["metric"] else ""
    rule = f"{repeats['least']} to {repeats['most']}, until ±{_percent(repeats['until'])}{metric}"
    return f"repeats in {experiment['name']}: {rule}: {'; '.join(parts)}"


def _name(point: PlanRepeated, axes: Iterable[str]) -> str:
    values: Mapping[str, Any] = point["point"]
    return " ".join(f"{axis}={values[axis]}" for axis in axes if axis in values)


def _new(points: list[PlanRepeated], repeats: PlanRepeats, axes: list[str]) -> str:
    most = sum(max(repeats["most"], point["planned"]) for point in points)
    least = sum(point["planned"] for point in points)
    return (
        f"{counted(len(points), 'point')} of {least:,} to {most:,} runs in all, known once the "
        f"first {repeats['least']} repeats of each have finished"
    )


def _more(points: list[PlanRepeated], repeats: PlanRepeats, axes: list[str]) -> str:
    runs = sum(point["expected"] - point["done"] for point in points)
    word = "needs" if len(points) == 1 else "need"
    return f"{counted(len(points), 'point')} {word} about {counted(runs, 'run')} more"


def _precise(points: list[PlanRepeated], repeats: PlanRepeats, axes: list[str]) -> str:
    done = sum(point["done"] for point in points)
    return f"{counted(len(points), 'point')} precise after {counted(done, 'run')}"


def _wide(points: list[PlanRepeated], repeats: PlanRepeats, axes: list[str]) -> str:
    names = [f"{_name(point, axes)} ±{_percent(point['width'])}".strip() for point in points]
    return f"{counted(len(points), 'point')} stayed wide: {listed(names)}"


def _waiting(points: list[PlanRepeated], repeats: PlanRepeats, axes: list[str]) -> str:
    word = "waits" if len(points) == 1 else "wait"
    return f"{counted(len(points), 'point')} {word} for a repeat that has failed or is pending"


def _unknown(points: list[PlanRepeated], repeats: PlanRepeats, axes: list[str]) -> str:
    return f"{counted(len(points), 'point')} with fewer than two values, which say nothing"


def _identical(points: list[PlanRepeated], repeats: PlanRepeats, axes: list[str]) -> str:
    return f"{counted(len(points), 'point')} with identical repeats, which say nothing"


_WORDS = {
    NEW: _new,
    MORE: _more,
    PRECISE: _precise,
    WIDE: _wide,
    WAITING: _waiting,
    UNKNOWN: _unknown,
    IDENTICAL: _identical,
}


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.3g} %"
