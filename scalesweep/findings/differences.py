"""Ratios of points, and the p values behind "higher", "best" and "below" in sentences."""

import math
from collections.abc import Hashable
from typing import Any

import numpy as np

from scalesweep.analysis.blocks import Errors, layouts, start_seconds
from scalesweep.analysis.metrics import column
from scalesweep.analysis.stats import (
    MISSING,
    SIGNIFICANT,
    Interval,
    LogError,
    joined,
    t_chance,
    t_quantile,
)
from scalesweep.analysis.types import Floats
from scalesweep.core.formatting import finite
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.findings.base import point_key
from scalesweep.tables.machine_load import LEFT_OUT

# Degrees of freedom of an interval whose source does not say how many repeats it is of.
_UNSTATED = 2

Span = tuple[float | None, float | None]


class Differences:
    """Ratios of one metric's means between the points of an experiment, in one phase.

    Interval and p value have one error: what all repeats tell (``analysis.blocks``), else that of
    the intervals in the tables.
    """

    def __init__(self, results: ExperimentResults, metric: str, phase: str) -> None:
        self._results, self._metric, self.phase = results, metric, phase
        self._errors: dict[Any, Errors] = {}
        name = column(metric, "mean", phase)
        wanted = ["source", "repeat", "started", LEFT_OUT, name, *results.axes]
        rows = [
            row for row in results.rows("runs", wanted)
            if finite(row.get(name)) and not row.get(LEFT_OUT)
        ]  # fmt: skip
        self._repeats: dict[Key, list[float]] = {}
        for row in rows:
            self._repeats.setdefault(point_key(results, row), []).append(float(row[name]))
        for source in dict.fromkeys(row["source"] for row in rows):
            of_source = [row for row in rows if row["source"] == source]
            self._errors[source] = self._of_source(source, of_source, name)

    def _of_source(self, source: str, rows: list[Row], name: str) -> Errors:
        """None of imported runs, and of repeats that were added until points were precise, whose
        number depends on their scatter, is shared."""
        keys: list[Hashable] = [point_key(self._results, row) for row in rows]
        began = [start_seconds(row.get("started")) for row in rows]
        taken = np.array([row[name] for row in rows], np.float64)
        blocks = layouts(keys, [row.get("repeat", 0) for row in rows], began)
        return Errors(
            {key: self.repeats_at(key) for key in self._repeats if key[-1] == source},
            [(layout.points, taken[layout.runs]) for layout in blocks],
            shared=source != "imported" and not self._results.entry.get("repeats"),
        )

    def repeats_at(self, key: Key) -> Floats:
        """Values of the finished runs of a point, by its ``point_key``."""
        return np.array(self._repeats.get(key, []), np.float64)

    def repeats(self, row: Row) -> Floats:
        """Values of the finished runs of a point."""
        return self.repeats_at(point_key(self._results, row))

    def ratio(self, first: Row, other: Row, among: int = 1) -> tuple[float, Interval] | None:
        """Ratio of two points' means with its 95 % interval, which is missing where nothing tells
        it; None where one has no repeats or one that is not positive. ``among``: as in
        ``t_quantile``."""
        sides = [self.repeats(first), self.repeats(other)]
        if not all(side.size and side.min() > 0 for side in sides):
            return None
        value = float(sides[0].mean() / sides[1].mean())
        error = self._error(first, other)
        level = self._results.level
        return value, MISSING if error is None else error.interval(value, level, among)

    def p(self, first: Row, other: Row) -> float:
        """Two-sided p value of two points' means being the same.

        NaN where a point has no interval, or a mean is not positive. Where repeats were added until
        points were precise, in terms of the plain 95 %, as ``results.level`` covers these.
        """
        name = column(self._metric, "mean", self.phase)
        if not finite(first.get(name), other.get(name)) or min(first[name], other[name]) <= 0:
            return math.nan
        error = self._error(first, other)
        if error is None:
            sides = [self._of_interval(row) for row in (first, other)]
            known = [side for side in sides if side is not None]
            if len(known) < len(sides):
                return math.nan
            error = joined(known)
        return self._plain(error.p(math.log(first[name] / other[name])))

    def p_of_share(self, point: Row, base: Row, share: float, ends: Span, of: float) -> float:
        """Two-sided p value of ``share``, a ratio to the base times a constant, being ``of``.

        By the error of that ratio, else by the interval ``ends`` of the share.
        """
        if share <= 0:
            return math.nan
        if (error := self._error(point, base)) is not None:
            return self._plain(error.p(math.log(share / of)))
        count = min(int(row.get("repeats") or 1) for row in (point, base))
        return self._plain(share_p(share, *ends, count, of))

    def deciding(
        self, point: Row, base: Row, share: float, ends: Span, cut: float
    ) -> tuple[float, float] | None:
        """The interval of a share that excludes just what ``p_of_share`` puts below ``cut``."""
        error = self._error(point, base)
        if error is None:
            count = min(int(row.get("repeats") or 1) for row in (point, base))
            error = interval_error(*ends, count - 1)
        if error is None or share <= 0:
            return None
        among = SIGNIFICANT / (1 - self._results.level)
        bounds = error.interval(share, 1 - cut / among)
        return bounds.low, bounds.high

    def _plain(self, p: float) -> float:
        return min(p * SIGNIFICANT / (1 - self._results.level), 1.0)

    def _error(self, first: Row, other: Row) -> LogError | None:
        errors = self._errors.get(first["source"])
        if errors is None or first["source"] != other["source"]:
            return None
        return errors.ratio(point_key(self._results, first), point_key(self._results, other))

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
