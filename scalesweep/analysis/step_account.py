"""Where the time of a step goes: the account of a run, and the efficiency factors that follow.

Training steps are synchronous: all ranks meet in the exchange of each step, so the run takes the
path of whichever rank is last. ``step_work`` has what each rank does by itself, w[k][r, s] by
cause, and ``step_delays`` what makes ranks late. The first terms are what a replay of the steps
without them gains, in this order (docs/methods/time_breakdown.md has each with an example):

    T = checkpoint, validation, logging    host activities between steps that have a name
      + stalls                             single long steps, a third of all at most
      + jitter (alternating)               more single delays; then, of what is left, S - max C
      + input, computation, host           the lower median over the ranks of each
      + load imbalance (persistent)        max C less these
      + exposed communication (transfer)   what the last rank to come spends on the exchange, by
                                           what it waits for if that is known
      + barrier                            at the ends of epochs
      + unattributed                       the rest, of either sign

with C[r] the sum over the steps of a rank's own work, all of it, S the sum over the steps of the
largest, and T the time of all steps. What lies inside steps in no span is unattributed.

The factors are those of POP (https://pop-coe.eu/node/69) in a variant of their own, which needs no
replay on an ideal network, since every step ends in a collective. With input and computation c:
load balance = mean C / max C, serialisation = max C / S, transfer = S / T.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.pop import PYPOP
from scalesweep.analysis.rank_stats import rank_matrix
from scalesweep.analysis.step_delays import (
    EVERY,
    SINGLE,
    bound_by_input,
    delays_of,
    gain,
    lower_median,
    without,
)
from scalesweep.analysis.step_work import (
    BETWEEN,
    CHECKPOINT,
    COMPUTE,
    INPUT,
    LOGGING,
    MEASURED,
    PIPELINE,
    SHARDED,
    SPAN_BETWEEN,
    SPANS,
    STEP_TIMES,
    TENSOR,
    TRANSFER,
    UNKNOWN,
    VALIDATION,
    BadSpansError,
    StepWork,
    check_clocks,
    check_spans,
    meet,
    shifting_operations,
    step_work,
)
from scalesweep.analysis.types import Floats

# Terms of the ledger in the order of the formula, and what each is called.
TERMS = {
    "input": "Input",
    "compute": "Computation",
    "busy": "Input and computation",
    "checkpoint": "Checkpoints",
    "validation": "Validation",
    "logging": "Logging",
    "between": "Host",
    "persistent": "Load imbalance",
    "alternating": "Jitter",
    "stalls": "Stalls",
    "transfer": "Exposed communication",
    "sharded": "Parameters and gradients",
    "tensor": "Tensor-parallel exchange",
    "pipeline": "Pipeline wait",
    "communication": "Exposed communication",
    "barrier": "Barrier",
    "unattributed": "Unattributed",
}
STEPS, EPOCHS, PROFILE, NOEXCHANGE, TRACE = "steps", "epochs", "profile", "noexchange", "trace"
# What a step is called in each form.
FIRST = "first"  # of several epochs (``first_epoch``)
STEP_WORDS = {
    STEPS: "step",
    EPOCHS: "epoch",
    FIRST: "first epoch",
    PROFILE: "run",
    NOEXCHANGE: "step",
    TRACE: "step",
}
# The finer account first, where repeats have several.
FINEST = (STEPS, NOEXCHANGE, TRACE, PROFILE, EPOCHS, FIRST)
# How serialisation and transfer are defined: here, every step ends in a collective.
COLLECTIVE = "collective"
# A rank waits for input if it does so for this share of a step.
NOTABLE_INPUT = 0.02


@dataclass(frozen=True)
class StepAccount:
    """Seconds per step of one run; None for what it does not show.

    ``form``: STEPS; EPOCHS where the run kept its epochs only: a step is then an epoch, input
    and computation are one term, and an imbalance that alternates within an epoch goes unseen;
    PROFILE where another tool measured a whole run (``profile_account``), which is then the step;
    NOEXCHANGE where a run without exchange says what a step computes (``companion_account``);
    TRACE where the traces of its ranks do (``kineto_breakdown``).
    ``per_epoch`` is the number of steps that the samples of an epoch are shared among.
    ``variant`` is how ``factors`` define serialisation and transfer, empty where they have neither.
    ``slowest`` is the rank with the largest C, ``slowest_input`` its part of the persistent
    imbalance that is input.
    ``between_steps`` is how the time between steps is known (``step_work``), None where it is no
    account of steps; ``side_effects`` are operations that may have shifted the stamps.
    """

    form: str
    steps: int
    per_epoch: int
    ranks: int
    elapsed: float
    input: float | None
    compute: float | None
    busy: float | None
    persistent: float
    alternating: float | None
    transfer: float | None
    barrier: float | None
    mean_busy: float
    max_busy: float
    busiest: float
    slowest: int
    slowest_input: float | None
    communication: float | None = None
    variant: str = COLLECTIVE
    serialisation: float | None = None  # as a replay gave them
    transfer_factor: float | None = None
    clock_mhz: float | None = None  # of the busy cores, mean over the ranks
    checkpoint: float | None = None
    validation: float | None = None
    logging: float | None = None
    between: float | None = None
    stalls: float | None = None
    between_steps: str | None = None
    side_effects: Sequence[str] = ()
    # What the last rank to come waits for besides gradients (``step_work``).
    sharded: float | None = None
    tensor: float | None = None
    pipeline: float | None = None
    # Parts of ``compute``.
    forward: float | None = None
    backward: float | None = None
    optimizer: float | None = None

    @property
    def unattributed(self) -> float:
        """What no term explains: the terms and it add up to ``elapsed``."""
        known = [getattr(self, name) for name in TERMS if name != "unattributed"]
        return self.elapsed - math.fsum(value for value in known if value is not None)

    def factors(self) -> dict[str, float]:
        """The efficiency factors of the run, each multiplicative; their product is the last.

        Of a profile, and against a run without exchange, communication efficiency takes the place
        of serialisation and transfer, which follow it where they are known. A trace also shows time
        that is none of these: of it there is parallel efficiency alone.
        """
        if self.form == TRACE:
            return {"parallel_efficiency": self.mean_busy / self.elapsed}
        factors = {"load_balance": self.mean_busy / self.max_busy}
        if self.form in (PROFILE, NOEXCHANGE):
            factors["communication"] = self.max_busy / self.elapsed
            if self.serialisation is not None and self.transfer_factor is not None:
                factors |= {"serialisation": self.serialisation, "transfer": self.transfer_factor}
        else:
            factors["serialisation"] = self.max_busy / self.busiest
            factors["transfer"] = self.busiest / self.elapsed
        return {**factors, "parallel_efficiency": self.mean_busy / self.elapsed}

    def additive(self) -> dict[str, float]:
        """The same as losses of the elapsed time: what the factors lack adds up to what the last
        lacks."""
        if self.form == TRACE:
            return self.factors()
        terms = {"load_balance": 1 - (self.max_busy - self.mean_busy) / self.elapsed}
        if self.communication is not None:
            terms["communication"] = self.max_busy / self.elapsed
        else:
            terms["serialisation"] = 1 - (self.busiest - self.max_busy) / self.elapsed
            terms["transfer"] = self.busiest / self.elapsed
        return {**terms, "parallel_efficiency": self.mean_busy / self.elapsed}

    @property
    def additive_variant(self) -> str:
        """How ``additive`` defines serialisation and transfer; empty where it has neither."""
        if self.form not in (PROFILE, NOEXCHANGE, TRACE):
            return COLLECTIVE
        return PYPOP if self.communication is None else ""

    def to_json(self) -> dict[str, Any]:
        """The account as a mapping that ``from_json`` takes, without what only profiles have."""
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: value for name, (value, usual) in values.items() if value != usual}

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "StepAccount":
        """The account that ``to_json`` gave."""
        return StepAccount(**content)


def account_of(
    samples: Mapping[str, NDArray[Any]],
    notes: Mapping[str, Any],
    ranks: int,
    seconds: float | None = None,
) -> StepAccount | None:
    """The account of a run from its arrays, in s; None if they do not hold what it takes.

    By step from ``step_times`` and the spans ``[step, rank]``; by step too from spans summed over
    the steps of each epoch (``[epoch, rank]``, with ``span_busiest`` and ``span_transfer``
    ``[epoch]`` and ``notes["spans"]["steps_per_epoch"]``), by epoch from ``local_times`` and
    ``global_times`` alone. The first of several epochs is left out: it warms up. None for a
    training that could take no stamps (``notes["spans"]["method"]``): its epochs hold the exchange.
    None, too, where they cannot be true, also in the ``seconds`` that the run timed:
    ``span_problem`` says why.
    """
    try:
        return _account_of(samples, notes, ranks, seconds)
    except BadSpansError:
        return None


def span_problem(
    samples: Mapping[str, NDArray[Any]],
    notes: Mapping[str, Any],
    ranks: int,
    seconds: float | None = None,
) -> str | None:
    """Why a run's spans cannot be true, and the likely cause; None where they can."""
    try:
        _account_of(samples, notes, ranks, seconds)
    except BadSpansError as error:
        return f"no account of its steps: {error}"
    return None


def _account_of(
    samples: Mapping[str, NDArray[Any]],
    notes: Mapping[str, Any],
    ranks: int,
    seconds: float | None,
) -> StepAccount | None:
    work = step_work(samples, notes, ranks, seconds)
    if work is not None:
        return _by_step(work, notes)
    return _from_epochs(samples, notes, ranks)


def _from_epochs(
    samples: Mapping[str, NDArray[Any]], notes: Mapping[str, Any], ranks: int
) -> StepAccount | None:
    """The account of a run whose times are sums over its epochs, ``[epoch, rank]`` seconds.

    None where times of steps are there, or something of the epochs is missing.
    """
    reading, computing, exchanging = (_matrix(samples, name, ranks) for name in SPANS)
    local, total = (_matrix(samples, name, ranks) for name in ("local_times", "global_times"))
    by_step = STEP_TIMES in samples and computing is not None and reading is not None
    if by_step or local is None or total is None or local.shape != total.shape:
        return None
    spans = {
        name: span
        for name, span in zip(SPANS, (reading, computing, exchanging), strict=True)
        if span is not None
    }
    if any(span.shape != local.shape for span in spans.values()):
        return None
    if meet(notes) and not np.array_equal(local, total):  # the total ends when all ranks are there
        check_clocks(total)
    busiest, transfer = (
        _vector(samples, name, len(local)) for name in ("span_busiest", "span_transfer")
    )
    per_epoch = steps_per_epoch(notes)
    if computing is not None:
        if reading is None or busiest is None or transfer is None or not per_epoch:
            return None
        check_spans(local, spans, notes)
        between = _matrix(samples, SPAN_BETWEEN, ranks)
        if between is not None and between.shape != local.shape:
            between = None
        rows = _Epochs(local, total, busiest, transfer, per_epoch).later()
        later = slice(-len(rows.local), None)
        return rows.account(
            reading[later], computing[later], None if between is None else between[later], notes
        )
    return None if _method(notes) == "none" else _by_epoch(local, total, reading)


def _method(notes: Mapping[str, Any]) -> Any:
    spans = notes.get("spans")
    return spans.get("method") if isinstance(spans, Mapping) else None


def _matrix(samples: Mapping[str, NDArray[Any]], name: str, ranks: int) -> Floats | None:
    """An array ``[step, rank]`` of numbers that are not negative by more than clocks err."""
    values = rank_matrix(samples, name, ranks)
    if values is None:
        return None
    return values if np.isfinite(values).all() and values.min() > -1e-3 else None


def _vector(samples: Mapping[str, NDArray[Any]], name: str, size: int) -> Floats | None:
    if name not in samples or samples[name].shape != (size,) or samples[name].dtype.kind != "f":
        return None
    values = samples[name].astype(np.float64, copy=False)
    return values if np.isfinite(values).all() and values.min() >= 0 else None


def steps_per_epoch(notes: Mapping[str, Any]) -> int | None:
    """How many steps an epoch has, as the program noted; None where it did not."""
    spans = notes.get("spans")
    count = spans.get("steps_per_epoch") if isinstance(spans, Mapping) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else None


def _by_step(work: StepWork, notes: Mapping[str, Any]) -> StepAccount | None:
    """The terms of a run's steps, each what a replay without it and those before it gains."""
    steps, ranks = work.shape
    elapsed, reading, computing = work.elapsed, work.causes[INPUT], work.causes[COMPUTE]
    busy = reading + computing
    mean_busy = busy.mean(axis=0)
    if elapsed <= 0 or mean_busy.max() <= 0:
        return None
    terms: dict[str, float] = {}
    rest = work
    for name in work.named:
        less = rest.without(name, rest.causes[name])
        terms[name] = _gained(rest, less)
        rest = less
    waits = rest.causes[INPUT].mean(axis=0) >= NOTABLE_INPUT * elapsed
    bound = bound_by_input(rest)
    delays = delays_of(rest, bound)
    single = [delay for delay in delays if delay.pattern == SINGLE]
    lasting = [delay for delay in delays if delay.pattern == EVERY]
    for term, stalls in (("stalls", True), ("alternating", False)):
        less = without(rest, [delay for delay in single if delay.stalls == stalls])
        terms[term] = _gained(rest, less)
        rest = less
    own, read = rest.own.mean(axis=0), rest.causes[INPUT].mean(axis=0)
    slowest, highest = int(own.argmax()), float(own.max())
    terms["alternating"] += float(rest.own.max(axis=1).mean()) - highest
    usual = {name: lower_of(values.mean(axis=0)) for name, values in rest.causes.items()}
    persistent = highest - math.fsum(usual.values())
    if waits.any() and set(np.flatnonzero(waits).tolist()) <= set(bound):
        # Whose pace is that of its input waits less if it computes longer. What a straggler gains
        # is what the steps gain if it waits for its input instead.
        persistent = max(0.0, gain(rest, lasting, bound))
        usual[INPUT] += highest - persistent - math.fsum(usual.values())
    transfers, parts = rest.transfers(), _parts(work, usual[COMPUTE])
    return StepAccount(
        form=STEPS,
        steps=steps,
        per_epoch=steps_per_epoch(notes) or steps,
        ranks=ranks,
        elapsed=elapsed,
        input=usual[INPUT],
        compute=usual[COMPUTE],
        busy=None,
        persistent=persistent,
        alternating=terms["alternating"],
        stalls=terms["stalls"],
        transfer=transfers[TRANSFER],
        sharded=transfers.get(SHARDED),
        tensor=transfers.get(TENSOR),
        pipeline=transfers.get(PIPELINE),
        forward=parts.get("forward"),
        backward=parts.get("backward"),
        optimizer=parts.get("optimizer"),
        barrier=None,
        mean_busy=float(mean_busy.mean()),
        max_busy=float(mean_busy.max()),
        busiest=float(busy.max(axis=1).mean()),
        slowest=slowest,
        slowest_input=float(read[slowest]) - lower_of(read),
        between=None if work.between == UNKNOWN else usual[BETWEEN],
        between_steps=work.between,
        side_effects=tuple(shifting_operations(notes)),
        checkpoint=terms.get(CHECKPOINT),
        validation=terms.get(VALIDATION),
        logging=terms.get(LOGGING),
    )


def _parts(work: StepWork, computing: float) -> dict[str, float]:
    """Forward, backward and optimiser of the rank in the middle, as parts of what it computes."""
    if not work.parts:
        return {}
    means = work.causes[COMPUTE].mean(axis=0)
    rank = int(np.argsort(means, kind="stable")[(means.size - 1) // 2])
    usual = {name: float(np.median(values[:, rank])) for name, values in work.parts.items()}
    whole = math.fsum(usual.values())
    return {name: computing * each / whole for name, each in usual.items()} if whole > 0 else {}


def _gained(work: StepWork, less: StepWork) -> float:
    return float((work.periods - less.periods).mean())


def lower_of(values: Floats) -> float:
    """The middle value over the ranks, of two the lower (``step_delays.lower_median``)."""
    return float(lower_median(values))


@dataclass(frozen=True)
class _Epochs:
    """Arrays of epochs that hold sums over their steps."""

    local: Floats
    total: Floats
    busiest: Floats
    transfer: Floats
    per_epoch: int

    def later(self) -> "_Epochs":
        """Without the first epoch, where there are more."""
        if len(self.local) == 1:
            return self
        arrays = (self.local[1:], self.total[1:], self.busiest[1:], self.transfer[1:])
        return _Epochs(*arrays, self.per_epoch)

    def account(
        self,
        reading: Floats,
        computing: Floats,
        between: Floats | None,
        notes: Mapping[str, Any],
    ) -> StepAccount | None:
        """The account of a mean step from the epochs' sums, ``[epoch, rank]`` seconds each."""
        count = len(self.local) * self.per_epoch
        ends, own = self.total.max(axis=1), self.local.max(axis=1)
        account = _account(
            steps=count,
            per_epoch=self.per_epoch,
            elapsed=float(ends.sum()) / count,
            reading=reading.sum(axis=0) / count,
            computing=computing.sum(axis=0) / count,
            busiest=float(self.busiest.sum()) / count,
            transfer=float(self.transfer.sum()) / count,
            barrier=float((ends - own).sum()) / count,
        )
        known = UNKNOWN if between is None else MEASURED
        least = None if between is None else lower_of(between.sum(axis=0) / count)
        effects = tuple(shifting_operations(notes))
        return account and replace(
            account, between=least, between_steps=known, side_effects=effects
        )


def _account(
    *,
    steps: int,
    per_epoch: int,
    elapsed: float,
    reading: Floats,
    computing: Floats,
    busiest: float,
    transfer: float,
    barrier: float | None,
) -> StepAccount | None:
    """From means over the steps, by rank where they are arrays."""
    busy = reading + computing
    slowest = int(busy.argmax())
    common_input, common_compute = lower_of(reading), lower_of(computing)
    highest = float(busy[slowest])
    if not 0 < highest <= busiest * (1 + 1e-9) or elapsed <= 0:
        return None
    return StepAccount(
        form=STEPS,
        steps=steps,
        per_epoch=per_epoch,
        ranks=busy.size,
        elapsed=elapsed,
        input=common_input,
        compute=common_compute,
        busy=None,
        persistent=highest - common_input - common_compute,
        alternating=max(0.0, busiest - highest),
        transfer=transfer,
        barrier=barrier,
        mean_busy=float(busy.mean()),
        max_busy=highest,
        busiest=max(busiest, highest),
        slowest=slowest,
        slowest_input=float(reading[slowest]) - common_input,
    )


def _by_epoch(local: Floats, total: Floats, reading: Floats | None) -> StepAccount | None:
    """The coarse form: a step is an epoch, and what a rank does in it is one term."""
    if len(local) > 1:
        local, total = local[1:], total[1:]
        reading = None if reading is None else reading[-len(local) :]
    count = len(local)
    own = local.sum(axis=0) / count
    slowest = int(own.argmax())
    common, highest = lower_of(own), float(own[slowest])
    latest = local.max(axis=1)
    elapsed = float(total.max(axis=1).sum()) / count
    if not highest > 0 or elapsed <= 0:
        return None
    busiest = float(latest.sum()) / count
    all_input = reading is not None and np.array_equal(reading, local)
    return StepAccount(
        form=EPOCHS,
        steps=count,
        per_epoch=1,
        ranks=own.size,
        elapsed=elapsed,
        input=common if all_input else None,
        compute=None,
        busy=None if all_input else common,
        persistent=highest - common,
        alternating=busiest - highest,
        transfer=None,
        barrier=float((total.max(axis=1) - latest).sum()) / count,
        mean_busy=float(own.mean()),
        max_busy=highest,
        busiest=busiest,
        slowest=slowest,
        slowest_input=highest - common if all_input else None,
    )
