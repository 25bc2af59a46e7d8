"""What a rank does: copy arrays of several sizes from one place to another.

TensorFlow pins no array on request. Its graphs pin the memory of the host that they get a tensor in
from a GPU; that is what pinned copies are from, and to.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from harness import ranks, tf_training
from harness.frame import Arrays
from harness.native import Metric, metric
from harness.probe import SECONDS, Case
from harness.program import EXIT_UNSUPPORTED
from harness.tf_probe import Probe, wait

CPU = "/device:CPU:0"
# From and to: 0 is the host, other numbers are GPUs.
PLACES = {
    "host_to_host": (0, 0),
    "host_to_device": (0, 1),
    "device_to_host": (1, 0),
    "device_to_device": (1, 2),
}


class Program(Probe):
    """Bytes per second by size of the message."""

    rate_name, by, unit = "copy_bandwidth", "message size", "bytes"

    def start(self) -> None:
        """Start the rank, with two GPUs where it copies between them; else each with its own."""
        if self.params["direction"] != "device_to_device":
            super().start()
            return
        ranks.join(self.params["ranks"], *self.threads())
        _, problem = tf_training.take_gpus(2)
        ranks.raise_together(problem)

    def set_up(self) -> None:
        """Find the devices; end with code 69 where there is no GPU."""
        direction = self.params["direction"]
        places = [CPU, *(gpu.name for gpu in tf.config.list_logical_devices("GPU"))]
        source, target = PLACES[direction]
        lacking = len(places) <= max(source, target)
        said = f"direction {direction}: TensorFlow sees no GPU here"
        ranks.raise_together((EXIT_UNSUPPORTED, said) if lacking else None)
        self.source, self.target = places[source], places[target]

    def made(self, size: int) -> tf.Tensor:
        """Return random bytes where they are copied from, in memory of the kind asked for."""
        values = np.random.default_rng(size).integers(256, size=size, dtype=np.uint8)
        pinned = self.params["host_memory"] == "pinned" and self.source == CPU
        with tf.device(self.target if pinned else self.source):
            array = tf.identity(tf.constant(values))
        return through_graph(array, CPU)() if pinned else array

    def copying(self, array: tf.Tensor) -> Callable[[], Any]:
        """Return the copy of an array; what it gives is where it was copied to."""
        if self.params["direction"] == "host_to_host":
            return lambda: tf.raw_ops.Snapshot(input=array)
        if self.params["host_memory"] == "pinned" and self.target == CPU:
            return through_graph(array, self.target)

        def eagerly() -> Any:
            with tf.device(self.target):
                return tf.identity(array)

        return eagerly

    def cases(self) -> Iterator[Case]:
        """Return a case for each size."""
        for size in sorted(set(self.params["sizes"])):
            yield Case(size, self.params["ranks"] * size, partial(self.prepare, size))

    def prepare(self, size: int) -> Callable[[], Any]:
        """Return a call that copies once and waits for it."""
        copying = self.copying(self.made(size))
        return lambda: wait(copying())

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return the best rate, its median, and the latency."""
        slowest = arrays[SECONDS].max(axis=2)
        return super().metrics(arrays) | {"latency": metric(float(np.median(slowest[0])), "s")}


def through_graph(array: tf.Tensor, target: str) -> Callable[[], Any]:
    """Return a graph that copies an array to a device."""

    @tf.function(autograph=False)
    def copied(values: tf.Tensor) -> tf.Tensor:
        with tf.device(target):
            return tf.identity(values)

    return lambda: copied(array)
