"""Where the time of a step goes at every point, against its reference.

The reference is the smallest finished scale of the point's series. A point's ideal step is that of
the reference, times its samples per worker (a rank or a device) and step over the reference's. The
ideal step over the measured one is the efficiency of the table `scaling` (``measured_steps``).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scalesweep.analysis.stats import (
    Interval,
    LogError,
    joined,
    mean_interval,
    ratio_interval,
    t_chance,
    t_quantile,
)
from scalesweep.analysis.step_account import PROFILE, STEPS, TERMS, TRACE, StepAccount
from scalesweep.analysis.step_work import BETWEEN, COMPUTE_PARTS, NAMED, PIPELINE, SHARDED, TENSOR
from scalesweep.analysis.types import Floats
from scalesweep.aspects.breakdown.accounts import finest_of
from scalesweep.aspects.breakdown.measured_steps import (
    MeasuredSteps,
    by_throughput,
    has_outside,
    measured_steps,
)
from scalesweep.aspects.breakdown.step_errors import StepErrors
from scalesweep.core.files import canonical_json
from scalesweep.core.scaling_kinds import MODEL
from scalesweep.tables.machine import Machine
from scalesweep.tables.machine_terms import (
    COMPUTE,
    INPUT,
    TRANSFER,
    against,
    least_of,
    loss_columns,
    more_than,
    share_rows,
    value_columns,
)
from scalesweep.tables.points import ExperimentData, Measure, Point

LEDGER, MULTIPLICATIVE, ADDITIVE = "ledger", "multiplicative", "additive"
PART = "part"  # of computation: forward, backward and optimiser
MACHINE = "machine"  # what a term reaches of what the machine could do
IDEAL, ELAPSED = "ideal", "elapsed"
# Of a computation term, in the ledger: as at the reference, and what is slower than that.
AT_REFERENCE, LOCAL_BATCH, CLOCK, SLOWER = "at_reference", "local_batch", "clock", "slower"
# Between the accounted steps and the step that the throughput stands for.
OUTSIDE = "outside"
OTHER = "other"  # small terms, for readers
# Of a single epoch: whether another rank would be the slowest in others, it does not say.
IMBALANCE = "imbalance"
LABELS = {
    **TERMS,
    IDEAL: "Ideal step",
    ELAPSED: "Measured step",
    AT_REFERENCE: "Computation",
    LOCAL_BATCH: "Smaller local batch",
    CLOCK: "Lower clock (at most)",
    SLOWER: "Slower computation",
    IMBALANCE: "Load imbalance",
    OUTSIDE: "Outside of steps",
    OTHER: "Other",
    "forward": "Forward pass",
    "backward": "Backward pass",
    "optimizer": "Optimiser",
    "load_balance": "Load balance",
    "serialisation": "Serialisation",
    "communication": TERMS["communication"],
    "parallel_efficiency": "Parallel efficiency",
    "computation_scaling": "Computation scaling",
    "global_efficiency": "Global efficiency",
}
_MS = 1e3
_OF_TOOLS = (PROFILE, TRACE)  # they know no samples
# Time of the reference without a name, over an activity that it does not name, that is nothing.
_NAMELESS = 0.1


def efficiency_rows(
    data: ExperimentData,
    series: Sequence[Sequence[Point]],
    machine: Machine,
    known_of: Mapping[int, StepAccount],
    rate: Measure | None,
) -> list[dict[str, Any]]:
    """The columns of a row per point and term; ``series`` has the points of each series by scale.

    ``known_of`` are the accounts of runs by row of the summary, ``rate`` that of samples which
    their steps follow from (``main_rate``).

    Kinds: ``ledger`` in ms per step, whose terms add up to ``elapsed``; ``multiplicative`` and
    ``additive``, the efficiency factors; ``machine``, the share of what the machine could do that a
    term reaches. Empty if no run of the experiment has an account. Where the scale does not vary,
    and no run is a profile, no point is the reference of others: there are no losses, and only
    accounts by step have rows.
    """
    steps = StepErrors(data)

    def measured_of(point: Point) -> MeasuredSteps | None:
        """A point with the accounts of its runs, and what the machine needs for their steps."""
        chosen = finest_of(point, known_of)
        if not chosen:
            return None
        of_point = measured_steps(data, point, chosen, steps, rate)
        return replace(of_point, least=least_of(data, point, of_point.accounts[0], machine))

    measured = by_throughput([[measured_of(point) for point in points] for points in series])
    forms = {each.accounts[0].form for group in measured for each in group if each}
    profiled = not forms.isdisjoint(_OF_TOOLS)
    scaled = profiled or data.scale in data.axes
    groups = [
        [each for each in group if each and (scaled or each.accounts[0].form == STEPS)]
        for group in measured
    ]
    accounted = [each for group in groups for each in group]
    if not accounted:
        return []
    outside = has_outside(accounted, rate)
    for each in accounted:
        for name in (*TERMS, *COMPUTE_PARTS.values(), *([OUTSIDE] if outside else [])):
            if (values := _term(each, name, outside)) is not None:
                steps.add_term(each.point, name, values, float(each.elapsed.mean()))
    rows: list[dict[str, Any]] = []
    for known in groups:
        for here in known:
            head = {
                "point": here.point.values,
                "source": here.point.source,
                "repeats": len(here.accounts),
                "form": here.accounts[0].form,
            }
            alike = known[0].accounts[0].form == here.accounts[0].form
            base = known[0] if scaled and alike else None
            ratio = None if base is None else _ratio(data, here, base)
            batch = _same_batch(data, here, base, accounted)
            for row in _rows(here, base, ratio, batch, outside):
                rows.append({**head, "variant": _variant(here, row), **row})
    return rows


def _variant(steps: MeasuredSteps, row: Mapping[str, Any]) -> str | None:
    """How serialisation and transfer of a row of factors are defined; None for any other row."""
    if row["term"] not in ("serialisation", "transfer") or row["kind"] == LEDGER:
        return None
    account = steps.accounts[0]
    return account.variant if row["kind"] == MULTIPLICATIVE else account.additive_variant


def _ratio(data: ExperimentData, steps: MeasuredSteps, base: MeasuredSteps) -> float | None:
    """Work of a worker in a step over that at the reference; None where a run does not tell.

    Of a profile, which counts no samples, as the kind of scaling that its source states has it.
    Where the model grows with the ranks samples do not tell the work.
    """
    if data.experiment["scaling"] == MODEL:
        return None
    if steps.accounts[0].form in _OF_TOOLS:
        of_ranks = base.accounts[0].ranks / steps.accounts[0].ranks
        return {"strong": of_ranks, "weak": 1.0}.get(str(data.experiment["scaling"]))
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


def _rows(
    steps: MeasuredSteps,
    base: MeasuredSteps | None,
    ratio: float | None,
    batch: MeasuredSteps | None,
    outside: bool,
) -> list[dict[str, Any]]:
    rows = _ledger(steps, base, ratio, batch, outside)
    for name in COMPUTE_PARTS.values():
        if (part := steps.term(name)) is not None:
            rows.append(_of_term(PART, name, part * _MS, steps, name))
    for kind in (MULTIPLICATIVE, ADDITIVE):
        rows += _factors(steps, kind)
    terms = {name: steps.term(name) for name in (COMPUTE, INPUT, TRANSFER)}
    rows += [{"kind": MACHINE, **row} for row in share_rows(steps.least, terms)]
    if base is not None and ratio is not None:
        rows += _scaling(steps, base, ratio)
    return rows


def _row(kind: str, term: str, values: Floats, unit: str) -> dict[str, Any]:
    return _stated(kind, term, values, unit, mean_interval(values))


def _of_term(
    kind: str, term: str, values: Floats, steps: MeasuredSteps, name: str
) -> dict[str, Any]:
    """The row of a term in ms; ``name``: that of the term of the point that it is of."""
    error = steps.steps.of_term(steps.point, name, values)
    return _stated(kind, term, values, "ms", _around(float(values.mean()), error))


def _around(value: float, error: LogError | None) -> Interval:
    """95 % interval of a part of a step by its standard error, on logarithms if it is longer than
    that; missing if nothing tells it."""
    if error is None or error.error == 0:
        return Interval(math.nan, math.nan, "none")
    half = t_quantile(error.degrees) * error.error
    if value > half:
        return LogError(error.error / value, error.degrees).interval(value)
    return Interval(value - half, value + half, "t")


def _stated(kind: str, term: str, values: Floats, unit: str, bounds: Interval) -> dict[str, Any]:
    return {
        "kind": kind, "term": term, "unit": unit,
        "value": float(values.mean()), "low": bounds.low, "high": bounds.high,
    }  # fmt: skip


def _ledger(
    steps: MeasuredSteps,
    base: MeasuredSteps | None,
    ratio: float | None,
    batch: MeasuredSteps | None,
    outside: bool,
) -> list[dict[str, Any]]:
    """The ledger's terms in ms per step, what they lose against the ideal, and both steps."""
    rows: list[dict[str, Any]] = []
    for name in (*TERMS, *([OUTSIDE] if outside else [])):
        values = _term(steps, name, outside)
        if values is None:
            continue
        there = None
        if base is not None and steps is not base and ratio is not None:
            there = _there(steps, base, name, outside, ratio)
        if there is None or base is None or ratio is None:
            row = _of_term(LEDGER, name, values * _MS, steps, name)
            rows.append(row | value_columns(steps.least.get(name)))
            continue
        here, ideal = _Part(steps, name, values * _MS), _Part(base, name, there * (ratio * _MS))
        if name in ("compute", "busy"):
            parts = _computation(here, ideal, batch)
            rows += _with_machine(parts, name, steps, base, ratio, batch)
            continue
        row = _of_term(LEDGER, name, here.values, steps, name)
        least = base.least.get(name)
        row |= value_columns(steps.least.get(name)) | _loss(here, ideal)
        rows.append(
            row
            | loss_columns(
                against(steps.least.get(name), None if least is None else least.times(ratio))
            )
        )
    row = _step(ELAPSED, steps, _MS)
    if base is not None and ratio is not None:
        rows.append(_step(IDEAL, base, ratio * _MS))
        row |= {} if steps is base else _step_loss(steps, base, ratio)
    return [*rows, row]


@dataclass(frozen=True)
class _Part:
    """A term of a point in ms of each repeat, with the name that its scatter is known by."""

    steps: MeasuredSteps
    name: str
    values: Floats

    @property
    def error(self) -> LogError | None:
        """Standard error of its mean, in ms."""
        return self.steps.steps.of_term(self.steps.point, self.name, self.values)


def _step(term: str, of: MeasuredSteps, factor: float) -> dict[str, Any]:
    """A whole step, whose interval is that of the rate that the efficiency is taken from."""
    bounds = of.step_interval
    scaled = Interval(bounds.low * factor, bounds.high * factor, bounds.method)
    return _stated(LEDGER, term, of.elapsed * factor, "ms", scaled)


def _step_loss(steps: MeasuredSteps, base: MeasuredSteps, ratio: float) -> dict[str, float]:
    bounds = steps.loss_interval(base, ratio)
    return {
        "loss": float(steps.elapsed.mean() - base.elapsed.mean() * ratio) * _MS,
        "loss_low": bounds.low * _MS, "loss_high": bounds.high * _MS,
    }  # fmt: skip


def _term(steps: MeasuredSteps, name: str, outside: bool) -> Floats | None:
    """A term of a point; what is outside of the accounted steps is unattributed, unless it has a
    line of its own."""
    if name == OUTSIDE:
        return steps.outside
    values = steps.term(name)
    if name == "unattributed" and not outside and values is not None and steps.outside is not None:
        return values + steps.outside
    return values


def _there(
    steps: MeasuredSteps, base: MeasuredSteps, name: str, outside: bool, ratio: float
) -> Floats | None:
    """A term of the reference. Of time between steps that it does not show, the most that it may
    be: what no other term has. Of a host activity that it does not name, none; None where it has
    time without a name that may be the same."""
    values = _term(base, name, outside)
    if values is None and name in (SHARDED, TENSOR, PIPELINE) and _knows_exchange(base):
        return np.zeros(len(base.accounts))
    if values is not None or name not in (BETWEEN, *NAMED):
        return values
    rest = _term(base, "unattributed", False)
    assert rest is not None
    if name == BETWEEN:
        return np.maximum(rest, 0.0)
    nameless = 0.0 if _term(base, BETWEEN, outside) is not None else max(float(rest.mean()), 0.0)
    for term in (BETWEEN, "stalls"):
        there, here = _term(base, term, outside), _term(steps, term, outside)
        if there is not None:
            less = 0.0 if here is None else float(here.mean()) / ratio
            nameless += max(float(there.mean()) - less, 0.0)
    activity = _term(steps, name, outside)
    assert activity is not None
    if nameless * ratio > _NAMELESS * float(activity.mean()):
        return None
    return np.zeros_like(rest)


def _knows_exchange(base: MeasuredSteps) -> bool:
    """Whether the ranks of a point say what they wait for, or wait for nobody: there is one."""
    return all(
        account.form == STEPS and (account.ranks == 1 or account.forward is not None)
        for account in base.accounts
    )


def _computation(here: _Part, ideal: _Part, batch: MeasuredSteps | None) -> list[dict[str, Any]]:
    """Computation as at the reference, and why the rest of it is slower."""
    at_reference = _around(float(ideal.values.mean()), ideal.error)
    rows = [_stated(LEDGER, AT_REFERENCE, ideal.values, "ms", at_reference)]
    alone = None if batch is None else batch.term(here.name)
    if batch is not None and alone is not None:
        smaller = _Part(batch, here.name, alone * _MS)
        rows.append(_slower(LOCAL_BATCH, smaller, ideal))
        ideal = smaller
    by_clock = _by_clock(here, ideal)
    if by_clock is not None:
        rows.append(by_clock)
    rows.append(_slower(SLOWER, here, ideal, 0.0 if by_clock is None else by_clock["value"]))
    return rows


def _with_machine(
    rows: list[dict[str, Any]],
    name: str,
    steps: MeasuredSteps,
    base: MeasuredSteps,
    ratio: float,
    batch: MeasuredSteps | None,
) -> list[dict[str, Any]]:
    """The parts of computation with what the machine needs of each: these add up, too."""
    ideal = base.least.get(name)
    needed = None if ideal is None else ideal.times(ratio)
    with_machine: list[dict[str, Any]] = []
    for row in rows:
        if row["term"] == AT_REFERENCE:
            with_machine.append(row | value_columns(needed))
            continue
        if row["term"] == CLOCK:  # its least time is of no clock in particular
            with_machine.append(row)
            continue
        here = (batch if row["term"] == LOCAL_BATCH and batch else steps).least.get(name)
        more = more_than(here, needed)
        with_machine.append(row | value_columns(more) | loss_columns(more))
        needed = here
    return with_machine


def _by_clock(here: _Part, ideal: _Part) -> dict[str, Any] | None:
    """What a lower clock explains of slower computation, at most; None where clocks are unknown.

    Computation that depends on the clock alone takes f_ref / f times as long: what waits for
    memory less. So the part is between nothing and that, and never more than what there is to
    explain.
    """
    clocks, base = here.steps.clocks, ideal.steps.clocks
    if clocks is None or base is None:
        return None
    computation = float(ideal.values.mean())
    reference = computation * float(base.mean())
    sides = (
        _Part(here.steps, CLOCK, reference / clocks),
        _Part(ideal.steps, CLOCK, reference / base),
    )
    row = _slower(CLOCK, *sides)
    low, high = sorted((0.0, float(here.values.mean()) - computation))
    names = ("value", "low", "high", "loss", "loss_low", "loss_high")
    return row | {name: min(max(row[name], low), high) for name in names}


def _slower(term: str, here: _Part, there: _Part, known: float = 0.0) -> dict[str, Any]:
    """What is more here than there, without what is ``known`` of it, which is all loss."""
    loss = _loss(here, there, known)
    value = {"value": loss["loss"], "low": loss["loss_low"], "high": loss["loss_high"]}
    return {"kind": LEDGER, "term": term, "unit": "ms", **value, **loss}


def _loss(here: _Part, there: _Part, known: float = 0.0) -> dict[str, float]:
    """What a term takes more than there, without what is ``known`` of that: with its 95 % interval
    and the p value of its being none, of one error."""
    more = float(here.values.mean() - there.values.mean()) - known
    sides = [side.error for side in (here, there)]
    errors = [side for side in sides if side is not None]
    loss = {"loss": more, "loss_low": math.nan, "loss_high": math.nan, "loss_p": math.nan}
    if len(errors) < len(sides) or not any(error.error for error in errors):
        return loss
    error = joined(errors)
    half = t_quantile(error.degrees) * error.error
    p = t_chance(more, error.error, error.degrees)
    return loss | {"loss_low": more - half, "loss_high": more + half, "loss_p": p}


def _factors(steps: MeasuredSteps, kind: str) -> list[dict[str, Any]]:
    """The factors of each repeat, and their mean."""
    of_runs: list[Mapping[str, float]] = [
        account.factors() if kind == MULTIPLICATIVE else account.additive()
        for account in steps.accounts
    ]
    return [
        _row(kind, term, np.array([factors[term] for factors in of_runs]), "1")
        for term in of_runs[0]
        if all(term in factors for factors in of_runs)
    ]


def _scaling(steps: MeasuredSteps, base: MeasuredSteps, ratio: float) -> list[dict[str, Any]]:
    """Computation scaling and global efficiency, against the reference."""
    busy = base.term("mean_busy")
    rows = []
    for term, of in (
        ("computation_scaling", "mean_busy"),
        ("global_efficiency", "elapsed"),
    ):
        here = steps.elapsed if of == "elapsed" else steps.term(of)
        assert busy is not None
        assert here is not None
        value = ratio * float(busy.mean() / here.mean())
        error = None if steps is base else steps.steps.error(steps.point, base.point, of)
        bounds = error.interval(value) if error else ratio_interval(busy, here, ratio)
        low, high = bounds.low, bounds.high
        if steps is base and term == "computation_scaling":
            value, low, high = 1.0, math.nan, math.nan  # by definition
        rows.append(
            {"kind": MULTIPLICATIVE, "term": term, "unit": "1", "value": value, "low": low,
             "high": high}
        )  # fmt: skip
    return rows
