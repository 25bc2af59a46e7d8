"""Whether two points differ: the p values behind "higher", "best" and "below" in sentences."""

import math
from typing import Any

import numpy as np

from scalesweep.analysis.metrics import column
from scalesweep.analysis.stats import (
    SIGNIFICANT,
    LogError,
    joined,
    ratio_p,
    t_chance,
    t_quantile,
    without_interval,
)
from scalesweep.core.formatting import finite
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.findings.base import blocks_of, point_key, repeats_of

# Degrees of freedom of an interval whose source does not say how many repeats it is of.
_UNSTATED = 2

Span = tuple[float | None, float | None]


class Differences:
    """Tests of one metric's means between the points of an experiment, in one phase.

    On the logarithms: by what the blocks that both points ran in tell (``Blocks.ratio_p``), else
    Welch's t over the repeats, else by the intervals that the tables have.
    """

    def __init__(self, results: ExperimentResults, metric: str, phase: str) -> None:
        self._results, self._metric, self.phase = results, metric, phase
        self._repeats = repeats_of(results, metric, phase)
        self._blocks = blocks_of(results, metric, phase)

    def p(self, first: Row, other: Row) -> float:
        """Two-sided p value of two points' means being the same.

        NaN where a point has no interval, or a mean is not positive. Where repeats were added until
        points were precise, in terms of the plain 95 %, as ``results.level`` covers these.
        """
        name = column(self._metric, "mean", self.phase)
        if not finite(first.get(name), other.get(name)) or min(first[name], other[name]) <= 0:
            return math.nan
        apart = math.log(first[name] / other[name])
        p = self._of_repeats(first, other, apart)
        if p is None:
            sides = [self._of_interval(row) for row in (first, other)]
            known = [side for side in sides if side is not None]
            if len(known) < len(sides):
                return math.nan
            error = joined(known)
            p = t_chance(apart, error.error, error.degrees)
        return self._plain(p)

    def p_of_share(self, point: Row, base: Row, share: float, ends: Span, of: float) -> float:
        """Two-sided p value of ``share``, a ratio to the base times a constant, being ``of``.

        By the error of that ratio, else by the interval ``ends`` of the share.
        """
        if share <= 0:
            return math.nan
        p = self._of_repeats(point, base, math.log(share / of))
        if p is None:
            count = min(int(row.get("repeats") or 1) for row in (point, base))
            p = share_p(share, *ends, count, of)
        return self._plain(p)

    def _plain(self, p: float) -> float:
        return min(p * SIGNIFICANT / (1 - self._results.level), 1.0)

    def _of_repeats(self, first: Row, other: Row, apart: float) -> float | None:
        keys = (point_key(self._results, first), point_key(self._results, other))
        sides = [np.array(self._repeats.get(key, [])) for key in keys]
        if without_interval(*sides):
            return None
        top, bottom = keys
        p = self._blocks[top].ratio_p(top, bottom, apart) if top in self._blocks else None
        return ratio_p(sides[0], sides[1], apart) if p is None else p

    def _of_interval(self, row: Row) -> LogError | None:
        """By the interval of a mean in the tables."""
        low, high = (row.get(column(self._metric, end, self.phase)) for end in ("low", "high"))
        return interval_error(low, high, int(row.get("repeats") or 1) - 1)


def share_p(share: float, low: float | None, high: float | None, repeats: Any, of: float) -> float:
    """Two-sided p value of a share with this 95 % interval being ``of``, of so many repeats.

    The degrees of freedom are those of one side alone, the least that the interval may have. NaN
    where the error is not known, or the share is not positive.
    """
    count = int(repeats) if finite(repeats) else 1
    error = interval_error(low, high, count - 1)
    if error is None or share <= 0:
        return math.nan
    return t_chance(math.log(share / of), error.error, error.degrees)


def interval_error(low: float | None, high: float | None, degrees: int) -> LogError | None:
    """Of the logarithm of a mean or ratio, by its 95 % interval, taken by Student's t with as many
    degrees of freedom (0: not known); None without an interval, or where it reaches to 0."""
    if low is None or high is None or not finite(low, high) or low <= 0:
        return None
    degrees = degrees if degrees > 0 else _UNSTATED
    return LogError(math.log(high / low) / 2 / t_quantile(degrees), degrees)
