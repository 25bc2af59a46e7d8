"""Checkpoints, validation and logging that a program has timed within a step: they are no part of
it, and are counted between it and the next, as where the program prints them behind its steps.

Standard library only: the launcher reads stamps on compute nodes.
"""

import math
from collections.abc import Callable, Sequence
from itertools import combinations

from scalesweep.compute.stamp_rows import BEGIN, SECONDS, SPAN, Rows, follows

BETWEEN = f"{SPAN}between"
ACTIVITIES = tuple(f"{SPAN}{name}" for name in ("checkpoint", "validation", "logging"))
PARTS = {
    "span_compute": ("span_forward", "span_backward", "span_optimizer"),
    "span_communication": ("span_data_parallel", "span_tensor_parallel", "span_pipeline_wait"),
}


def move_out(rows: Rows) -> None:
    """Take activities out of the steps of a rank that hold them, into the time before the next.

    A step holds what fits beside its spans better than between it and the one before.
    """
    names = [name for name in ACTIVITIES if name in rows.columns]
    if not names or not rows.has(SECONDS):
        return
    seconds, between = rows.columns[SECONDS], rows.columns.get(BETWEEN)
    before = _times_before(rows)
    # From the last step on: what is moved out counts before the next, which has been looked at.
    for place in reversed(range(len(rows.keys))):
        taken = {n: v for n in names if (v := _known(rows, n, place)) > 0}
        if not taken:
            continue
        inside = _inside(taken, before(place), seconds[place] - _spans(rows, place))
        total = math.fsum(taken[name] for name in inside)
        seconds[place] = max(seconds[place] - total, 0.0)
        following = place + 1
        known = following < len(rows.keys) and follows(rows.keys[place], rows.keys[following])
        if known and between is not None:
            between[following] += total
        for name in inside:
            rows.columns[name][place] = 0.0
            if known:
                rows.columns[name][following] = taken[name] + _known(rows, name, following)


def _inside(taken: dict[str, float], before: float | None, room: float) -> Sequence[str]:
    """Which activities lie within the step: ``before`` are the seconds since the step before, None
    where they are not known, ``room`` those of the step that no span counts.

    Those by which the least is too long for its place; of several, by which the least is left over.
    """

    def misfit(inside: Sequence[str]) -> tuple[float, float]:
        within = math.fsum(taken[name] for name in inside)
        outside = math.fsum(taken.values()) - within
        spare = [room - within] if inside else []
        if before is not None and len(inside) < len(taken):
            spare.append(before - outside)
        too_long = -math.fsum(min(each, 0.0) for each in spare)
        return round(too_long, 6), math.fsum(spare)

    sets = [names for count in range(len(taken) + 1) for names in combinations(taken, count)]
    if before is None:  # what fits is inside
        return next((names for names in sets[1:] if not misfit(names)[0]), ())
    return min(sets, key=misfit)


def _times_before(rows: Rows) -> Callable[[int], float | None]:
    """The seconds since the step before, None where they are not known, by place."""
    if rows.has(BETWEEN):
        return rows.columns[BETWEEN].__getitem__
    begins = rows.columns[BEGIN] if rows.has(BEGIN) else None
    seconds = rows.columns[SECONDS]

    def before(place: int) -> float | None:
        if begins is None or not place or not follows(rows.keys[place - 1], rows.keys[place]):
            return None
        return begins[place] - begins[place - 1] - seconds[place - 1]

    return before


def _spans(rows: Rows, place: int) -> float:
    """The seconds of a step that its spans count."""
    total = _known(rows, f"{SPAN}input", place)
    for whole, parts in PARTS.items():
        if whole in rows.columns:
            total += _known(rows, whole, place)
        else:
            total += math.fsum(_known(rows, part, place) for part in parts)
    return total


def _known(rows: Rows, name: str, place: int) -> float:
    column = rows.columns.get(name)
    return 0.0 if column is None or math.isnan(column[place]) else column[place]
