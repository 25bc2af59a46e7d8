"""The repeats of a point with their step accounts, and the step that its throughput stands for.

Efficiency has one definition, that of the throughput. With n samples in a step and the rate of
run i, T[i] = n / rate[i] is the run's step, and n over the mean rate of the repeats is the harmonic
mean of the T[i]. Every term of the ledger is therefore averaged with the weights 1 / T[i]: so the
terms add up to that step, and the ideal step over it is the efficiency of the table `scaling`.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scalesweep.analysis.blocks import Errors
from scalesweep.analysis.stats import Estimate, LogError, mean_of
from scalesweep.analysis.step_account import FINEST, REST, StepAccount
from scalesweep.analysis.step_work import BETWEEN, NAMED
from scalesweep.analysis.types import Floats
from scalesweep.tables.bookkeeping import ACCOUNT
from scalesweep.tables.points import ExperimentData, Measure, Point, place_of

# A rate that makes the steps of every point longer (or shorter) by one factor beyond this, within
# so much of it, is of other samples than the steps.
_OTHER, _ONE_FACTOR = 2.0, 0.02
# What is outside of the accounted steps has a line of its own from this share of a step on.
NOTABLE_OUTSIDE = 0.005
OUTSIDE = "outside"  # the term
NOTABLE = 0.02  # of a step: what is shorter shares no variance with other terms
_OF_SAMPLES = ("samples/s", "images/s")


def stated_accounts(data: ExperimentData, name: str = ACCOUNT) -> dict[int, StepAccount]:
    """The accounts that the records of an experiment's runs hold, by row of the summary.

    ``name``: the column, ACCOUNT or FIRST_EPOCH.
    """
    return {row: StepAccount(**noted) for row, noted in data.notes(name).items()}


class StepErrors:
    """The errors of steps and of their terms, by the runs of all points (``analysis.blocks``)."""

    def __init__(self, data: ExperimentData) -> None:
        self._data = data
        self.accounts: dict[int, StepAccount] = {}  # by row of the summary; all before a question
        self._of_steps: Mapping[str | None, Errors] = {}
        self._terms: dict[str | None, dict[Hashable, Floats]] = {}
        self._of_terms: dict[str | None, Errors] = {}

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
        source = point.source
        if source not in self._of_terms:
            known, shared = self._terms.get(source, {}), source != "imported"
            self._of_terms[source] = Errors(known, shared=shared, unlike=True)
        error = self._of_terms[source].mean((place_of(point), name))
        if error is not None:
            return LogError(error.error * float(values.mean()), error.degrees)
        return Errors({name: values}, logs=False).mean(name)

    def of_steps(self) -> Mapping[str | None, Errors]:
        """By source those of the accounted steps at all points."""
        if not self._of_steps:
            values = np.full(len(self._data.summary), math.nan)
            for row, account in self.accounts.items():
                values[row] = account.elapsed
            self._of_steps = self._data.errors_in(values)
        return self._of_steps


@dataclass(frozen=True)
class MeasuredSteps:
    """A point with the accounts of its repeats, all of one form.

    ``workers``: what it scales over. ``lengths``: seconds of a step of each repeat by the rate that
    its efficiency is taken from; None where there is no such rate, and the accounts' own are taken.
    ``rate``: that of these lengths, if all runs of the point have accounts. ``lined``: whether what
    is outside of the accounted steps has a line of its own; else it is unattributed.
    """

    data: ExperimentData
    point: Point
    accounts: Sequence[StepAccount]
    errors: StepErrors
    workers: float
    lengths: Floats | None = None
    rate: Measure | None = None
    lined: bool = False

    @property
    def form(self) -> str:
        """That of its accounts."""
        return self.accounts[0].form

    def term(self, name: str) -> Floats | None:
        """A term of the ledger, in s per step, of each repeat; None if one has none.

        Of host time, 0 in repeats that do not show it while others do: they have it elsewhere.
        Their mean is the term of the point: they are pseudo-values where repeats have weights.
        """
        if name == OUTSIDE:
            return self.outside if self.lined else None
        if name == REST and not self.lined:
            return self.rest
        return self._of_accounts(name)

    @property
    def rest(self) -> Floats | None:
        """What no term explains, with what is outside of the accounted steps, as ``term``."""
        values, outside = self._of_accounts(REST), self.outside
        return values if values is None or outside is None else values + outside

    def _of_accounts(self, name: str) -> Floats | None:
        values = [account.term(name) for account in self.accounts]
        if name in (BETWEEN, *NAMED) and any(value is not None for value in values):
            values = [0.0 if value is None else value for value in values]
        return None if None in values else self._weighted(np.array(values, np.float64))

    @property
    def elapsed(self) -> Floats:
        """The measured step, as ``term``."""
        return self._weighted(self._own if self.lengths is None else self.lengths)

    @property
    def _own(self) -> Floats:
        """Seconds of the accounted steps of each repeat."""
        return np.array([account.elapsed for account in self.accounts], np.float64)

    @property
    def step(self) -> Estimate:
        """The measured step in s, with the interval of the point's rate where it has one."""
        step, level = float(self.elapsed.mean()), self.data.level
        if self.rate is not None:
            mean = self.data.mean(self.point, self.rate)
            return mean.over(mean.value * step)
        error = self.errors.of_steps()[self.point.source].mean(place_of(self.point))
        if error is not None:
            return error.around(step, level)
        own = mean_of(self._own if self.lengths is None else self.lengths, level)
        return replace(own, value=step)

    def loss(self, base: "MeasuredSteps", ratio: float) -> Estimate:
        """What a step takes more than the ideal, ``ratio`` of the base's, in s.

        ideal x (1 / efficiency - 1) at the bounds of the efficiency: so the loss is clear of 0 just
        where the efficiency is clear of 1. The scatter of the ideal counts in full in the
        efficiency, and where time is lost as no less than in the difference.
        """
        step, ideal = float(self.elapsed.mean()), float(base.elapsed.mean()) * ratio
        if self.rate is not None and base.rate is not None:
            rates = self.data.compare(self.point, base.point, self.rate)
            whole = rates.over(rates.value * step)
        else:
            error = self.errors.of_steps()[self.point.source].ratio(
                place_of(self.point), place_of(base.point)
            )
            whole = Estimate(step) if error is None else error.around(step, self.data.level)
        return whole.less(ideal)

    @property
    def outside(self) -> Floats | None:
        """What the step of the throughput has and the accounted steps have not, as ``term``."""
        return None if self.lengths is None else self._weighted(self.lengths - self._own)

    @property
    def longer(self) -> float:
        """The step of the throughput over the accounted one."""
        return 1.0 if self.lengths is None else float(self.lengths.sum() / self._own.sum())

    @property
    def local_samples(self) -> float | None:
        """Samples of a worker (a rank or a device) in a step."""
        samples = self.point.samples
        return None if samples is None else samples / self.accounts[0].per_epoch / self.workers

    def _weighted(self, values: Floats) -> Floats:
        """Values whose mean is that of ``values`` with the weights 1 / length, and whose scatter
        is that of its error (linearised)."""
        if self.lengths is None:
            return values
        weights = 1 / self.lengths
        mean = float((weights * values).sum() / weights.sum())
        return np.asarray(mean + weights / weights.mean() * (values - mean))


def main_rate(data: ExperimentData) -> Measure | None:
    """The measure whose efficiency the first screen states, in its steady phase, if it is a rate
    of samples."""
    metric, phases = next(iter(data.ranked.items()), ("", []))
    if not metric or data.quantities[metric].unit not in _OF_SAMPLES:
        return None
    return metric, "later" if "later" in phases else phases[0]


def measured_steps(
    data: ExperimentData,
    series: Sequence[Sequence[Point]],
    known: Mapping[int, StepAccount],
    rate: Measure | None,
) -> list[list[MeasuredSteps]]:
    """The points of each series that have accounts, of the finest form of a point's runs.

    ``known``: accounts by row of the summary; ``rate``: that of ``main_rate``. No point has a
    rate where one has none, or where all rates are of other samples than the steps: all steps are
    of one kind. Where rates and steps disagree otherwise, it shows in ``outside``.
    """
    errors = StepErrors(data)
    groups = []
    for points in series:
        made = (_measured(data, point, known, errors, rate) for point in points)
        groups.append([each for each in made if each])
    every = [steps for group in groups for steps in group]
    longer = sorted(steps.longer for steps in every) or [1.0]
    other = longer[0] > _OTHER or longer[-1] < 1 / _OTHER
    other = other and longer[-1] <= longer[0] * (1 + _ONE_FACTOR)
    if all(steps.lengths is not None for steps in every) and not other:
        lined = _has_outside(every, rate)
        return [[replace(steps, lined=lined) for steps in group] for group in groups]
    return [[replace(steps, lengths=None, rate=None) for steps in group] for group in groups]


def _measured(
    data: ExperimentData,
    point: Point,
    known: Mapping[int, StepAccount],
    errors: StepErrors,
    rate: Measure | None,
) -> MeasuredSteps | None:
    accounts = {row: known[row] for row in point.rows.tolist() if row in known}
    finest = min((a.form for a in accounts.values()), key=FINEST.index, default=None)
    accounts = {row: account for row, account in accounts.items() if account.form == finest}
    if not accounts:
        return None
    errors.accounts |= accounts
    ranks = next(iter(accounts.values())).ranks
    workers = float(point.values.get(data.scale) or ranks)
    lengths = None if rate is None else _lengths(data, point, accounts, rate, ranks)
    whole = lengths is not None and len(accounts) == point.rows.size
    own = list(accounts.values())
    return MeasuredSteps(data, point, own, errors, workers, lengths, rate if whole else None)


def _lengths(
    data: ExperimentData,
    point: Point,
    accounts: Mapping[int, StepAccount],
    rate: Measure,
    ranks: int,
) -> Floats | None:
    """Seconds of a step of each run by its main rate; None where that is of something else."""
    if point.samples is None:
        return None
    share = 1.0 if data.quantities[rate[0]].scope == "total" else float(ranks)
    rates = data.numbers(rate[0], "mean", rate[1])[list(accounts)]
    if not (np.isfinite(rates) & (rates > 0)).all():
        return None
    per_epoch = np.array([account.per_epoch for account in accounts.values()])
    return np.asarray(point.samples / share / per_epoch / rates)


def _has_outside(every: Sequence[MeasuredSteps], rate: Measure | None) -> bool:
    """Whether what is outside of the accounted steps is worth a line of its own.

    Rates of epochs are of the same epochs as the accounts; they differ by how these are averaged.
    """
    known = [(steps.outside, steps.elapsed) for steps in every]
    shares = [float(np.abs(out / step).max()) for out, step in known if out is not None]
    return rate is not None and rate[1] == "run" and max(shares, default=0.0) > NOTABLE_OUTSIDE
