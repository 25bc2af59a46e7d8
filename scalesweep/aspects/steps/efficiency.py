"""Where the time of a step goes at every point, against its reference.

The reference is the smallest finished scale of the point's series. A point's ideal step is that of
the reference, times its samples per worker (a rank or a device) and step over the reference's. The
ideal step over the measured one is the efficiency of the table `scaling` (``measured_steps``).
"""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from scalesweep.analysis.blocks import Errors
from scalesweep.analysis.stats import Estimate, LogError, joined, mean_of, t_chance, t_quantile
from scalesweep.analysis.step_account import PROFILE, STEPS, TRACE, StepAccount
from scalesweep.analysis.step_work import NAMED, PIPELINE, SHARDED, TENSOR
from scalesweep.analysis.types import Floats
from scalesweep.aspects.steps.measured_steps import MeasuredSteps, measured_steps
from scalesweep.aspects.steps.terms import AT_REFERENCE, ELAPSED, IDEAL, LOCAL_BATCH, SLOWER, TERMS
from scalesweep.core.files import canonical_json
from scalesweep.core.scaling_kinds import MODEL
from scalesweep.tables.points import ExperimentData, Measure, Point, place_of

NOTABLE = 0.02  # of a step: what is shorter shares no variance with other terms
_OF_TOOLS = (PROFILE, TRACE)  # they know no samples
# Terms that a program shows only where it has them: none at a reference without them.
_MAY_BE_NONE = frozenset({*NAMED, SHARDED, TENSOR, PIPELINE})
Cells = dict[str, Any]


class _Term(NamedTuple):
    """A term of a point in ms: its mean over the repeats, and the standard error of that."""

    mean: float
    error: LogError | None

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

    def loss(self, there: "_Term") -> Cells:
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


_NONE = _Term(0.0, LogError(0.0, math.inf))


class _Points:
    """The steps of all points and their terms, with errors by the runs of all of them
    (``analysis.blocks``)."""

    def __init__(self, data: ExperimentData, every: Sequence[MeasuredSteps]) -> None:
        self.data = data
        own, terms = np.full(len(data.summary), math.nan), dict[Any, dict[Hashable, Floats]]()
        for steps in every:
            own[list(steps.accounts)] = steps.own
            for name in TERMS:
                values, least = steps.term(name), NOTABLE * float(steps.elapsed.mean())
                if values is not None and abs(float(values.mean())) >= least:
                    terms.setdefault(steps.point.source, {})[place_of(steps.point), name] = values
        self._of_steps = data.errors_in(own)
        # Terms of a step scatter about alike on logarithms: they tell of each other's variance.
        self._of_terms = {
            source: Errors(known, shared=source != "imported", unlike=True)
            for source, known in terms.items()
        }

    def term(self, steps: MeasuredSteps | None, name: str, ratio: float = 1.0) -> _Term | None:
        """``ratio`` times a term; None of a point that does not show it.

        One that is short, or not positive in each run, has its own repeats' error alone. That is
        None of one run, and of runs that are all the same, unless these have none of it.
        """
        if steps is None or (values := steps.term(name)) is None:
            return None
        if not values.any():
            return _NONE
        mean, known = float(values.mean()) * ratio, self._of_terms.get(steps.point.source)
        error = known.mean((place_of(steps.point), name)) if known else None
        if error is not None:
            return _Term(mean, LogError(error.error * mean, error.degrees))
        return _Term(mean, Errors({name: values * ratio}, logs=False).mean(name))

    def step(self, steps: MeasuredSteps) -> Estimate:
        """The measured step, with the interval of the point's rate where it has one."""
        value, level = float(steps.elapsed.mean()), self.data.level
        if steps.rate is not None:
            mean = self.data.mean(steps.point, steps.rate)
            return mean.over(mean.value * value)
        error = self._of_steps[steps.point.source].mean(place_of(steps.point))
        if error is not None:
            return error.around(value, level)
        mean = mean_of(steps.own if steps.lengths is None else steps.lengths, level)
        return Estimate(value, mean.low, mean.high)

    def loss(self, steps: MeasuredSteps, base: MeasuredSteps, ratio: float) -> Estimate:
        """What a step takes more than the ideal, ``ratio`` of the base's.

        ideal x (1 / efficiency - 1) at the bounds of the efficiency: so the loss is clear of 0 just
        where the efficiency is clear of 1. The scatter of the ideal counts in full in the
        efficiency, and where time is lost as no less than in the difference.
        """
        step, ideal = float(steps.elapsed.mean()), float(base.elapsed.mean()) * ratio
        if steps.rate is not None and base.rate is not None:
            rates = self.data.compare(steps.point, base.point, steps.rate)
            return rates.over(rates.value * step).less(ideal)
        places = place_of(steps.point), place_of(base.point)
        error = self._of_steps[steps.point.source].ratio(*places)
        whole = Estimate(step) if error is None else error.around(step, self.data.level)
        return whole.less(ideal)


def efficiency_rows(
    data: ExperimentData,
    series: Sequence[Sequence[Point]],
    known: Mapping[int, StepAccount],
    rate: Measure | None,
) -> Iterator[tuple[Point, Cells]]:
    """A point and the columns of a row, per point and term; ``series`` has the points of each
    series by scale, ``known`` the accounts of runs by row of the summary, ``rate`` that of samples
    which their steps follow from (``main_rate``).

    Where the scale does not vary, and no run is a profile, no point is the reference of others:
    there are no losses, and only accounts by step have rows.
    """
    groups = measured_steps(data, series, known, rate)
    tools = any(each.first.form in _OF_TOOLS for group in groups for each in group)
    scaled = tools or data.scale in data.axes
    groups = [[each for each in group if scaled or each.first.form == STEPS] for group in groups]
    every = [each for group in groups for each in group]
    points = _Points(data, every)
    for group in groups:
        for here in group:
            base = group[0] if scaled and group[0].first.form == here.first.form else None
            ratio = None if base is None else _ratio(data, here, base)
            batch = _same_batch(data, here, base, every)
            head = {"repeats": len(here.accounts), "form": here.first.form}
            reference = None if base is None or ratio is None else (base, ratio)
            for row in _ledger(points, here, reference, batch):
                yield here.point, head | row


def _ratio(data: ExperimentData, steps: MeasuredSteps, base: MeasuredSteps) -> float | None:
    """Work of a worker in a step over that at the reference; None where a run does not tell.

    Of a profile, which counts no samples, as the kind of scaling that its source states has it.
    Where the model grows with the ranks samples do not tell the work.
    """
    scaling = str(data.experiment["scaling"])
    if scaling == MODEL:
        return None
    if steps.first.form in _OF_TOOLS:
        of_ranks = base.first.ranks / steps.first.ranks
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
        kept = [values[name] for name in data.axes if name not in free]
        return canonical_json([kept, measured.point.source, measured.workers])

    asked = key(replace(steps, workers=base.workers))
    for other in every:
        alike = math.isclose(other.local_samples or 0.0, steps.local_samples)
        if alike and other is not base and key(other) == asked:
            return other
    return None


def _ledger(
    points: _Points,
    steps: MeasuredSteps,
    reference: tuple[MeasuredSteps, float] | None,
    batch: MeasuredSteps | None,
) -> Iterator[Cells]:
    """The ledger's terms in ms per step, what they lose against the ideal, and both steps;
    computation is split: as at the reference, and why the rest of it is slower."""
    base, ratio = reference or (None, 1.0)
    compared = base is not None and steps is not base
    for name in TERMS:
        if (here := points.term(steps, name)) is None:
            continue
        ideal = points.term(base, name, ratio) if compared else None
        if compared and name in _MAY_BE_NONE:
            ideal = ideal or _NONE
        if ideal is None:
            yield {"term": name, "value": here.estimate}
        elif name in ("compute", "busy"):
            yield {"term": AT_REFERENCE, "value": ideal.estimate}
            if (smaller := points.term(batch, name)) is not None:
                lost, ideal = smaller.loss(ideal), smaller
                yield {"term": LOCAL_BATCH, "value": lost["loss"], **lost}
            lost = here.loss(ideal)
            yield {"term": SLOWER, "value": lost["loss"], **lost}
        else:
            yield {"term": name, "value": here.estimate, **here.loss(ideal)}
    if base is not None:
        yield {"term": IDEAL, "value": points.step(base).times(ratio)}
    loss = points.loss(steps, base, ratio) if base is not None and compared else None
    yield {"term": ELAPSED, "value": points.step(steps), "loss": loss}
