"""Step accounts of runs that started in randomised blocks: what cancels between points."""

import math
from collections.abc import Hashable, Mapping

import numpy as np

from scalesweep.analysis.blocks import Blocks, interval_of
from scalesweep.analysis.stats import Interval, LogError, mean_interval, ratio_interval
from scalesweep.analysis.step_account import StepAccount
from scalesweep.analysis.types import Floats
from scalesweep.tables.points import ExperimentData, Measure, Point, place_of


class StepBlocks:
    """Accounts of an experiment's runs by row of the summary, and the blocks they form."""

    def __init__(self, data: ExperimentData) -> None:
        self._data = data
        self._accounts: dict[int, dict[int, StepAccount]] = {}
        self._kept: dict[tuple[int | None, str], Mapping[Hashable, Blocks]] = {}

    def add(self, point: Point, accounts: Mapping[int, StepAccount]) -> None:
        """Take a point's accounts; all points come before the first question."""
        self._accounts[place_of(point)] = dict(accounts)

    def drifted(self, point: Point, other: Point) -> bool:
        """Whether two points ran in the same blocks, whole, and their step times show that these
        differ (``Blocks.drifted``)."""
        blocks = self._blocks(None, "elapsed").get(place_of(point))
        return blocks is not None and place_of(other) in blocks.places and blocks.drifted

    def error(self, point: Point, base: Point, of: str) -> LogError | None:
        """Of the logarithm of the base's mean computation over a point's ``of`` (an attribute of
        its accounts), within blocks; None where there are none."""
        blocks = self._blocks(place_of(base), of).get(place_of(point))
        return blocks.ratio_error(place_of(point), place_of(base)) if blocks else None

    def step(self, point: Point, own: Floats, rate: Measure | None) -> Interval:
        """95 % interval of a point's step over the mean of ``own``, its repeats' steps.

        That of the point's mean ``rate``, inverted; without one that of ``own`` itself.
        """
        if rate is not None:
            return _inverse(
                float(self._data.repeats(point, rate).mean()), self._data.interval(point, rate)
            )
        blocks = self._blocks(None, "elapsed").get(place_of(point))
        error = blocks.mean_error(place_of(point)) if blocks else None
        bounds = interval_of(float(own.mean()), error) if error else None
        return _over(bounds or mean_interval(own, self._data.level), float(own.mean()))

    def longer(
        self, compared: Point, base: Point, steps: tuple[Floats, Floats], rate: Measure | None
    ) -> Interval:
        """95 % interval of how many times as long a point's step is as the base's, over that ratio.

        ``steps``: of the repeats of both. That of the ratio of the mean ``rate``, as the efficiency
        in the table `scaling` has it, inverted; without one that of ``steps`` themselves.
        """
        if rate is not None:
            means = [float(self._data.repeats(point, rate).mean()) for point in (compared, base)]
            return _inverse(means[0] / means[1], self._data.ratio(compared, base, rate))
        here, there = steps
        ratio = float(here.mean()) / float(there.mean())
        blocks = self._blocks(None, "elapsed").get(place_of(compared))
        error = blocks.ratio_error(place_of(compared), place_of(base)) if blocks else None
        bounds = interval_of(ratio, error) if error else None
        return _over(bounds or ratio_interval(here, there, level=self._data.level), ratio)

    def _blocks(self, base: int | None, of: str) -> Mapping[Hashable, Blocks]:
        """The blocks of an attribute at all points, at the base of ``mean_busy``."""
        if (base, of) not in self._kept:
            values = np.full(len(self._data.summary), math.nan)
            for place, accounts in self._accounts.items():
                for row, account in accounts.items():
                    value = getattr(account, "mean_busy" if place == base else of)
                    values[row] = math.nan if value is None else value
            self._kept[base, of] = self._data.blocks(values)
        return self._kept[base, of]


def _inverse(value: float, bounds: Interval) -> Interval:
    """Bounds of the inverse of a value, over that inverse."""
    return Interval(value / bounds.high, value / bounds.low, bounds.method, bounds.degrees)


def _over(bounds: Interval, value: float) -> Interval:
    """Bounds of a value over the value."""
    return Interval(bounds.low / value, bounds.high / value, bounds.method, bounds.degrees)
