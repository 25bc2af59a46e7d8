"""Where the time of a step goes at every point, against its reference.

The reference is the smallest finished scale of the point's series. A point's ideal step is that of
the reference, times its samples per worker (a rank or a device) and step over the reference's. The
ideal step over the measured one is the efficiency of the table `scaling` (``measured_steps``).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.stats import (
    Estimate,
    LogError,
    joined,
    t_chance,
    t_quantile,
)
from scalesweep.analysis.step_account import PROFILE, STEPS, TERMS, TRACE, StepAccount
from scalesweep.analysis.step_work import BETWEEN, COMPUTE_PARTS, NAMED, PIPELINE, SHARDED, TENSOR
from scalesweep.analysis.types import Floats
from scalesweep.aspects.steps.measured_steps import OUTSIDE, MeasuredSteps, measured_steps
from scalesweep.core.files import canonical_json
from scalesweep.core.scaling_kinds import MODEL
from scalesweep.tables.points import ExperimentData, Measure, Point

LEDGER = "ledger"
PART = "part"  # of computation: forward, backward and optimiser
IDEAL, ELAPSED = "ideal", "elapsed"
# Of a computation term, in the ledger: as at the reference, and what is slower than that.
AT_REFERENCE, LOCAL_BATCH, SLOWER = "at_reference", "local_batch", "slower"
OTHER = "other"  # small terms, for readers
# Of a single epoch: whether another rank would be the slowest in others, it does not say.
IMBALANCE = "imbalance"
LABELS = {
    **TERMS,
    IDEAL: "Ideal step",
    ELAPSED: "Measured step",
    AT_REFERENCE: "Computation",
    LOCAL_BATCH: "Smaller local batch",
    SLOWER: "Slower computation",
    IMBALANCE: "Load imbalance",
    OUTSIDE: "Time outside of steps",
    OTHER: "Other",
    "forward": "Forward pass",
    "backward": "Backward pass",
    "optimizer": "Optimiser",
}
_MS = 1e3
_OF_TOOLS = (PROFILE, TRACE)  # they know no samples
Cells = dict[str, Any]


def efficiency_rows(
    data: ExperimentData,
    series: Sequence[Sequence[Point]],
    known: Mapping[int, StepAccount],
    rate: Measure | None,
) -> Iterator[tuple[Point, Cells]]:
    """A point and the columns of a row, per point and term; ``series`` has the points of each
    series by scale, ``known`` the accounts of runs by row of the summary, ``rate`` that of samples
    which their steps follow from (``main_rate``).

    Kinds: ``ledger`` in ms per step, whose terms add up to ``elapsed``; ``part``. Where the
    scale does not vary, and no run is a profile, no point is the reference of others: there are no
    losses, and only accounts by step have rows.
    """
    groups = measured_steps(data, series, known, rate)
    tools = any(each.form in _OF_TOOLS for group in groups for each in group)
    scaled = tools or data.scale in data.axes
    groups = [[each for each in group if scaled or each.form == STEPS] for group in groups]
    every = [each for group in groups for each in group]
    for each in every:
        for name in (*TERMS, *COMPUTE_PARTS.values(), OUTSIDE):
            if (values := each.term(name)) is not None:
                each.errors.add_term(each.point, name, values, float(each.elapsed.mean()))
    for group in groups:
        for here in group:
            base = group[0] if scaled and group[0].form == here.form else None
            ratio = None if base is None else _ratio(data, here, base)
            batch = _same_batch(data, here, base, every)
            head = {"repeats": len(here.accounts), "form": here.form}
            reference = None if base is None or ratio is None else (base, ratio)
            for row in _ledger(here, reference, batch):
                yield here.point, head | row


def _ratio(data: ExperimentData, steps: MeasuredSteps, base: MeasuredSteps) -> float | None:
    """Work of a worker in a step over that at the reference; None where a run does not tell.

    Of a profile, which counts no samples, as the kind of scaling that its source states has it.
    Where the model grows with the ranks samples do not tell the work.
    """
    scaling = str(data.experiment["scaling"])
    if scaling == MODEL:
        return None
    if steps.form in _OF_TOOLS:
        of_ranks = base.accounts[0].ranks / steps.accounts[0].ranks
        return {"strong": of_ranks, "weak": 1.0}.get(scaling)
    here, there = steps.local_samples, base.local_samples
    return here / there if here and there else None


def _same_batch(
    data: ExperimentData,
    steps: MeasuredSteps,
    base: MeasuredSteps | None,
    every: Sequence[MeasuredSteps],
) -> MeasuredSteps | None:
    """A point at the reference's scale whose ranks take as many samples in a step as these.

    Its other parameters are the same but for those that set the amount of work.
    """
    if base is None or steps is base or steps.local_samples is None:
        return None
    free = {data.scale, *data.experiment["scale_parameters"], *data.experiment["work"]}

    def key(measured: MeasuredSteps) -> str:
        values = measured.point.values
        return canonical_json([values[name] for name in data.axes if name not in free])

    for other in every:
        same = other.workers == base.workers and key(other) == key(steps)
        alike = other.local_samples is not None and math.isclose(
            other.local_samples, steps.local_samples
        )
        if same and alike and other is not base and other.point.source == steps.point.source:
            return other
    return None


@dataclass(frozen=True)
class _Part:
    """A term of a point in ms of each repeat, with the name that its scatter is known by."""

    steps: MeasuredSteps
    name: str
    values: Floats

    @property
    def mean(self) -> float:
        """Its mean over the repeats."""
        return float(self.values.mean())

    @property
    def error(self) -> LogError | None:
        """Standard error of its mean, in ms."""
        return self.steps.errors.of_term(self.steps.point, self.name, self.values)

    @property
    def estimate(self) -> Estimate:
        """Its mean and 95 % interval, on logarithms if it is longer than that; of runs that are all
        the same, none."""
        value, error = self.mean, self.error
        if error is None or error.error == 0:
            return Estimate(value)
        half = t_quantile(error.degrees) * error.error
        if value > half:
            return LogError(error.error / value, error.degrees).around(value)
        return Estimate(value, value - half, value + half)

    def loss(self, there: "_Part") -> Cells:
        """What it is more than there, with its 95 % interval and the p value of its being none, of
        one error."""
        more = self.mean - there.mean
        errors = [side for side in (self.error, there.error) if side is not None]
        if len(errors) < 2 or not any(error.error for error in errors):
            return {"loss": Estimate(more)}
        error = joined(errors)
        half = t_quantile(error.degrees) * error.error
        p = t_chance(more, error.error, error.degrees)
        return {"loss": Estimate(more, more - half, more + half), "loss_p": p}


def _row(kind: str, term: str, value: Estimate, **cells: Any) -> Cells:
    return {"kind": kind, "term": term, "value": value, "unit": "ms", **cells}


def _ledger(
    steps: MeasuredSteps,
    reference: tuple[MeasuredSteps, float] | None,
    batch: MeasuredSteps | None,
) -> Iterator[Cells]:
    """The ledger's terms in ms per step, what they lose against the ideal, and both steps; then the
    parts of computation."""
    base, ratio = reference or (None, 1.0)
    for name in (*TERMS, OUTSIDE):
        if (values := steps.term(name)) is None:
            continue
        here, there = _Part(steps, name, values * _MS), None
        if base is not None and steps is not base:
            there = _there(base, name)
        if there is None or base is None:
            yield _row(LEDGER, name, here.estimate)
        elif name in ("compute", "busy"):
            yield from _computation(here, _Part(base, name, there * (ratio * _MS)), batch)
        else:
            ideal = _Part(base, name, there * (ratio * _MS))
            yield _row(LEDGER, name, here.estimate, **here.loss(ideal))
    loss = None
    if base is not None:
        yield _row(LEDGER, IDEAL, base.step.times(ratio * _MS))
        if steps is not base:
            loss = steps.loss(base, ratio).times(_MS)
    yield _row(LEDGER, ELAPSED, steps.step.times(_MS), loss=loss)
    for name in COMPUTE_PARTS.values():
        if (part := steps.term(name)) is not None:
            yield _row(PART, name, _Part(steps, name, part * _MS).estimate)


def _there(base: MeasuredSteps, name: str) -> Floats | None:
    """A term of the reference. Of time between steps that it does not show, the most that it may
    be: what no other term has. Of a host activity that it does not name, none."""
    values, nothing = base.term(name), np.zeros(len(base.accounts))
    if values is None and name in (SHARDED, TENSOR, PIPELINE) and all(
        # Its ranks say what they wait for, or there is one, which waits for nobody.
        account.form == STEPS and (account.ranks == 1 or account.parts)
        for account in base.accounts
    ):  # fmt: skip
        return nothing
    if values is not None or name not in (BETWEEN, *NAMED):
        return values
    rest = base.rest
    return np.maximum(rest, 0.0) if name == BETWEEN and rest is not None else nothing


def _computation(here: _Part, ideal: _Part, batch: MeasuredSteps | None) -> Iterator[Cells]:
    """Computation as at the reference, and why the rest of it is slower."""
    yield _row(LEDGER, AT_REFERENCE, ideal.estimate)
    alone = None if batch is None else batch.term(here.name)
    if batch is not None and alone is not None:
        smaller = _Part(batch, here.name, alone * _MS)
        yield _slower(LOCAL_BATCH, smaller.loss(ideal))
        ideal = smaller
    yield _slower(SLOWER, here.loss(ideal))


def _slower(term: str, loss: Cells) -> Cells:
    """A term that is all loss."""
    return _row(LEDGER, term, loss["loss"], **loss)
