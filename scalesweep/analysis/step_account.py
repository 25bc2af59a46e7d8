"""Where the time of a step goes: the ledger of a run, and the efficiency factors that follow.

Training steps are synchronous: all ranks meet in the exchange of each step. With the input and
computation of rank r in step s as c[r, s], C[r] its sum over the steps, S the sum over the steps of
the largest c, and T the time of all steps (docs/efficiency.md has each term with an example):

    T = common input + common computation        the lower median over the ranks of each
      + persistent imbalance                     max C - both of them: one rank is always late
      + alternating imbalance                    S - max C: another rank is late each time
      + transfer                                 what the last rank to come spends on the exchange
      + barrier                                  at the ends of epochs
      + unattributed                             the rest, of either sign

The factors are those of POP (https://pop-coe.eu/node/69) in a variant of their own, which needs no
replay on an ideal network, since every step ends in a collective:
load balance = mean C / max C, serialisation = max C / S, transfer = S / T.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.pop import PYPOP
from scalesweep.analysis.rank_stats import rank_matrix
from scalesweep.analysis.types import Floats

# Terms of the ledger in the order of the formula, and what each is called.
TERMS = {
    "input": "Waiting for input",
    "compute": "Computation",
    "busy": "Input and computation",
    "persistent": "Persistent imbalance",
    "alternating": "Alternating imbalance",
    "transfer": "Transfer",
    "communication": "Communication, waiting and transfer together",
    "barrier": "Barrier",
    "unattributed": "Unattributed",
}
STEPS, EPOCHS, PROFILE, NOEXCHANGE = "steps", "epochs", "profile", "noexchange"
# What a step is called in each form.
STEP_WORDS = {STEPS: "step", EPOCHS: "epoch", PROFILE: "run", NOEXCHANGE: "step"}
# The finer account first, where repeats have several.
FINEST = (STEPS, NOEXCHANGE, PROFILE, EPOCHS)
# How serialisation and transfer are defined: here, every step ends in a collective.
COLLECTIVE = "collective"
_SPANS = ("span_input", "span_compute", "span_communication")


@dataclass(frozen=True)
class StepAccount:
    """Seconds per step of one run; None for what it does not show.

    ``form``: STEPS; EPOCHS where the run kept its epochs only: a step is then an epoch, input
    and computation are one term, and an imbalance that alternates within an epoch goes unseen;
    PROFILE where another tool measured a whole run (``profile_account``), which is then the step;
    NOEXCHANGE where a run without exchange says what a step computes (``companion_account``).
    ``per_epoch`` is the number of steps that the samples of an epoch are shared among.
    ``variant`` is how ``factors`` define serialisation and transfer, empty where they have neither.
    ``slowest`` is the rank with the largest C, ``slowest_input`` its part of the persistent
    imbalance that is input.
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

    @property
    def unattributed(self) -> float:
        """What no term explains: the terms and it add up to ``elapsed``."""
        known = [getattr(self, name) for name in TERMS if name != "unattributed"]
        return self.elapsed - math.fsum(value for value in known if value is not None)

    def factors(self) -> dict[str, float]:
        """The efficiency factors of the run, each multiplicative; their product is the last.

        Of a profile, and against a run without exchange, communication efficiency takes the place
        of serialisation and transfer, which follow it where they are known.
        """
        found = {"load_balance": self.mean_busy / self.max_busy}
        if self.form in (PROFILE, NOEXCHANGE):
            found["communication"] = self.max_busy / self.elapsed
            if self.serialisation is not None and self.transfer_factor is not None:
                found |= {"serialisation": self.serialisation, "transfer": self.transfer_factor}
        else:
            found["serialisation"] = self.max_busy / self.busiest
            found["transfer"] = self.busiest / self.elapsed
        return {**found, "parallel_efficiency": self.mean_busy / self.elapsed}

    def additive(self) -> dict[str, float]:
        """The same as losses of the elapsed time: what the factors lack adds up to what the last
        lacks."""
        found = {"load_balance": 1 - (self.max_busy - self.mean_busy) / self.elapsed}
        if self.communication is not None:
            found["communication"] = self.max_busy / self.elapsed
        else:
            found["serialisation"] = 1 - (self.busiest - self.max_busy) / self.elapsed
            found["transfer"] = self.busiest / self.elapsed
        return {**found, "parallel_efficiency": self.mean_busy / self.elapsed}

    @property
    def additive_variant(self) -> str:
        """How ``additive`` defines serialisation and transfer; empty where it has neither."""
        if self.form not in (PROFILE, NOEXCHANGE):
            return COLLECTIVE
        return PYPOP if self.communication is None else ""

    def to_json(self) -> dict[str, Any]:
        """The account as a mapping that ``from_json`` takes, without what only profiles have."""
        found = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: value for name, (value, usual) in found.items() if value != usual}

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "StepAccount":
        """The account that ``to_json`` gave."""
        return StepAccount(**content)


def account_of(
    samples: Mapping[str, NDArray[Any]], notes: Mapping[str, Any], ranks: int
) -> StepAccount | None:
    """The account of a run from its arrays, in s; None if they do not hold what it takes.

    By step from ``step_times`` and the spans ``[step, rank]``; by step too from spans summed over
    the steps of each epoch (``[epoch, rank]``, with ``span_busiest`` and ``span_transfer``
    ``[epoch]`` and ``notes["spans"]["steps_per_epoch"]``), by epoch from ``local_times`` and
    ``global_times`` alone. The first of several epochs is left out: it warms up. None for a
    training that could take no stamps (``notes["spans"]["method"]``): its epochs hold the exchange.
    """
    spans = [_matrix(samples, name, ranks) for name in _SPANS]
    steps = _matrix(samples, "step_times", ranks)
    reading, computing, exchanging = spans
    if steps is not None and reading is not None and computing is not None:
        return (
            None if exchanging is None else _by_step(notes, steps, reading, computing, exchanging)
        )
    local, total = (_matrix(samples, name, ranks) for name in ("local_times", "global_times"))
    if local is None or total is None or local.shape != total.shape:
        return None
    if any(span is not None and span.shape != local.shape for span in spans):
        return None
    busiest, transfer = (
        _vector(samples, name, len(local)) for name in ("span_busiest", "span_transfer")
    )
    per_epoch = steps_per_epoch(notes)
    if computing is not None:
        if reading is None or busiest is None or transfer is None or not per_epoch:
            return None
        rows = _Epochs(local, total, busiest, transfer, per_epoch).later()
        later = slice(-len(rows.local), None)
        return rows.account(reading[later], computing[later])
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


def lower_median(values: Floats) -> float:
    """The middle value, of two the lower: one late rank of two is an imbalance, not the rule."""
    return float(np.sort(values)[(values.size - 1) // 2])


def _by_step(
    notes: Mapping[str, Any], steps: Floats, reading: Floats, computing: Floats, exchanging: Floats
) -> StepAccount | None:
    shapes = {array.shape for array in (steps, reading, computing, exchanging)}
    if len(shapes) > 1:
        return None
    count = len(steps)
    busy = reading + computing
    return _account(
        steps=count,
        per_epoch=steps_per_epoch(notes) or count,
        elapsed=float(steps.sum(axis=0).max()) / count,
        reading=reading.sum(axis=0) / count,
        computing=computing.sum(axis=0) / count,
        busiest=float(busy.max(axis=1).sum()) / count,
        transfer=float(exchanging.min(axis=1).sum()) / count,
        barrier=None,
    )


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

    def account(self, reading: Floats, computing: Floats) -> StepAccount | None:
        count = len(self.local) * self.per_epoch
        ends, own = self.total.max(axis=1), self.local.max(axis=1)
        return _account(
            steps=count,
            per_epoch=self.per_epoch,
            elapsed=float(ends.sum()) / count,
            reading=reading.sum(axis=0) / count,
            computing=computing.sum(axis=0) / count,
            busiest=float(self.busiest.sum()) / count,
            transfer=float(self.transfer.sum()) / count,
            barrier=float((ends - own).sum()) / count,
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
    common_input, common_compute = lower_median(reading), lower_median(computing)
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
    common, highest = lower_median(own), float(own[slowest])
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
