"""The frame of a probe: a benchmark that times a sweep of calls and reports the best rate.

A probe goes through values (matrix sizes, message sizes, kernels, numbers of readers) within one
run, because starting the ranks takes longer than measuring. ``samples.npz`` has the times,
``sweep_seconds [value, repeat, rank]``, and the record's notes say under ``sweep`` what the values
are and how much work one call of each is (docs/methods/machine.md). Whichever framework calls are
of: `tf_probe` and `torch_probe` start its ranks.
"""

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from harness import ranks, watch
from harness.frame import Arrays, Benchmark
from harness.native import Metric, metric
from harness.program import EXIT_UNSUPPORTED, ProgramError

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
    """Times by value, in s for the work of its case, of this rank."""

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


class SweepProbe(Benchmark):
    """A benchmark with the parameters repeats, seconds_per_repeat and seconds_per_value."""

    rate_name: str  # the main metric
    rate_unit = "bytes/s"
    by: str  # what the values of the sweep are of, and their unit
    unit: str | None = None
    amount_unit = "bytes"
    sweep: Sweep
    # What the framework raises where it has no code for a call.
    lacking: ClassVar[tuple[type[Exception], ...]] = ()

    def threads(self) -> tuple[int, int]:
        """Return this rank's threads: `threads` within an operation, one operation at a time."""
        return 0, self.params["threads"]

    @abstractmethod
    def cases(self) -> Iterable[Case]:
        """Return what is timed, in the order of growing work."""

    def measure(self) -> None:
        """Time the sweep. Raises ProgramError (code 69) where nothing of it can be measured."""
        self.sweep = Sweep(self.by, self.unit, self.amount_unit)
        with self.phases("timed"):
            try:
                run_sweep(self.sweep, self.cases(), self.params)
            except self.lacking as error:
                # TensorFlow's message without the node that it names.
                line = str(getattr(error, "message", error)).splitlines()[0][:200]
                raise ProgramError(EXIT_UNSUPPORTED, f"{self.asked()}: {line}") from None
        if not self.sweep.values:
            why = next(iter(self.sweep.left_out.values()), "nothing was asked for")
            said = f"{self.asked()}: {why}" if ranks.rank() == 0 else ""
            raise ProgramError(EXIT_UNSUPPORTED, said)

    def asked(self) -> str:
        """Return the parameters, in words, that a machine may not be able to do."""
        return self.by

    def gather(self) -> dict[str, np.ndarray | None]:
        """Gather the times of all ranks: ``[value, repeat, rank]``."""
        return {SECONDS: ranks.gather(np.array(self.sweep.seconds))}

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return the best rate and the median of its repeats."""
        return ceiling_metrics(self.rate_name, self.rate_unit, rates(self.sweep, arrays[SECONDS]))

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return what the times are of."""
        return {"sweep": self.sweep.note()}


def run_sweep(sweep: Sweep, cases: Iterable[Case], params: dict[str, Any]) -> None:
    """Time every case: `repeats` times as many calls as take `seconds_per_repeat`.

    A case whose repeats would take more than `seconds_per_value`, by its own first calls, is left
    out with the reason, and so is one of more work: float16 on a processor without it would take
    minutes. All ranks decide alike.
    """
    repeats, most = params["repeats"], params["seconds_per_value"]
    least, why = math.inf, ""  # work of a case that was left out
    for case in cases:
        if case.amount > least:
            sweep.left_out[str(case.value)] = why
            continue
        call = case.prepare()
        call()
        call_s = _largest(_time(call, 1, case.before))
        works = works_of(call)
        calls = math.ceil(params["seconds_per_repeat"] / max(call_s * works, 1e-9))
        calls = 1 if case.before else max(1, calls)
        if (expected := call_s * works * calls * repeats) > most:
            why = f"would take {expected:.3g} s or more, of seconds_per_value {most:g}"
            sweep.left_out[str(case.value)], least = why, case.amount
            continue
        sweep.values.append(case.value)
        sweep.amounts.append(case.amount)
        sweep.seconds.append([_time(call, calls, case.before) for _ in range(repeats)])
        sweep.calls.append(calls * works)


def _time(call: Callable[[], Any], calls: int, before: Callable[[], object] | None) -> float:
    """Return the seconds of the work, the mean of some calls that all ranks began together."""
    if before:
        before()
    ranks.barrier()
    began = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - began) / (calls * works_of(call))


def _largest(value: float) -> float:
    """Return the largest of every rank's numbers, on every rank."""
    watch.advance()
    return float(max(ranks.gather_json(value)))


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
