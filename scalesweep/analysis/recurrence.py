"""How often single events come back over the steps of runs, and in which part of a run they lie."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

REGULAR = 0.9  # of all distances
FULL = 0.8  # of the events that a distance stands for
FEWEST_GAPS = 3  # over all runs
CHANCE = 0.05  # of events anywhere in a run to lie as close together


@dataclass(frozen=True)
class Recurrence:
    """``every``: the distance between events in steps, where it is the same; ``part``: the first
    and last step (from 0) of all of them, where they do not go on over the whole run."""

    every: int | None
    part: tuple[int, int] | None


def recurrence_of(places: Sequence[NDArray[Any]], steps: int) -> Recurrence:
    """The recurrence of events at ``places`` in each run (ascending, from 0) of so many steps.

    Three distances of all runs are the fewest that tell. A part of a run is one where the events
    are regular in it, three in a run at least, or lie closer together than by chance.
    """
    places = [own for own in places if own.size]
    if not places:
        return Recurrence(None, None)
    part = (min(int(own[0]) for own in places), max(int(own[-1]) for own in places))
    gaps = np.concatenate([np.diff(own) for own in places])
    distance = int(np.median(gaps)) if gaps.size else 0
    slack = max(int(distance >= 8), distance // 10)
    if gaps.size >= FEWEST_GAPS and (np.abs(gaps - distance) <= slack).mean() >= REGULAR:
        ends = max(max(int(own[0]), steps - 1 - int(own[-1])) for own in places)
        full = all(own.size * distance >= FULL * (own[-1] - own[0] + 1) for own in places)
        if full and ends <= distance + slack:
            return Recurrence(distance, None)
        if full and min(own.size for own in places) > 2:
            return Recurrence(distance, part)
    count = min(own.size for own in places)
    share = (part[1] - part[0] + 1) / steps
    chance = count * share ** (count - 1) - (count - 1) * share**count  # of so small a range
    return Recurrence(None, part if count > 1 and chance < CHANCE else None)
