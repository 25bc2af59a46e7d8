"""Step accounts of runs that started in randomised blocks: what cancels between points."""

import math
from collections.abc import Hashable, Mapping

import numpy as np

from scalesweep.analysis.blocks import Blocks
from scalesweep.analysis.stats import LogError
from scalesweep.analysis.step_account import StepAccount
from scalesweep.tables.points import ExperimentData, Point, place_of


class StepBlocks:
    """Accounts of an experiment's runs by row of the summary, and the blocks they form."""

    def __init__(self, data: ExperimentData) -> None:
        self._data = data
        self._accounts: dict[int, dict[int, StepAccount]] = {}
        self._kept: dict[tuple[int | None, str], Mapping[Hashable, Blocks]] = {}

    def add(self, point: Point, accounts: Mapping[int, StepAccount]) -> None:
        """Take a point's accounts; all points come before the first question."""
        self._accounts[place_of(point)] = dict(accounts)

    def drifted(self, one: Point, other: Point) -> bool:
        """Whether two points ran in the same blocks, whole, and their step times show that these
        differ (``Blocks.drifted``)."""
        blocks = self._blocks(None, "elapsed").get(place_of(one))
        return blocks is not None and place_of(other) in blocks.places and blocks.drifted

    def error(self, one: Point, base: Point, of: str) -> LogError | None:
        """Of the logarithm of the base's mean computation over a point's ``of`` (an attribute of
        its accounts), within blocks; None where there are none."""
        blocks = self._blocks(place_of(base), of).get(place_of(one))
        return blocks.ratio_error(place_of(one), place_of(base)) if blocks else None

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
