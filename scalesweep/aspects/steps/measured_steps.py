"""The repeats of a point with their step accounts, and the step that its throughput stands for.

Efficiency has one definition, that of the throughput. With n samples in a step and the rate of
run i, T[i] = n / rate[i] is the run's step, and n over the mean rate of the repeats is the harmonic
mean of the T[i]. Every term of the ledger is therefore averaged with the weights 1 / T[i]: so the
terms add up to that step, and the ideal step over it is the efficiency of the table `scaling`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scalesweep.analysis.step_account import FINEST, REST, StepAccount
from scalesweep.analysis.step_work import BETWEEN, NAMED
from scalesweep.analysis.types import Floats
from scalesweep.aspects.steps.terms import OUTSIDE
from scalesweep.tables.bookkeeping import ACCOUNT
from scalesweep.tables.points import ExperimentData, Measure, Point

# A rate that makes the steps of every point longer (or shorter) by one factor beyond this, within
# so much of it, is of other samples than the steps.
_OTHER, _ONE_FACTOR = 2.0, 0.02
# What is outside of the accounted steps has a line of its own from this share of a step on.
NOTABLE_OUTSIDE = 0.005
_OF_SAMPLES = ("samples/s", "images/s")
_MS = 1e3


def stated_accounts(data: ExperimentData, name: str = ACCOUNT) -> dict[int, StepAccount]:
    """The accounts that the records of an experiment's runs hold, by row of the summary.

    ``name``: the column, ACCOUNT or FIRST_EPOCH.
    """
    return {row: StepAccount(**noted) for row, noted in data.notes(name).items()}


@dataclass(frozen=True)
class MeasuredSteps:
    """A point with the accounts of its repeats by row of the summary, all of one form; times in ms.

    ``workers``: what it scales over. ``lengths``: the step of each repeat by the rate that its
    efficiency is taken from; None where there is no such rate, and the accounts' own are taken.
    ``rate``: that of these lengths, if all runs of the point have accounts. ``lined``: whether what
    is outside of the accounted steps has a line of its own; else it is unattributed.
    """

    point: Point
    accounts: Mapping[int, StepAccount]
    workers: float
    lengths: Floats | None = None
    rate: Measure | None = None
    lined: bool = False

    @property
    def first(self) -> StepAccount:
        """The account of its first run."""
        return next(iter(self.accounts.values()))

    def term(self, name: str) -> Floats | None:
        """A term of the ledger, in ms per step, of each repeat; None if one has none.

        Of host time, 0 in repeats that do not show it while others do: they have it elsewhere.
        Their mean is the term of the point: they are pseudo-values where repeats have weights.
        """
        if name == OUTSIDE:
            return self.outside if self.lined else None
        values = [account.term(name) for account in self.accounts.values()]
        if name in (BETWEEN, *NAMED) and any(value is not None for value in values):
            values = [0.0 if value is None else value for value in values]
        if None in values:
            return None
        known = self._weighted(np.array(values, np.float64) * _MS)
        more = None if name != REST or self.lined else self.outside
        return known if more is None else known + more

    @property
    def elapsed(self) -> Floats:
        """The measured step, as ``term``."""
        return self._weighted(self.own if self.lengths is None else self.lengths)

    @property
    def own(self) -> Floats:
        """The accounted step of each repeat."""
        return _MS * np.array([account.elapsed for account in self.accounts.values()], np.float64)

    @property
    def outside(self) -> Floats | None:
        """What the step of the throughput has and the accounted steps have not, as ``term``."""
        return None if self.lengths is None else self._weighted(self.lengths - self.own)

    @property
    def longer(self) -> float:
        """The step of the throughput over the accounted one."""
        return 1.0 if self.lengths is None else float(self.lengths.sum() / self.own.sum())

    @property
    def local_samples(self) -> float | None:
        """Samples of a worker (a rank or a device) in a step."""
        samples = self.point.samples
        return None if samples is None else samples / self.first.per_epoch / self.workers

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
    groups = [
        [made for point in points if (made := _measured(data, point, known, rate)) is not None]
        for points in series
    ]
    every = [steps for group in groups for steps in group]
    longer = sorted(steps.longer for steps in every) or [1.0]
    other = longer[0] > _OTHER or longer[-1] < 1 / _OTHER
    other = other and longer[-1] <= longer[0] * (1 + _ONE_FACTOR)
    known_outside = [(steps.outside, steps.elapsed) for steps in every]
    shares = [np.abs(out / step).max() for out, step in known_outside if out is not None]
    if other or len(shares) < len(every):
        return [[replace(steps, lengths=None, rate=None) for steps in group] for group in groups]
    # Rates of epochs are of the same epochs as the accounts; only how these are averaged differs.
    lined = rate is not None and rate[1] == "run" and max(shares, default=0) > NOTABLE_OUTSIDE
    return [[replace(steps, lined=lined) for steps in group] for group in groups]


def _measured(
    data: ExperimentData, point: Point, known: Mapping[int, StepAccount], rate: Measure | None
) -> MeasuredSteps | None:
    accounts = {row: known[row] for row in point.rows.tolist() if row in known}
    if not accounts:
        return None
    finest = min((account.form for account in accounts.values()), key=FINEST.index)
    accounts = {row: account for row, account in accounts.items() if account.form == finest}
    ranks, lengths = next(iter(accounts.values())).ranks, None
    if rate is not None and point.samples is not None:
        rates = data.numbers(rate[0], "mean", rate[1])[list(accounts)]
        if (np.isfinite(rates) & (rates > 0)).all():
            of_worker = 1.0 if data.quantities[rate[0]].scope == "total" else float(ranks)
            per_epoch = np.array([account.per_epoch for account in accounts.values()])
            lengths = np.asarray(_MS * point.samples / of_worker / per_epoch / rates)
    whole = lengths is not None and len(accounts) == point.rows.size
    workers = float(point.values.get(data.scale) or ranks)
    return MeasuredSteps(point, accounts, workers, lengths, rate if whole else None)
