"""What a rank does: move three large arrays, kernel by kernel."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from harness import ranks
from harness.frame import Arrays
from harness.native import Metric, metric
from harness.probe import SECONDS, Case, Chain, rates
from harness.tf_probe import Probe, wait
from memory_bandwidth import kernels

IN_A_ROW = 8  # kernels that a GPU starts before one is waited for


class Program(Probe):
    """Bytes per second by kernel and library."""

    rate_name, by = "bandwidth", "kernel"

    def threads(self) -> tuple[int, int]:
        """Return the threads: those asked for, or one for each core of this rank."""
        return 0, self.params["threads"] or len(os.sched_getaffinity(0))

    def set_up(self) -> None:
        """Find out how large arrays are, and where TensorFlow's lie: on a GPU if there is one."""
        # Alike on every rank, also where nodes differ.
        self.bytes = int(max(ranks.gather_json(kernels.array_bytes(self.params["array_mib"]))))
        self.gpus = tf.config.get_visible_devices("GPU")
        whole = self.params["array_mib"] or kernels.GPU_MIB
        self.on_gpu = whole << 20 if self.gpus else self.bytes

    def cases(self) -> Iterator[Case]:
        """Return a case for each kernel of each library, whose arrays are made with its first."""
        threads = self.threads()[1]
        for library, make, size in (
            ("tensorflow", self.tensorflow_kernels, self.on_gpu // 8),
            ("numpy", partial(kernels.numpy_kernels, threads=threads), self.bytes // 8),
        ):
            made = make(size)
            for kernel, arrays in kernels.ARRAYS.items():
                amount = self.params["ranks"] * arrays * size * 8
                yield Case(f"{library} {kernel}", amount, partial(made.__getitem__, kernel))

    def tensorflow_kernels(self, size: int) -> dict[str, kernels.Kernel]:
        """Return TensorFlow's kernels.

        A GPU starts several in a row, so that what starting takes does not count as moving.
        """
        if not self.gpus:
            return kernels.tensorflow_kernels(size, wait)

        def in_a_row(kernel: kernels.Kernel) -> Callable[[], Any]:
            return Chain(lambda: wait([kernel() for _ in range(IN_A_ROW)][-1]), IN_A_ROW)

        made = kernels.tensorflow_kernels(size, lambda x: x)
        return {name: in_a_row(kernel) for name, kernel in made.items()}

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return the best rate of all kernels, and of each kernel."""
        rate = rates(self.sweep, arrays[SECONDS])
        kinds = np.array([str(value).split()[1] for value in self.sweep.values])
        return super().metrics(arrays) | {
            f"{kernel}_bandwidth": metric(rate[kinds == kernel].max(), "bytes/s", "higher")
            for kernel in kernels.ARRAYS
            if (kinds == kernel).any()
        }

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return the sizes of arrays too."""
        sizes = {"array_bytes": self.bytes, "tensorflow_array_bytes": self.on_gpu}
        return super().notes(about_ranks) | {"memory": sizes}
