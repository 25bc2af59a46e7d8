"""Whether repeated measurements of the same thing change with time.

Pure functions on NumPy arrays. Values are logarithms, so that a change is a ratio, whatever the
unit. No report rests on a single run: an outlier, such as a cold first run, is no drift
(``scalesweep.analysis.stats.outliers`` names it). The tests take the scatter from run to run as
independent; a machine that is disturbed for minutes at a time breaks that, and what they then find
is drift too, if not a steady one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scalesweep.analysis.stats import t_quantile
from scalesweep.analysis.types import Floats, Places

# Fewer runs leave too few degrees of freedom for an interval that says anything.
LEAST_RUNS = 5
# A change below 0.1 % is not worth a warning, however sure it is.
SMALLEST = 1e-3


@dataclass(frozen=True)
class Trend:
    """Change of the logarithm from the first run to the last, with its 95 % interval.

    ``span_s``: seconds between the first start and the last. ``clear``: whether it is drift. The
    interval leaves out 0, no single run scatters as far, and both hold without the run that lies
    farthest off too.
    """

    change: float
    low: float
    high: float
    span_s: float
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
    return Trend(change, change - half, change + half, span, clear), rest


def _centred(values: Floats, group: Places) -> Floats:
    """Values less the mean of their group."""
    return np.asarray(values - (np.bincount(group, values) / np.bincount(group))[group])
