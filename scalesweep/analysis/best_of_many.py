"""The best of many noisy values: how far ahead it is, without what it owes to the choice.

The highest of many means is one that noise has raised (winner's curse), and so is the next. What is
said of them is taken from repeats that had no part in the choice: each repeat is held out in turn,
the others choose, and the held-out one is read at what they chose (cross-fitting). Repeats of one
number ran in one block, so that what they have in common cancels.

Bounds are those of multiple comparisons with the best (Hsu, J. Am. Stat. Assoc. 79, 1984). That the
selected one is better than each other one at a two-sided 5 % is wrong in 5 % at most, however many
there are (Gutmann and Maymin, Ann. Stat. 15, 1987). docs/methods/layouts.md has what was simulated.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from scalesweep.analysis.stats import LogError, t_quantile
from scalesweep.analysis.types import Floats

# What gives the error of the logarithm of two values' ratio by their places; None: not known.
Errors = Callable[[int, int], LogError | None]


class Ahead(NamedTuple):
    """A value over the best of the others, on logarithms: as measured, from repeats that did not
    choose (None: there are none), and its 95 % bounds (None: not known)."""

    measured: float
    apart: float | None
    low: float | None
    high: float | None


def ahead_of_others(
    values: Sequence[Floats],
    error: Errors,
    place: int | None = None,
    level: float = 0.95,
    sign: int = 1,
) -> Ahead | None:
    """How far the value at ``place``, or the one with the best mean, is ahead of the best of the
    others; below 0 if it is behind.

    ``values[place]``: a value's repeats, all above 0; ``sign``: -1 where lower ones are better.
    None where there is no other.
    """
    if len(values) < 2:
        return None
    # Of the arithmetic means, which the values are ordered by: geometric ones may differ.
    means = np.array([sign * math.log(of.mean()) for of in values])

    def pair(means: Floats) -> tuple[int, int]:
        first = int(means.argmax()) if place is None else place
        others = means.copy()
        others[first] = -math.inf
        return first, int(others.argmax())

    first, second = pair(means)
    apart = _held_out(values, pair, sign)
    return Ahead(float(means[first] - means[second]), apart, *_bounds(first, means, error, level))


def _held_out(
    values: Sequence[Floats], pair: Callable[[Floats], tuple[int, int]], sign: int
) -> float | None:
    """Mean over the repeats of the difference between two values that the other repeats choose.

    None where one that is chosen was not measured once more.
    """
    counts = np.array([of.size for of in values])
    table = np.full((len(values), counts.max()), np.nan)
    for row, of in zip(table, values, strict=True):
        row[: of.size] = of
    sums, differences = np.nansum(table, axis=1), []
    for column in table.T:
        there = ~np.isnan(column) & (counts > 1)
        kept = (sums - np.where(there, column, 0.0)) / (counts - there)
        first, second = pair(sign * np.log(kept))
        if counts[first] < 2 or counts[second] < 2:
            return None
        differences.append(sign * math.log(column[first] / column[second]))
    known = [difference for difference in differences if math.isfinite(difference)]
    return float(np.mean(known)) if known else None


def _bounds(
    place: int, means: Floats, error: Errors, level: float
) -> tuple[float | None, float | None]:
    """Bounds of a value over the best of the others: each holds in 97.5 %.

    Below the least of the lower ends of its intervals against each other one; above the least of
    the upper ends, of which all hold together.
    """
    low = high = math.inf
    for other in range(len(means)):
        if other == place:
            continue
        known = error(place, other)
        if known is None:
            return None, None
        shift = float(means[place] - means[other])
        low = min(low, shift - t_quantile(known.degrees, level=level) * known.error)
        high = min(high, shift + t_quantile(known.degrees, len(means) - 1, level) * known.error)
    return low, high
