"""What a rank does: copy arrays of several sizes from one place to another.

TensorFlow pins no array on request. Its graphs pin the memory of the host that they get a tensor in
from a GPU; that is what pinned copies are from, and to. Where the driver can be asked, the run ends
if the memory is not of the kind that was asked for.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from harness import cuda, ranks
from harness.frame import Arrays
from harness.native import Metric, metric
from harness.probe import SECONDS, Case
from harness.program import EXIT_UNSUPPORTED
from harness.tf_probe import Probe, wait

CPU = "/device:CPU:0"


class Program(Probe):
    """Bytes per second by size of the message."""

    rate_name, by, unit = "copy_bandwidth", "message size", "bytes"

    def start(self) -> None:
        """Start the rank, with two GPUs where it copies between them; else each with its own."""
        params = self.params
        if params["direction"] != "device_to_device":
            super().start()
            return
        ranks.join(params["ranks"], *self.threads())
        gpus = tf.config.list_physical_devices("GPU")
        for gpu in gpus:
            tf.config.experimental.set_memory_growth(gpu, True)
        ranks.raise_together(lacking_gpus(params, len(gpus)))

    def set_up(self) -> None:
        """Find the devices; end with code 69 where there is no GPU, or no such memory."""
        direction = self.params["direction"]
        self.gpus = [gpu.name for gpu in tf.config.list_logical_devices("GPU")]
        ranks.raise_together(lacking_gpus(self.params, len(self.gpus)))
        self.source, self.target = {
            "host_to_host": lambda: (CPU, CPU),
            "host_to_device": lambda: (CPU, self.gpus[0]),
            "device_to_host": lambda: (self.gpus[0], CPU),
            "device_to_device": lambda: (self.gpus[0], self.gpus[1]),
        }[direction]()
        self.pinned: bool | None = None
        if direction in ("host_to_device", "device_to_host"):
            host = self.made(1 << 20)
            if direction == "device_to_host":
                host = self.copying(host)()
            physical = tf.config.get_visible_devices("GPU")[0].name.rpartition(":")[2]
            self.pinned = cuda.is_pinned(address_of(host), int(physical))
            ranks.raise_together(self.wrong_memory())

    def wrong_memory(self) -> tuple[int, str] | None:
        """Return what stands against the kind of memory that was asked for."""
        asked = self.params["host_memory"]
        if self.pinned is None or self.pinned == (asked == "pinned"):
            return None
        kind = "pinned" if self.pinned else "pageable"
        return EXIT_UNSUPPORTED, f"host_memory {asked}: this TensorFlow copies {kind} memory here"

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

    def about_rank(self) -> list[str]:
        """Return the names of this rank's GPUs."""
        details = tf.config.experimental.get_device_details
        gpus = tf.config.get_visible_devices("GPU")
        return [str(details(gpu).get("device_name", gpu.name)) for gpu in gpus]

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return between what it copied, and whether the driver says that memory is pinned."""
        copied = {
            "from": self.source.rpartition("device:")[2],
            "to": self.target.rpartition("device:")[2],
            "host_is_pinned": self.pinned,
            "gpus": about_ranks,
        }
        return super().notes(about_ranks) | {"copies": copied}


def lacking_gpus(params: dict[str, Any], count: int) -> tuple[int, str] | None:
    """Return what stands against a direction where a rank sees so many GPUs."""
    direction = params["direction"]
    needed = {"host_to_host": 0, "device_to_device": 2}.get(direction, 1)
    if count >= needed:
        return None
    there = f"{count} GPUs" if count else "no GPU"
    return EXIT_UNSUPPORTED, f"direction {direction}: TensorFlow sees {there} here, needs {needed}"


def through_graph(array: tf.Tensor, target: str) -> Callable[[], Any]:
    """Return a graph that copies an array to a device."""

    @tf.function(autograph=False)
    def copied(values: tf.Tensor) -> tf.Tensor:
        with tf.device(target):
            return tf.identity(values)

    return lambda: copied(array)


def address_of(host: tf.Tensor) -> int:
    """Return where the values of a tensor of the host lie, without a copy of them."""
    return int(np.frombuffer(memoryview(host), np.uint8).ctypes.data)
