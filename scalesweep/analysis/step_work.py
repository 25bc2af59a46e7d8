"""What every rank did in every step: a run's arrays ``[step, rank]``, checked, by cause.

A rank's own work is all that it does by itself between two exchanges: host work since its last
step (of which a program may name checkpoints, validation and logging), waiting for input,
computation, and what lies inside the step, but in none of its spans. In synchronous training the
ranks meet in the exchange of each step, so that with w[k][r, s] the seconds of cause k

    the step lasts   max over r of (sum over k of w[k][r, s])  +  min over r of exchange[r, s]

Whoever arrives last waits for nobody: what it spends on the exchange is the exchange itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.rank_stats import rank_matrix
from scalesweep.analysis.stats import MAD_TO_STD
from scalesweep.analysis.types import Floats
from scalesweep.core.formatting import listed, number

INPUT, COMPUTE = "input", "compute"
CHECKPOINT, VALIDATION, LOGGING = "checkpoint", "validation", "logging"
BETWEEN = "between"  # host work between two steps that the program gives no name
INSIDE = "inside"  # of a step, in none of its spans
TRANSFER = "transfer"
# Host activities that a program may name; they lie between its steps.
NAMED = (CHECKPOINT, VALIDATION, LOGGING)
CAUSES = (COMPUTE, INPUT, *NAMED, BETWEEN, INSIDE)
STEP_TIMES, SPAN_BETWEEN = "step_times", "span_between"
SPANS = ("span_input", "span_compute", "span_communication")
# What ranks wait for in their exchange, besides gradients: shards of parameters and gradients, the
# collectives of layers that ranks share, and neighbours in a pipeline.
SHARDED, TENSOR, PIPELINE = "sharded", "tensor", "pipeline"
# Finer spans that a program may keep, parts of span_communication, and those of span_compute.
WAITS = {
    "span_data_parallel": TRANSFER, "span_tensor_parallel": TENSOR, "span_pipeline_wait": PIPELINE,
}  # fmt: skip
COMPUTE_PARTS = ("span_forward", "span_backward", "span_optimizer")
# What a program notes in ``notes["spans"]["exchanged"]`` whose ranks hold shards of a network.
EXCHANGED_SHARDS = "parameters and gradients"

# Clocks err by so much (s); a step may be so much shorter than its spans (share of it).
CLOCK_S, CLOCK_SHARE = 1e-3, 0.05
# So many of the steps may be odd before their stamps are no use.
ODD = 0.01
# Seconds taken for milliseconds are wrong by 1,000: anything beyond this factor is no noise.
THOUSAND = 300.0
# Steps may add up to so many times the seconds of the run that they are of.
TOO_LONG = 2.0
# A rank's clock is off if it gains or loses by a share of the time (steps, share; a few steps
# cannot tell as well), and by so many standard deviations of what delays its single stamps.
CLOCK_OFF = ((24, 0.01), (8, 0.05), (3, 0.2))
STAMPS = 5.0
# Other work on the cores holds a rank's stamps back by as much, for steps on end: 5.7 ms were seen.
HELD_S = 0.01
UNSEEN = 0.03  # the same share where the time between steps is not measured


class BadSpansError(ValueError):
    """Spans of a run that cannot be: the message says what, where, and the likely cause."""


class BadStepsError(BadSpansError):
    """Times of whole steps that cannot be, whatever their spans are."""


@dataclass(frozen=True)
class StepWork:
    """Seconds ``[step, rank]`` of a run by cause, and of its exchange.

    ``between``: whether the time between steps is known. ``named`` are the host activities that
    the program tells apart; ``waits`` what ranks wait for in their exchange, if that is known.
    """

    causes: Mapping[str, Floats]
    exchange: Floats
    steps: Floats  # as the program timed them
    between: bool
    named: tuple[str, ...] = ()
    waits: Mapping[str, Floats] = field(default_factory=dict)  # of the exchange, by term

    @property
    def within(self) -> bool:
        """Whether ranks wait for each other within a step, not at its end alone."""
        return bool({SHARDED, TENSOR, PIPELINE} & set(self.waits))

    @property
    def own(self) -> Floats:
        """All of a rank's own work."""
        return np.asarray(sum(self.causes.values()), np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """Steps and ranks."""
        return self.exchange.shape[0], self.exchange.shape[1]

    @property
    def transfer(self) -> Floats:
        """What the exchange itself takes, ``[step]``: the least of any rank."""
        return np.asarray(self.exchange.min(axis=1), np.float64)

    @property
    def periods(self) -> Floats:
        """Seconds from one exchange to the next, ``[step]``, on the ranks' critical path."""
        return np.asarray(self.own.max(axis=1) + self.transfer, np.float64)

    @property
    def elapsed(self) -> float:
        """Mean seconds of a step with what lies before it, on the rank that takes longest."""
        host = sum(self.causes[name] for name in (*self.named, BETWEEN))
        return float((self.steps + host).mean(axis=0).max())

    def transfers(self) -> dict[str, float]:
        """Mean seconds of ``transfer`` in a step by what the last rank to come waits for; all of
        it is ``TRANSFER`` where that is not known."""
        if not self.waits:
            return {TRANSFER: float(self.transfer.mean())}
        last, steps = self.exchange.argmin(axis=1), np.arange(len(self.exchange))
        there = {name: values[steps, last] for name, values in self.waits.items()}
        whole = np.asarray(sum(there.values()), np.float64)
        share = np.divide(self.transfer, whole, out=np.zeros_like(whole), where=whole > 0)
        return {TRANSFER: 0.0} | {
            name: float((values * share).mean()) for name, values in there.items()
        }

    def without(self, cause: str, extra: Floats) -> "StepWork":
        """The same where ``extra[step, rank]`` seconds of a cause are gone."""
        if cause == TRANSFER:
            return replace(self, exchange=self.exchange - extra)
        return replace(self, causes={**self.causes, cause: self.causes[cause] - extra})


def step_work(
    samples: Mapping[str, NDArray[Any]],
    notes: Mapping[str, Any],
    ranks: int,
    seconds: float | None = None,
) -> StepWork | None:
    """The work of a run's ranks; None where its arrays do not hold ``step_times`` and all spans.

    ``seconds``: what the run timed. Raises BadSpansError where they do, but cannot be true, and
    where ``step_times`` alone cannot.
    """
    check_arrays(samples, ranks)
    steps = rank_matrix(samples, STEP_TIMES, ranks)
    if steps is None or not np.isfinite(steps).all():
        return None
    _check_seconds(steps, seconds)
    if any(name not in samples for name in SPANS):
        return None
    reading, computing, exchange = (_floats(samples, name) for name in SPANS)
    check_spans(steps, dict(zip(SPANS, (reading, computing, exchange), strict=True)), notes)
    reading, computing, exchange = _cut([reading, computing, exchange], steps)
    between, named = _between(samples)
    host = np.zeros(steps.shape) if between is None else between
    if meet(notes):
        check_clocks((steps + host)[1:], 0.0 if SPAN_BETWEEN in samples else UNSEEN)
    activities = {name: np.maximum(times, 0.0) for name, times in named.items()}
    causes = {
        COMPUTE: np.maximum(computing, 0.0), INPUT: np.maximum(reading, 0.0), **activities,
        BETWEEN: np.maximum(host - sum(activities.values()), 0.0),
        INSIDE: np.maximum(steps - reading - computing - exchange, 0.0),
    }  # fmt: skip
    waits = _waits(samples, notes, exchange)
    exchange = np.maximum(exchange, 0.0)
    return StepWork(causes, exchange, steps, between is not None, tuple(activities), waits)


def check_arrays(samples: Mapping[str, NDArray[Any]], ranks: int) -> None:
    """Raise BadSpansError where a program that takes stamps in its steps keeps an array that is no
    ``[step, rank]`` of finite, positive numbers, or lacks a span."""
    if STEP_TIMES not in samples or not {"span_compute", "span_communication"} & set(samples):
        return
    if missing := [name for name in SPANS if name not in samples]:
        raise BadSpansError(
            f"{listed(missing)} is missing, though other spans of its steps are there"
        )
    steps = samples[STEP_TIMES]
    named = (f"span_{name}" for name in NAMED)
    for name in (STEP_TIMES, *SPANS, SPAN_BETWEEN, *named, *COMPUTE_PARTS, *WAITS):
        if name not in samples:
            continue
        values, rows = samples[name], len(steps) if steps.ndim else 0
        if values.ndim != 2 or values.shape != (rows, ranks):
            raise BadSpansError(
                f"{name} has the shape {values.shape}, not one value for each of {rows:,} steps "
                f"and {ranks:,} ranks"
            )
        if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
            raise BadSpansError(f"{name} is not a finite number in each step (NaN or inf)")
        if (bad := values < -CLOCK_S).mean() > ODD:
            raise BadSpansError(
                f"{name} is negative {_in_steps(bad)} (at least {values.min():.4g} s): its stamps "
                "are out of order; operations with side effects (tf.print, a summary, py_function) "
                "and clocks that are set do that"
            )


def check_spans(steps: Floats, spans: Mapping[str, Floats], notes: Mapping[str, Any]) -> None:
    """Raise BadSpansError where spans cannot be parts of their steps.

    ``steps`` and each of ``spans`` are seconds ``[step, rank]`` (or sums ``[epoch, rank]``).
    """
    disorder = noted_count(notes, "out_of_order")
    if disorder:
        raise BadSpansError(
            f"time stamps are out of order in {disorder:,} steps, as the program says: an "
            "operation with side effects in the step (tf.print, a summary, py_function) delays "
            "them; take it out of the timed steps"
        )
    total = np.asarray(sum(spans.values()), np.float64)
    whole, parts = float(steps.mean()), float(total.mean())
    if whole <= 0 or parts <= 0:
        return
    names, ratio = listed(list(spans)), parts / whole
    if not 1 / THOUSAND <= ratio <= THOUSAND:
        long, short = ("the spans", STEP_TIMES) if ratio > 1 else (STEP_TIMES, "the spans")
        raise BadSpansError(
            f"{long} of a step are {_about(max(ratio, 1 / ratio))} {short} ({names}): {long} look "
            "like milliseconds; write seconds"
        )
    longer = _too_long(total, steps)
    if longer.mean() > ODD:
        step, rank = np.unravel_index(int((total - steps).argmax()), steps.shape)
        raise BadSpansError(
            f"the spans of a step ({names}) are longer than the step {_in_steps(longer)} (step "
            f"{step + 1}, rank {rank}: {total[step, rank]:.4g} s in {steps[step, rank]:.4g} s): "
            "they overlap, belong to other steps, or have another unit"
        )


def _check_seconds(steps: Floats, seconds: float | None) -> None:
    """Raise BadStepsError where ``steps[step, rank]`` add up to far more than the seconds that the
    run timed, if these are known."""
    total = float(steps.sum(axis=0).max())
    if seconds and total > TOO_LONG * seconds:
        raise BadStepsError(
            f"{STEP_TIMES} add up to {_about(total / seconds)} the seconds that the run timed: "
            "they are milliseconds, overlap, or are of several runs"
        )


def meet(notes: Mapping[str, Any]) -> bool:
    """Whether ranks meet in their steps: they do, unless the program says that they do not."""
    mode = notes.get("mode")
    return not (isinstance(mode, Mapping) and mode.get("synchronous") is False)


def check_clocks(periods: Floats, least: float = 0.0) -> None:
    """Raise BadStepsError where ranks that meet at the end of each step count different times from
    one meeting to the next, ``periods[step, rank]``, by the share ``least`` or more: in the whole
    run, or in a part of it."""
    steps, ranks = periods.shape
    share = next((share for fewest, share in CLOCK_OFF if steps >= fewest), None)
    if share is None or ranks < 2:
        return
    clocks = np.concatenate([np.zeros((1, ranks)), periods.cumsum(axis=0)])
    usual = np.sort(clocks, axis=1)[:, [(ranks - 1) // 2]]
    ahead = clocks - usual
    part = max(1, (steps + 1) // 4)
    ends = [np.median(each, axis=0) for each in (ahead[:part], ahead[-part:])]
    apart = np.concatenate([ahead[:part] - ends[0], ahead[-part:] - ends[1]])
    noise = MAD_TO_STD * np.median(np.abs(apart), axis=0)
    gained, whole = ends[1] - ends[0], float(usual[-1, 0])
    off = np.abs(gained) > np.maximum(
        max(share, least) * whole * (1 - part / (steps + 1)), np.maximum(STAMPS * noise, HELD_S)
    )
    if not off.any():
        return
    worst = int((off * np.abs(gained)).argmax())
    percent = abs(100 * float(ahead[-1, worst]) / whole)
    raise BadStepsError(
        f"rank {worst} counted about {percent:.0f} % {'more' if gained[worst] > 0 else 'less'} "
        "time than the others from one exchange to the next, though ranks that meet in each step "
        f"take equally long: a clock runs wrong, {SPAN_BETWEEN} lacks a part of the time, or the "
        "ranks do not meet (then note mode.synchronous: false)"
    )


def _about(ratio: float) -> str:
    """A ratio in one digit, the same for the repeats of a point."""
    return f"about {number(float(f'{ratio:.1g}'))} times"


def _in_steps(odd: NDArray[Any]) -> str:
    """In how many steps a rank or more is odd, ``[step, rank]``."""
    return f"in {int(odd.any(axis=1).sum()):,} of {len(odd):,} steps"


def _too_long(total: Floats, whole: Floats) -> NDArray[Any]:
    """Where parts are longer than their whole by more than clocks err, ``[step, rank]``."""
    return np.asarray(total > whole * (1 + CLOCK_SHARE) + CLOCK_S)


def noted(notes: Mapping[str, Any], name: str) -> Any:
    """What a program notes on its spans; None if it does not."""
    spans = notes.get("spans")
    return spans.get(name) if isinstance(spans, Mapping) else None


def noted_count(notes: Mapping[str, Any], name: str) -> int:
    """A count that a program notes on its spans; 0 if it does not."""
    value = noted(notes, name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _floats(samples: Mapping[str, NDArray[Any]], name: str) -> Floats:
    return np.asarray(samples[name], np.float64)


def _between(samples: Mapping[str, NDArray[Any]]) -> tuple[Floats | None, dict[str, Floats]]:
    """The time between steps, and the activities in it that have a name."""
    named = {n: _floats(samples, f"span_{n}") for n in NAMED if f"span_{n}" in samples}
    whole = _floats(samples, SPAN_BETWEEN) if SPAN_BETWEEN in samples else None
    if not named:
        return whole, named
    total = np.asarray(sum(named.values()), np.float64)
    if whole is None:  # what is named is the least that lies between
        return total, named
    longer = _too_long(total, whole)
    if longer.mean() > ODD:
        raise BadSpansError(
            f"{listed([f'span_{name}' for name in named])} are longer than {SPAN_BETWEEN} "
            f"{_in_steps(longer)}: they are parts of it, in seconds"
        )
    return whole, dict(zip(named, _cut(list(named.values()), whole), strict=True))


def _cut(parts: Sequence[Floats], whole: Floats) -> list[Floats]:
    """Parts of a time, which are shortened where they are too long to be parts of it: a few such
    steps are tolerated, but what they say did not happen."""
    total = np.asarray(sum(parts), np.float64)
    longer = _too_long(total, whole)
    share = np.divide(whole, total, out=np.ones_like(total), where=longer)
    return [np.asarray(each * share, np.float64) for each in parts]


def _waits(
    samples: Mapping[str, NDArray[Any]], notes: Mapping[str, Any], exchange: Floats
) -> dict[str, Floats]:
    """What ranks wait for in their exchange ``[step, rank]``, by term; empty if it is not known.
    Raises BadSpansError if it does not add up to the exchange."""
    shards = noted(notes, "exchanged") == EXCHANGED_SHARDS
    parts = {
        SHARDED if shards and name == TRANSFER else name: np.maximum(_floats(samples, array), 0.0)
        for array, name in WAITS.items()
        if array in samples
    }
    off = np.abs(sum(parts.values()) - exchange) > CLOCK_SHARE * exchange + CLOCK_S
    if parts and off.mean() > ODD:
        raise BadSpansError(
            f"{listed([array for array in WAITS if array in samples])} do not add up to {SPANS[2]} "
            f"{_in_steps(off)}: they are its parts, and none may be missing"
        )
    return parts
