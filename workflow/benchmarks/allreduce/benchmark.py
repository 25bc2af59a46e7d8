"""What a rank does: take part in the same collective again and again, for each message size.

Sizes and bandwidths are those of nccl-tests (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md): the
algorithm bandwidth is size / time, the bus bandwidth that times a factor of the operation, so that
it can be compared with the speed of a link whatever the number of ranks. The size of an allgather
is that of its result.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from harness.frame import Arrays
from harness.native import Metric, metric
from harness.probe import SECONDS, Case, ceiling_metrics, rates
from harness.tf_probe import Probe, wait

# In steps of 16 where latency rules, then of 4: 4 B to 256 MiB.
SIZES = (4, 64, 1024, 2**14, 2**16, 2**18, 2**20, 2**22, 2**24, 2**26, 2**28)


class Program(Probe):
    """Time by message size."""

    rate_name, by, unit = "bus_bandwidth", "message size", "bytes"

    def threads(self) -> tuple[int, int]:
        """Return this rank's threads; operations that wait for Horovod take none."""
        return 0, self.params["threads"]

    def cases(self) -> Iterator[Case]:
        """Return a case for each message size."""
        params = self.params
        operation, ranks = params["operation"], params["ranks"]
        for asked in sorted(params["sizes"] or SIZES):
            counts, size = split(asked, params["tensors"], operation, ranks)
            if size not in self.sweep.values:  # small ones may come to the same
                yield Case(size, size, partial(make_call, operation, counts))

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return the best bandwidths, and the time of the smallest message."""
        seconds = arrays[SECONDS]
        factor = bus_factor(self.params["operation"], self.params["ranks"])
        bus = rates(self.sweep, seconds, factor)
        latency = float(np.median(seconds[0].max(axis=1)))
        return ceiling_metrics(self.rate_name, self.rate_unit, bus) | {
            "algorithm_bandwidth": metric(bus.max() / factor, "bytes/s", "higher"),
            "latency": metric(latency, "s"),
        }

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return the operation too, which a fit of the network needs."""
        notes = super().notes(about_ranks)
        notes["sweep"]["collective"] = self.params["operation"]
        return notes


def bus_factor(operation: str, ranks: int) -> float:
    """Return bus bandwidth over algorithm bandwidth."""
    if operation == "allreduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if operation == "allgather" else 1.0


def split(size: int, tensors: int, operation: str, ranks: int) -> tuple[list[int], int]:
    """Return how many float32 each tensor of a rank has, and the bytes of the message in fact.

    A message of fewer values than tensors has one for each value. A rank hands over all of a
    message, or of an allgather its share: at least one value, by which small messages grow.
    """
    values = max(1, size // 4)
    if operation == "allgather":
        values = max(1, values // ranks)
    pieces = min(tensors, values)
    counts = [values // pieces + (number < values % pieces) for number in range(pieces)]
    return counts, 4 * values * (ranks if operation == "allgather" else 1)


def make_call(operation: str, counts: list[int]) -> Callable[[], Any]:
    """Return a function that hands over tensors of so many float32 and waits for all of them."""
    tensors = [tf.ones([count]) for count in counts]
    collective = {
        "allreduce": partial(hvd.allreduce, op=hvd.Sum),
        "broadcast": partial(hvd.broadcast, root_rank=0),
        "allgather": hvd.allgather,
    }[operation]

    @tf.function(autograph=False)
    def exchange(*parts: tf.Tensor) -> list[tf.Tensor]:
        return [
            collective(part, name=f"{operation}_{len(counts)}_{counts[number]}_{number}")
            for number, part in enumerate(parts)
        ]

    return lambda: wait(exchange(*tensors))
