"""Whether repeated measurements of the same thing change with time: trends and jumps.

Pure functions on NumPy arrays. Values are logarithms, so that a change is a ratio, whatever the
unit. No report rests on a single run: an outlier, such as a cold first run, is no drift
(``scalesweep.analysis.outliers.outliers`` names it). The tests take the scatter from run to run as
independent; a machine that is disturbed for minutes at a time breaks that, and what they then find
is drift too, if not a steady one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scalesweep.analysis.stats import SEED, t_quantile
from scalesweep.analysis.types import Floats, Places

# Fewer runs leave too few degrees of freedom for an interval that says anything.
LEAST_RUNS = 5
LEAST_SIDE = 3  # of a jump
# A change below 0.1 % is not worth a warning, however sure it is.
SMALLEST = 1e-3
# A jump is looked for at every place: of random orders so few may show one as clear.
JUMP_LEVEL = 0.01
PERMUTATIONS = 2000
MOST_VALUES = 1_000_000  # of random orders in memory at once


@dataclass(frozen=True)
class Trend:
    """Change of the logarithm from the first run to the last, with its 95 % interval.

    ``scatter`` is the standard deviation of single runs around the line, ``span_s`` the seconds
    between the first start and the last. ``clear``: whether it is drift. The interval leaves out 0,
    no single run scatters as far, and both hold without the run that lies farthest off too.
    """

    change: float
    low: float
    high: float
    scatter: float
    span_s: float
    runs: int
    clear: bool


@dataclass(frozen=True)
class Jump:
    """Change of the logarithm at run ``place`` (in order of start) and what single runs scatter.

    ``share`` of random orders of the same values show a jump as clear at some place. ``clear``:
    whether it is one. Such orders are rare, no single run scatters as far, and both hold without
    the run that lies farthest off too.
    """

    place: int
    change: float
    scatter: float
    share: float
    clear: bool


def trend(times: ArrayLike, logs: ArrayLike, groups: Sequence[int] | None = None) -> Trend | None:
    """Line through values over their start times by least squares, with Student's t interval.

    ``groups``: the point of every run, where there are several: each has a level of its own, and
    all the same slope (within-group regression). None with fewer than four runs more than points
    (five of one point), or where all runs of every point began at once.
    """
    start, values = np.asarray(times, np.float64), np.asarray(logs, np.float64)
    names = np.zeros(start.size) if groups is None else np.asarray(groups)
    enough = start.size >= np.unique(names).size + LEAST_RUNS - 1
    whole = _line(start, values, names) if enough else None
    if whole is None:
        return None
    line, rest = whole
    if not line.clear:
        return line
    kept = np.arange(start.size) != np.argmax(np.abs(rest))
    fewer = _line(start[kept], values[kept], names[kept])
    return replace(line, clear=fewer is not None and fewer[0].clear)


def _line(start: Floats, values: Floats, names: NDArray[Any]) -> tuple[Trend, Floats] | None:
    """The line, ``clear`` for these runs alone, and how far off each of them lies."""
    _, group = np.unique(names, return_inverse=True)
    # One for the level of each group and one for the slope.
    degrees = start.size - (int(group.max()) + 1 if start.size else 0) - 1
    if degrees < 2:
        return None
    x, y = _centred(start, group), _centred(values, group)
    weight = float(x @ x)
    if weight == 0:
        return None
    slope = float(x @ y) / weight
    rest = y - slope * x
    scatter = float(np.sqrt((rest @ rest) / degrees))
    span = float(start.max() - start.min())
    half = float(t_quantile(degrees) * scatter / np.sqrt(weight) * span)
    change = slope * span
    clear = abs(change) > max(half, scatter, SMALLEST)
    return Trend(change, change - half, change + half, scatter, span, start.size, clear), rest


def _centred(values: Floats, group: Places) -> Floats:
    """Values less the mean of their group."""
    return np.asarray(values - (np.bincount(group, values) / np.bincount(group))[group])


def jump(logs: ArrayLike) -> Jump | None:
    """The clearest jump in values in the order of their start.

    A side has three runs or more and a tenth of all: one outlier at an end is no jump. Clearest is
    where the sides' means differ most for their sizes; how often chance alone does as well is
    counted in random orders (a permutation test), so that having looked everywhere is allowed for.
    None with too few runs.
    """
    values = np.asarray(logs, np.float64)
    whole = _cut(values)
    if whole is None:
        return None
    step, rest = whole
    if not step.clear:
        return step
    fewer = _cut(np.delete(values, np.argmax(np.abs(rest))))
    return replace(step, clear=fewer is not None and fewer[0].clear)


def _cut(values: Floats) -> tuple[Jump, Floats] | None:
    """The jump, ``clear`` for these runs alone, and how far off the sides' means each lies."""
    n = values.size
    side = max(LEAST_SIDE, n // 10)
    if n < 2 * side:
        return None
    values = values - values.mean()
    # 1e-12: sums of the same values in another order are not equal to the last bit.
    clearest = _between(values[None, :], side)[0] * (1 - 1e-12)
    best = int(np.argmax(clearest))
    generator = np.random.default_rng((SEED, n))
    as_clear = 0
    for rows in np.array_split(np.arange(PERMUTATIONS), 1 + PERMUTATIONS * n // MOST_VALUES):
        shuffled = generator.permuted(np.tile(values, (rows.size, 1)), axis=1)
        as_clear += int((_between(shuffled, side).max(axis=1) >= clearest[best]).sum())
    place = best + side
    before, after = values[:place], values[place:]
    rest = np.concatenate([before - before.mean(), after - after.mean()])
    change = float(after.mean() - before.mean())
    scatter = float(np.sqrt((rest @ rest) / (n - 2)))
    share = (as_clear + 1) / (PERMUTATIONS + 1)
    clear = share < JUMP_LEVEL and abs(change) > max(scatter, SMALLEST)
    return Jump(place, change, scatter, share, clear), rest


def clearer_jump(logs: ArrayLike, steady: Trend, sessions: Sequence[int] = ()) -> Jump | None:
    """The jump in these values, if there is one that fits them better than their trend.

    One where a session begins (``sessions``: at which runs) always does: a line across a pause
    tells of no change in time.
    """
    sudden = jump(logs)
    if sudden is None or not sudden.clear:
        return None
    better = sudden.place in sessions or not steady.clear or sudden.scatter < steady.scatter
    return sudden if better else None


def _between(values: Floats, side: int) -> Floats:
    """Sum of squares between the sides of every place to cut, [row, place]; rows have mean 0."""
    n = values.shape[1]
    sizes = np.arange(side, n - side + 1)
    sums = np.cumsum(values, axis=1)[:, sizes - 1]
    return np.asarray(sums**2 * n / (sizes * (n - sizes)))
