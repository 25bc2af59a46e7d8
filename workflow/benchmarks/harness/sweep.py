"""What a probe measures: for each of several values the times of some repeats. No TensorFlow.

A probe goes through values (matrix sizes, message sizes, kernels, numbers of readers) within one
run, because starting the ranks takes longer than measuring. ``samples.npz`` has the times,
``sweep_seconds [value, repeat, rank]``, and the record's notes say under ``sweep`` what the values
are and how much work one call of each is (docs/methods/machine.md).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from harness.native import Metric, metric

SECONDS = "sweep_seconds"


class Chain(NamedTuple):
    """A call that does the work of its case several times."""

    run: Callable[[], Any]
    works: int

    def __call__(self) -> Any:
        """Do it."""
        return self.run()


def works_of(call: Callable[[], Any]) -> int:
    """Return how often a call does the work of its case."""
    return call.works if isinstance(call, Chain) else 1


class Case(NamedTuple):
    """One value of a sweep: what a call does, and how much work it is over all ranks."""

    value: int | str
    amount: float  # FLOP or bytes, in the sweep's unit
    prepare: Callable[[], Callable[[], Any]]  # makes the call; not timed
    before: Callable[[], object] | None = None  # done before each repeat, which is one call then


@dataclass
class Sweep:
    """Times by value, in s for the work of its case: of this rank, or after `gather` of all."""

    by: str  # what the values are of
    unit: str | None  # of the values
    amount_unit: str
    values: list[int | str] = field(default_factory=list)
    amounts: list[float] = field(default_factory=list)
    seconds: list[list[float]] = field(default_factory=list)  # [value][repeat]
    calls: list[int] = field(default_factory=list)  # in a repeat, of a chain its works
    left_out: dict[str, str] = field(default_factory=dict)  # value -> why

    def note(self) -> dict[str, Any]:
        """Return what the record keeps of the sweep besides its times."""
        kept = ("by", "unit", "amount_unit", "values", "amounts", "calls", "left_out")
        return {name: getattr(self, name) for name in kept}


class Clock(NamedTuple):
    """How ranks time together; a single process has no others to wait for."""

    now: Callable[[], float]
    barrier: Callable[[], object]
    largest: Callable[[float], float]  # of a number of every rank, on every rank


def run_sweep(
    sweep: Sweep, cases: Iterable[Case], repeats: int, least: float, most: float, clock: Clock
) -> None:
    """Time every case: `repeats` times as many calls as take `least` seconds.

    A case whose repeats would take more than `most` seconds, by its own first calls or by a line
    through the two cases before, is left out with the reason: float16 on a processor without it
    would take minutes. All ranks decide alike.
    """
    known: list[tuple[float, float]] = []  # amount and seconds of a call
    for case in cases:
        if (expected := _by_line(known, case.amount) * repeats) > most:
            sweep.left_out[str(case.value)] = _too_long(expected, most)
            continue
        call = case.prepare()
        call()
        call_s = clock.largest(_time(call, 1, case.before, clock))
        works = works_of(call)
        calls = 1 if case.before else max(1, math.ceil(least / max(call_s * works, 1e-9)))
        if (expected := call_s * works * calls * repeats) > most:
            sweep.left_out[str(case.value)] = _too_long(expected, most)
            known.append((case.amount, call_s))
            continue
        seconds = [_time(call, calls, case.before, clock) for _ in range(repeats)]
        known.append((case.amount, clock.largest(min(seconds))))
        sweep.values.append(case.value)
        sweep.amounts.append(case.amount)
        sweep.seconds.append(seconds)
        sweep.calls.append(calls * works)


def _time(
    call: Callable[[], Any], calls: int, before: Callable[[], object] | None, clock: Clock
) -> float:
    """Return the seconds of the work, the mean of some calls that all ranks began together."""
    if before:
        before()
    clock.barrier()
    began = clock.now()
    for _ in range(calls):
        call()
    return (clock.now() - began) / (calls * works_of(call))


def _by_line(known: list[tuple[float, float]], amount: float) -> float:
    """Return the seconds of a call by the two cases before; 0 where they do not tell."""
    if len(known) < 2 or not known[-2][0] < known[-1][0] < amount:
        return 0.0
    (first, before), (second, seconds) = known[-2:]
    return seconds + (amount - second) * max(0.0, (seconds - before) / (second - first))


def _too_long(expected: float, most: float) -> str:
    return f"would take about {expected:.3g} s, more than seconds_per_value {most:g}"


def rates(sweep: Sweep, seconds: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """Return ``[value, repeat]``: work of all ranks per second of the slowest rank, times `factor`.

    `seconds` are ``[value, repeat, rank]``.
    """
    amounts = np.array(sweep.amounts)[:, None]
    return factor * amounts / seconds.max(axis=2)


def ceiling_metrics(name: str, unit: str, rate: np.ndarray) -> dict[str, Metric]:
    """Return the ceiling `name`, the best of all values and repeats, and how it spreads.

    `<name>_median` is the median over the repeats of the value that has the best one.
    """
    best = int(rate.max(axis=1).argmax())
    return {
        name: metric(rate.max(), unit, "higher"),
        f"{name}_median": metric(float(np.median(rate[best])), unit, "higher"),
    }
