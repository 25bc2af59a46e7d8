"""The errors of steps and of their terms, by the runs of all points (``analysis.blocks``)."""

import math
from collections.abc import Hashable, Mapping

import numpy as np

from scalesweep.analysis.blocks import Errors
from scalesweep.analysis.stats import MISSING, Interval, LogError, mean_interval
from scalesweep.analysis.step_account import StepAccount
from scalesweep.analysis.types import Floats
from scalesweep.tables.points import ExperimentData, Measure, Point, place_of

NOTABLE = 0.02  # of a step: what is shorter shares no variance with other terms


class StepErrors:
    """Accounts of an experiment's runs by row of the summary, and the errors of what is in them."""

    def __init__(self, data: ExperimentData) -> None:
        self._data = data
        self._accounts: dict[int, dict[int, StepAccount]] = {}
        self._kept: dict[tuple[int | None, str], Mapping[str | None, Errors]] = {}
        self._terms: dict[str | None, dict[Hashable, Floats]] = {}
        self._of_terms: dict[str | None, Errors] = {}

    def add(self, point: Point, accounts: Mapping[int, StepAccount]) -> None:
        """Take a point's accounts; all points come before the first question."""
        self._accounts[place_of(point)] = dict(accounts)

    def add_term(self, point: Point, name: str, values: Floats, step: float) -> None:
        """Take what a term of a step is in each repeat of a point; all before the first
        question."""
        if abs(float(values.mean())) >= NOTABLE * step:
            self._terms.setdefault(point.source, {})[place_of(point), name] = values

    def of_term(self, point: Point, name: str, values: Floats) -> LogError | None:
        """Standard error of the mean of a term, in its unit.

        Terms of a step scatter about alike on logarithms, so they tell of each other's variance;
        one that is short, or not positive in each run, has its own repeats alone. None of one run,
        and of runs that are all the same, unless these have none of it.
        """
        if not values.any():
            return LogError(0.0, math.inf)
        if point.source not in self._of_terms:
            known = self._terms.get(point.source, {})
            self._of_terms[point.source] = Errors(
                known, shared=point.source != "imported", unlike=True
            )
        error = self._of_terms[point.source].mean((place_of(point), name))
        if error is not None:
            return LogError(error.error * float(values.mean()), error.degrees)
        return Errors({name: values}, logs=False).mean(name)

    def error(self, point: Point, base: Point, of: str) -> LogError | None:
        """Of the logarithm of the base's mean computation over a point's ``of`` (an attribute of
        its accounts); None where nothing tells it."""
        errors = self._errors(place_of(base), of)[point.source]
        return errors.ratio(place_of(point), place_of(base))

    def step(self, point: Point, own: Floats, rate: Measure | None) -> Interval:
        """95 % interval of a point's step over the mean of ``own``, its repeats' steps.

        That of the point's mean ``rate``, inverted; without one that of ``own`` itself.
        """
        if rate is not None:
            return _inverse(
                float(self._data.repeats(point, rate).mean()), self._data.interval(point, rate)
            )
        error = self._errors(None, "elapsed")[point.source].mean(place_of(point))
        if error is not None:
            return error.interval(1.0, self._data.level)
        return _over(mean_interval(own, self._data.level), float(own.mean()))

    def longer(self, compared: Point, base: Point, rate: Measure | None) -> Interval:
        """95 % interval of how many times as long a point's step is as the base's, over that ratio.

        That of the ratio of the mean ``rate``, as the efficiency in the table `scaling` has it,
        inverted; without one that of the steps themselves.
        """
        if rate is not None:
            means = [float(self._data.repeats(point, rate).mean()) for point in (compared, base)]
            ratio = self._data.compare(compared, base, rate)
            bounds = Interval(ratio.low, ratio.high, ratio.how, ratio.df)
            return _inverse(means[0] / means[1], bounds)
        errors = self._errors(None, "elapsed")[compared.source]
        error = errors.ratio(place_of(compared), place_of(base))
        return MISSING if error is None else error.interval(1.0, self._data.level)

    def _errors(self, base: int | None, of: str) -> Mapping[str | None, Errors]:
        """By source those of an attribute at all points, at the base of ``mean_busy``."""
        if (base, of) not in self._kept:
            values = np.full(len(self._data.summary), math.nan)
            for place, accounts in self._accounts.items():
                for row, account in accounts.items():
                    value = getattr(account, "mean_busy" if place == base else of)
                    values[row] = math.nan if value is None else value
            self._kept[base, of] = self._data.errors_in(values)
        return self._kept[base, of]


def _inverse(value: float, bounds: Interval) -> Interval:
    """Bounds of the inverse of a value, over that inverse."""
    return Interval(value / bounds.high, value / bounds.low, bounds.method, bounds.degrees)


def _over(bounds: Interval, value: float) -> Interval:
    """Bounds of a value over the value."""
    return Interval(bounds.low / value, bounds.high / value, bounds.method, bounds.degrees)
