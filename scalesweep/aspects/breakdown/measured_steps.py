"""The repeats of a point with their step accounts, and the step that its throughput stands for.

Efficiency has one definition, that of the throughput. With n samples in a step and the rate of
run i, T[i] = n / rate[i] is the run's step, and n over the mean rate of the repeats is the harmonic
mean of the T[i]. Every term of the ledger is therefore averaged with the weights 1 / T[i]: so the
terms add up to that step, and the ideal step over it is the efficiency of the table `scaling`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from scalesweep.analysis.stats import Interval
from scalesweep.analysis.step_account import StepAccount
from scalesweep.analysis.step_work import BETWEEN, NAMED
from scalesweep.analysis.types import Floats
from scalesweep.aspects.breakdown.step_errors import StepErrors
from scalesweep.tables.machine_terms import Least
from scalesweep.tables.points import ExperimentData, Measure, Point

# A rate that makes the steps of every point longer (or shorter) by one factor beyond this, within
# so much of it, is of other samples than the steps.
_OTHER, _ONE_FACTOR = 2.0, 0.02
# What is outside of the accounted steps has a line of its own from this share of a step on.
NOTABLE_OUTSIDE = 0.005
_OF_SAMPLES = ("samples/s", "images/s")


@dataclass(frozen=True)
class MeasuredSteps:
    """A point with the accounts of its repeats, all of one form.

    ``workers``: what it scales over. ``lengths``: seconds of a step of each repeat by the rate that
    its efficiency is taken from; None where there is no such rate, and the accounts' own are taken.
    ``rate``: that of these lengths, if all runs of the point have accounts.
    ``least``: what the machine needs for terms, of those that it has probes for.
    """

    point: Point
    accounts: Sequence[StepAccount]
    steps: StepErrors
    workers: float
    lengths: Floats | None = None
    least: Mapping[str, Least] = field(default_factory=dict)
    rate: Measure | None = None

    def term(self, name: str) -> Floats | None:
        """A term of the ledger, in s per step, of each repeat; None if one has none.

        Of host time, 0 in repeats that do not show it while others do: they have it elsewhere.
        Their mean is the term of the point: they are pseudo-values where repeats have weights.
        """
        values = [getattr(account, name) for account in self.accounts]
        if name in (BETWEEN, *NAMED) and any(value is not None for value in values):
            values = [0.0 if value is None else value for value in values]
        return None if None in values else self._weighted(np.array(values, np.float64))

    @property
    def elapsed(self) -> Floats:
        """The measured step, as ``term``."""
        return self._weighted(self._lengths)

    @property
    def _lengths(self) -> Floats:
        """Seconds of a step of each repeat."""
        if self.lengths is not None:
            return self.lengths
        return np.array([account.elapsed for account in self.accounts], np.float64)

    @property
    def step_interval(self) -> Interval:
        """95 % interval of the measured step in s, that of the point's rate where it has one."""
        bounds = self.steps.step(self.point, self._lengths, self.rate)
        return _times(bounds, float(self.elapsed.mean()))

    def loss_interval(self, base: "MeasuredSteps", ratio: float) -> Interval:
        """95 % interval in s of what a step takes more than the ideal, ``ratio`` of the base's.

        ideal x (1 / efficiency - 1) at the bounds of the efficiency: so the loss is clear of 0 just
        where the efficiency is clear of 1. The scatter of the ideal counts in full in the
        efficiency, and where time is lost as no less than in the difference.
        """
        rate = self.rate if base.rate is not None else None
        bounds = self.steps.longer(self.point, base.point, rate)
        step, ideal = float(self.elapsed.mean()), float(base.elapsed.mean()) * ratio
        whole = _times(bounds, step)
        return replace(whole, low=whole.low - ideal, high=whole.high - ideal)

    @property
    def outside(self) -> Floats | None:
        """What the step of the throughput has and the accounted steps have not, as ``term``."""
        if self.lengths is None:
            return None
        own = np.array([account.elapsed for account in self.accounts])
        return self._weighted(self.lengths - own)

    @property
    def longer(self) -> float:
        """The step of the throughput over the accounted one."""
        own = sum(account.elapsed for account in self.accounts)
        return float(self._lengths.sum()) / own

    @property
    def clocks(self) -> Floats | None:
        """The clock of each repeat's busy cores, MHz; None where one is not known."""
        clocks = [account.clock_mhz for account in self.accounts]
        return None if None in clocks else np.array(clocks, np.float64)

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


def _times(bounds: Interval, value: float) -> Interval:
    """Bounds that are over a value, of the value."""
    return replace(bounds, low=bounds.low * value, high=bounds.high * value)


def main_rate(data: ExperimentData) -> Measure | None:
    """The measure whose efficiency the first screen states, if it is a rate of samples.

    The same as ``ExperimentResults.main`` takes, in its steady phase.
    """
    entry = data.experiment
    rows = list(data.row_of.values())
    known: dict[str, list[str]] = {}
    for metric, phase in data.measures:
        if np.isfinite(data.numbers(metric, "mean", phase)[rows]).any():
            known.setdefault(metric, []).append(phase)
    wanted = [entry["main_metric"] or "", "total_throughput", *entry["metrics"], *known]
    metric = next((name for name in wanted if name in known), "")
    if not metric or data.quantities[metric].unit not in _OF_SAMPLES:
        return None
    return metric, "later" if "later" in known[metric] else known[metric][0]


def measured_steps(
    data: ExperimentData,
    point: Point,
    accounts: Mapping[int, StepAccount],
    steps: StepErrors,
    rate: Measure | None,
) -> MeasuredSteps:
    """A point with accounts by row of the summary, which ``steps`` takes too; ``rate``: that of
    ``main_rate``."""
    steps.add(point, accounts)
    measured = list(accounts.values())
    workers = float(point.values.get(data.scale) or measured[0].ranks)
    lengths = None if rate is None else _lengths(data, point, accounts, rate)
    whole = lengths is not None and len(measured) == point.rows.size
    return MeasuredSteps(point, measured, steps, workers, lengths, rate=rate if whole else None)


def _lengths(
    data: ExperimentData, point: Point, accounts: Mapping[int, StepAccount], measure: Measure
) -> Floats | None:
    """Seconds of a step of each run by its main rate; None where that is of something else."""
    if point.samples is None:
        return None
    ranks = float(next(iter(accounts.values())).ranks)
    share = 1.0 if data.quantities[measure[0]].scope == "total" else ranks
    rates = data.numbers(measure[0], "mean", measure[1])[list(accounts)]
    if not (np.isfinite(rates) & (rates > 0)).all():
        return None
    per_epoch = np.array([account.per_epoch for account in accounts.values()])
    return np.asarray(point.samples / share / per_epoch / rates)


def by_throughput(
    groups: Sequence[Sequence[MeasuredSteps | None]],
) -> list[list[MeasuredSteps | None]]:
    """The same points; without their rates where one has none, or where all rates are of other
    samples than the steps: all steps are of one kind. Where rates and steps disagree otherwise, it
    shows in ``outside``."""
    every = [steps for group in groups for steps in group if steps]
    if all(steps.lengths is not None for steps in every) and not _of_other_samples(every):
        return [list(group) for group in groups]
    return [
        [steps and replace(steps, lengths=None, rate=None) for steps in group] for group in groups
    ]


def _of_other_samples(every: Sequence[MeasuredSteps]) -> bool:
    longer = sorted(steps.longer for steps in every) or [1.0]
    beyond = longer[0] > _OTHER or longer[-1] < 1 / _OTHER
    return beyond and longer[-1] <= longer[0] * (1 + _ONE_FACTOR)


def has_outside(every: Sequence[MeasuredSteps], rate: Measure | None) -> bool:
    """Whether what is outside of the accounted steps is worth a line of its own.

    Rates of epochs are of the same epochs as the accounts; they differ by how these are averaged.
    """
    return (
        rate is not None
        and rate[1] == "run"
        and any(
            float(np.abs(steps.outside / steps.elapsed).max()) > NOTABLE_OUTSIDE
            for steps in every
            if steps.outside is not None
        )
    )
