"""The frame of a probe: a benchmark that times a sweep of calls and reports the best rate.

Whichever framework calls are of: `tf_probe` and `torch_probe` start its ranks.
"""

import time
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from harness import ranks, watch
from harness.frame import Arrays, Benchmark
from harness.native import Metric
from harness.program import EXIT_UNSUPPORTED, ProgramError
from harness.sweep import SECONDS, Case, Clock, Sweep, ceiling_metrics, rates, run_sweep


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
        params = self.params
        self.sweep = Sweep(self.by, self.unit, self.amount_unit)
        clock = Clock(time.perf_counter, ranks.barrier, _largest)
        repeats, least = params["repeats"], params["seconds_per_repeat"]
        with self.phases("timed"):
            try:
                run_sweep(
                    self.sweep, self.cases(), repeats, least, params["seconds_per_value"], clock
                )
            except self.lacking as error:
                # TensorFlow's message without the node that it names.
                line = str(getattr(error, "message", error)).splitlines()[0][:200]
                raise ProgramError(EXIT_UNSUPPORTED, f"{self.asked()}: {line}") from None
        if not self.sweep.values:
            why = next(iter(self.sweep.left_out.values()), "nothing was asked for")
            raise ProgramError(
                EXIT_UNSUPPORTED, f"{self.asked()}: {why}" if ranks.rank() == 0 else ""
            )

    def asked(self) -> str:
        """Return the parameters, in words, that a machine may not be able to do."""
        return self.sweep.by

    def gather(self) -> dict[str, np.ndarray | None]:
        """Gather the times of all ranks: ``[value, repeat, rank]``."""
        return {SECONDS: ranks.gather(np.array(self.sweep.seconds))}

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return the best rate and the median of its repeats."""
        return ceiling_metrics(self.rate_name, self.rate_unit, rates(self.sweep, arrays[SECONDS]))

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return what the times are of."""
        return {"sweep": self.sweep.note()}


def _largest(value: float) -> float:
    """Return the largest of every rank's numbers, on every rank."""
    watch.advance()
    return float(max(ranks.gather_json(value)))
