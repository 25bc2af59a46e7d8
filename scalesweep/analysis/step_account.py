"""Where the time of a step goes: the account of a run.

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
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    COMPUTE,
    INPUT,
    SPAN_BETWEEN,
    SPANS,
    STEP_TIMES,
    StepWork,
    check_clocks,
    check_spans,
    meet,
    noted,
    noted_count,
    step_work,
)
from scalesweep.analysis.types import Floats

REST = "unattributed"  # the term that is what no other explains
STEPS, EPOCHS, PROFILE, NOEXCHANGE, TRACE = "steps", "epochs", "profile", "noexchange", "trace"
FIRST = "first"  # of several epochs
# What a step is called in each form.
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
# A rank waits for input if it does so for this share of a step.
NOTABLE_INPUT = 0.02

Samples = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class StepAccount:
    """Seconds per step of one run, by term; what it does not show is no term.

    ``form``: STEPS; EPOCHS of a run that kept its epochs only (a step is then an epoch, and an
    imbalance that alternates within it goes unseen); FIRST of the first of them; PROFILE if
    another tool measured the whole run (``profile_account``); NOEXCHANGE if a run without
    exchange says what a step computes; TRACE if the traces of its ranks do
    (``profile_account``). ``per_epoch``: steps that the samples of an epoch are shared among.
    """

    form: str
    steps: int
    ranks: int
    elapsed: float
    terms: Mapping[str, float]
    per_epoch: int = 1

    def term(self, name: str) -> float | None:
        """A term, or what no term explains; None: not known."""
        if name == REST:  # the terms and it add up to ``elapsed``
            return self.elapsed - math.fsum(self.terms.values())
        return self.terms.get(name)


def account_of(
    samples: Samples, notes: Mapping[str, Any], ranks: int, seconds: float | None = None
) -> StepAccount | None:
    """The account of a run from its arrays, in s; None if they do not hold what it takes.

    By step from ``step_times`` and the spans ``[step, rank]``; by step too from spans summed over
    the steps of each epoch (``[epoch, rank]``, with ``span_busiest`` and ``span_transfer``
    ``[epoch]`` and ``notes["spans"]["steps_per_epoch"]``), by epoch from ``local_times`` and
    ``global_times`` alone. The first of several epochs is left out: it warms up. None for a
    training that could take no stamps (``notes["spans"]["method"]``): its epochs hold the exchange.
    Raises BadSpansError if they cannot be true, also in the ``seconds`` that the run timed.
    """
    if (work := step_work(samples, notes, ranks, seconds)) is not None:
        return _by_step(work, notes)
    names = ("local_times", "global_times", *SPANS, SPAN_BETWEEN)
    local, total, *spans, between = (_matrix(samples, name, ranks) for name in names)
    if local is None or total is None or local.shape != total.shape:
        return None
    reading, computing, _ = spans
    if STEP_TIMES in samples and reading is not None and computing is not None:
        return None
    known = {name: span for name, span in zip(SPANS, spans, strict=True) if span is not None}
    if any(span.shape != local.shape for span in known.values()):
        return None
    if meet(notes) and not np.array_equal(local, total):  # the total ends when all ranks are there
        check_clocks(total)
    if computing is None:
        return None if noted(notes, "method") == "none" else _by_epoch(local, total, reading)
    check_spans(local, known, notes)
    if between is not None and between.shape == local.shape:
        known[SPAN_BETWEEN] = between
    return _of_sums(local, total, known, samples, steps_per_epoch(notes))


def first_epoch_account(
    samples: Samples, whole: StepAccount | None, ranks: int
) -> StepAccount | None:
    """The account of the first of several epochs, of a program that does nothing but read; else
    None. Ranks meet at the end of the epoch alone: what all of them take longer is no waiting.

    ``whole``: the account of all epochs.
    """
    names = ("local_times", "global_times", "span_input")
    if whole is None or whole.form != EPOCHS or INPUT not in whole.terms:
        return None
    local, total, reading = (_matrix(samples, name, ranks) for name in names)
    if local is None or total is None or reading is None or len(local) < 2:
        return None
    first = _by_epoch(local[:1], total[:1], reading[:1])
    return first and replace(first, form=FIRST)


class _MeanSteps(NamedTuple):
    """Mean seconds of a step: of each rank, of the slowest one, until all were done; ``reading`` of
    each rank, None if it is not known."""

    steps: int
    per_epoch: int
    own: Floats
    last: float
    elapsed: float
    reading: Floats | None


def companion_account(
    samples: Samples,
    notes: Mapping[str, Any],
    alone: Samples,
    alone_notes: Mapping[str, Any],
    ranks: int,
) -> StepAccount | None:
    """The account of a measured run against its run without exchange (``alone``), in s per step.

    On a GPU no time stamp inside a step can tell computation from communication. With C[r] the
    mean step of rank r alone, T that of the measured run and B its barrier per step:

        T = input and computation   the lower median over the ranks of each, alone
          + load imbalance          max C less both of them
          + communication           T - B - max C: exposed transfer, and waiting that alternates
          + barrier                 B

    From ``step_times``, or from epochs, of which the first of several is left out. None if one of
    the two has neither.
    """
    whole, single = _mean_steps(samples, notes, ranks), _mean_steps(alone, alone_notes, ranks)
    if whole is None or single is None or whole.elapsed <= 0 or not single.own.max() > 0:
        return None
    highest, reading = float(single.own.max()), single.reading
    terms = {"busy": _middle(single.own)}
    if reading is not None:
        terms = {"input": _middle(reading), "compute": _middle(single.own - reading)}
    terms |= {"persistent": highest - math.fsum(terms.values())}
    terms |= {"communication": whole.last - highest}
    if whole.elapsed > whole.last:
        terms["barrier"] = whole.elapsed - whole.last
    return StepAccount(NOEXCHANGE, whole.steps, ranks, whole.elapsed, terms, whole.per_epoch)


def _mean_steps(samples: Samples, notes: Mapping[str, Any], ranks: int) -> _MeanSteps | None:
    names = (STEP_TIMES, "local_times", "global_times", SPANS[0])
    own, local, total, reading = (rank_matrix(samples, name, ranks) for name in names)
    per_epoch = steps_per_epoch(notes)
    if own is not None:
        count, elapsed = len(own), float(own.mean(axis=0).max())
        last, per_epoch = elapsed, per_epoch or count
    elif local is None or total is None or local.shape != total.shape or not per_epoch:
        return None
    else:
        later = slice(min(1, len(local) - 1), None)
        own = local[later]
        count = len(own) * per_epoch
        elapsed, last = (float(each[later].max(axis=1).sum()) / count for each in (total, local))
        if reading is not None and reading.shape == local.shape:
            reading = reading[later]
    if not (np.isfinite(own).all() and np.isfinite(elapsed)):
        return None
    known = reading is not None and reading.shape == own.shape and np.isfinite(reading).all()
    spent = reading.sum(axis=0) / count if known and reading is not None else None
    return _MeanSteps(count, per_epoch, own.sum(axis=0) / count, last, elapsed, spent)


def steps_per_epoch(notes: Mapping[str, Any]) -> int:
    """How many steps an epoch has, as the program noted; 0 if it did not."""
    return noted_count(notes, "steps_per_epoch")


def _of_sums(
    local: Floats, total: Floats, spans: Mapping[str, Floats], samples: Samples, per_epoch: int
) -> StepAccount | None:
    """The account of a mean step from the epochs' sums, ``[epoch, rank]`` seconds each."""
    over_ranks = [samples.get(name, np.zeros(0)) for name in ("span_busiest", "span_transfer")]
    if SPANS[0] not in spans or any(each.shape != (len(local),) for each in over_ranks):
        return None
    later = slice(min(1, len(local) - 1), None)
    count = len(local[later]) * per_epoch
    if not count:
        return None
    means = {name: span[later].sum(axis=0) / count for name, span in spans.items()}
    busiest, transfer = (float(each[later].sum()) / count for each in over_ranks)
    elapsed, last = (float(each[later].max(axis=1).sum()) / count for each in (total, local))
    reading, computing = means[SPANS[0]], means[SPANS[1]]
    highest = float((reading + computing).max())
    if not 0 < highest <= busiest * (1 + 1e-9) or elapsed <= 0:
        return None
    terms = {"input": _middle(reading), "compute": _middle(computing)}
    terms |= {"persistent": highest - math.fsum(terms.values()), "barrier": elapsed - last}
    terms |= {"alternating": max(0.0, busiest - highest), "transfer": transfer}
    if SPAN_BETWEEN in means:
        terms["between"] = _middle(means[SPAN_BETWEEN])
    return StepAccount(STEPS, count, local.shape[1], elapsed, terms, per_epoch)


def _matrix(samples: Samples, name: str, ranks: int) -> Floats | None:
    """An array ``[epoch, rank]`` of numbers that are not negative by more than clocks err."""
    values = rank_matrix(samples, name, ranks)
    valid = values is not None and np.isfinite(values).all() and values.min() > -1e-3
    return values if valid else None


def _by_step(work: StepWork, notes: Mapping[str, Any]) -> StepAccount | None:
    """The terms of a run's steps, each what a replay without it and those before it gains."""
    steps, ranks = work.shape
    elapsed, busy = work.elapsed, work.causes[INPUT] + work.causes[COMPUTE]
    if elapsed <= 0 or busy.mean(axis=0).max() <= 0:
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
    highest = float(rest.own.mean(axis=0).max())
    terms["alternating"] += float(rest.own.max(axis=1).mean()) - highest
    usual = {name: _middle(values.mean(axis=0)) for name, values in rest.causes.items()}
    terms["persistent"] = highest - math.fsum(usual.values())
    if waits.any() and set(np.flatnonzero(waits).tolist()) <= set(bound):
        # Whose pace is that of its input waits less if it computes longer. What a straggler gains
        # is what the steps gain if it waits for its input instead.
        terms["persistent"] = max(0.0, gain(rest, lasting, bound))
        usual[INPUT] += highest - terms["persistent"] - math.fsum(usual.values())
    terms |= {INPUT: usual[INPUT], COMPUTE: usual[COMPUTE], **rest.transfers()}
    terms |= {BETWEEN: usual[BETWEEN]} if work.between else {}
    return StepAccount(STEPS, steps, ranks, elapsed, terms, steps_per_epoch(notes) or steps)


def _gained(work: StepWork, less: StepWork) -> float:
    return float((work.periods - less.periods).mean())


def _middle(values: Floats) -> float:
    """The middle value over the ranks, of two the lower (``step_delays.lower_median``)."""
    return float(lower_median(values))


def _by_epoch(local: Floats, total: Floats, reading: Floats | None) -> StepAccount | None:
    """The coarse form: a step is an epoch, and what a rank does in it is one term."""
    if len(local) > 1:
        local, total = local[1:], total[1:]
        reading = None if reading is None else reading[-len(local) :]
    own, latest, ends = local.mean(axis=0), local.max(axis=1), total.max(axis=1)
    common, highest, elapsed = _middle(own), float(own.max()), float(ends.mean())
    if not highest > 0 or elapsed <= 0:
        return None
    busiest = float(latest.mean())
    what = "input" if reading is not None and np.array_equal(reading, local) else "busy"
    terms = {what: common, "persistent": highest - common, "alternating": busiest - highest}
    terms |= {"barrier": float((ends - latest).mean())}
    return StepAccount(EPOCHS, len(local), local.shape[1], elapsed, terms)
