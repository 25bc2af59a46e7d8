"""What a rank does: move three large arrays, kernel by kernel."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from harness import cuda, ranks
from harness.frame import Arrays
from harness.native import Metric, metric
from harness.probe import SECONDS, Case, Chain, rates
from harness.program import EXIT_UNSUPPORTED
from harness.tf_probe import Probe, wait
from memory_bandwidth import caches, kernels

IN_A_ROW = 8  # kernels that a GPU starts before one is waited for


class Program(Probe):
    """Bytes per second by kernel and library."""

    rate_name, by = "bandwidth", "kernel"

    def threads(self) -> tuple[int, int]:
        """Return the threads: those asked for, or one for each core of this rank."""
        return 0, self.params["threads"] or len(os.sched_getaffinity(0))

    def set_up(self) -> None:
        """Find out how large arrays are, and where TensorFlow's lie; code 69 if there is
        no GPU and one is asked for."""
        # Alike on every rank, also where nodes differ.
        self.bytes = int(max(ranks.gather_json(caches.array_bytes(self.params["array_mib"]))))
        asked, gpus = self.params["device"], tf.config.get_visible_devices("GPU")
        self.gpu = "" if asked == "cpu" or not gpus else str(gpus[0].name.rpartition(":")[2])
        lacking = (EXIT_UNSUPPORTED, "device gpu: TensorFlow sees no GPU here")
        ranks.raise_together(lacking if asked == "gpu" and not gpus else None)
        self.on_gpu = self.bytes
        if self.gpu:
            cache, memory = cuda.cache_bytes(int(self.gpu)), cuda.memory_bytes(int(self.gpu))
            self.on_gpu = caches.gpu_array_bytes(self.params["array_mib"], cache, memory)

    def cases(self) -> Iterator[Case]:
        """Return a case for each kernel of each library; arrays are made by its first kernel."""
        sizes = {"numpy": self.bytes // 8, "tensorflow": self.on_gpu // 8}
        made: dict[str, dict[str, kernels.Kernel]] = {}

        def make(library: str, kernel: str) -> Callable[[], Any]:
            size = sizes[library]
            if library not in made:
                made.clear()  # the other library's arrays
                made[library] = (
                    kernels.numpy_kernels(size, self.threads()[1])
                    if library == "numpy"
                    else self.tensorflow_kernels(size)
                )
            return made[library][kernel]

        for library in self.params["libraries"]:
            for kernel, arrays in kernels.ARRAYS.items():
                amount = self.params["ranks"] * arrays * sizes[library] * 8
                yield Case(f"{library} {kernel}", amount, partial(make, library, kernel))

    def tensorflow_kernels(self, size: int) -> dict[str, kernels.Kernel]:
        """Return TensorFlow's kernels where they are asked for.

        A GPU starts several in a row, so that what starting takes does not count as moving.
        """
        if self.params["device"] == "auto" and not self.gpu:
            return kernels.tensorflow_kernels(size, wait)
        device = "/GPU:0" if self.gpu else "/CPU:0"
        with tf.device(device):
            made = kernels.tensorflow_kernels(size, (lambda x: x) if self.gpu else wait)

        def placed(kernel: kernels.Kernel) -> Callable[[], Any]:
            def call() -> Any:
                with tf.device(device):
                    for _ in range(IN_A_ROW if self.gpu else 1):
                        result = kernel()
                return wait(result)

            return Chain(call, IN_A_ROW) if self.gpu else call

        return {name: placed(kernel) for name, kernel in made.items()}

    def about_rank(self) -> str:
        """Return the device of TensorFlow's arrays."""
        gpus = tf.config.get_visible_devices("GPU") if self.gpu else []
        details = tf.config.experimental.get_device_details
        return str(details(gpus[0]).get("device_name", "GPU")) if gpus else "CPU"

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
        """Return the sizes of arrays and caches too."""
        cache = caches.last_level_bytes(os.sched_getaffinity(0))
        sizes = {"array_bytes": self.bytes, "last_level_cache_bytes": cache}
        if self.gpu:
            sizes |= {
                "gpu_array_bytes": self.on_gpu,
                "gpu_cache_bytes": cuda.cache_bytes(int(self.gpu)),
                "gpu_memory_bytes": cuda.memory_bytes(int(self.gpu)),
            }
        devices = {"devices": about_ranks}
        return super().notes(about_ranks) | {"memory": sizes | devices}
