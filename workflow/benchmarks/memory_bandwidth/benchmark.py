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
from harness.program import EXIT_UNSUPPORTED
from harness.sweep import SECONDS, Case, Chain, Sweep, rates
from harness.tf_probe import Probe, wait
from memory_bandwidth import caches, kernels

IN_A_ROW = 8  # kernels that a GPU starts before one is waited for
ARRAYS_ON_GPU = 4  # operands, the last result and the one before


class Program(Probe):
    """Bytes per second by kernel and library."""

    rate_name, rate_unit = "bandwidth", "bytes/s"

    def threads(self) -> tuple[int, int]:
        """Return the threads: those asked for, or one for each core of this rank."""
        return 0, self.params["threads"] or len(os.sched_getaffinity(0))

    def set_up(self) -> None:
        """Find out how large arrays are; end with code 69 where a node's memory is too small."""
        # Alike on every rank, also where nodes differ.
        self.bytes = int(max(ranks.gather_json(caches.array_bytes(self.params["array_mib"]))))
        # On each node: the arrays of one library at a time, of all its ranks.
        needed = 3 * self.bytes * min(self.params["ranks_per_node"], self.params["ranks"])
        there = caches.available_bytes()
        problem = self.place()
        host = not self.gpu or "numpy" in self.params["libraries"]
        if host and problem is None and there is not None and needed > there:
            words = f"three arrays of {self.bytes >> 20} MiB"
            problem = (EXIT_UNSUPPORTED, f"{words} a rank do not fit in {there >> 20} MiB")
        ranks.raise_together(problem)

    def place(self) -> tuple[int, str] | None:
        """Find where TensorFlow's arrays lie, and how large they are; return what stands against
        it: no GPU, or one whose memory is too small."""
        asked, gpus = self.params["device"], tf.config.get_visible_devices("GPU")
        self.gpu = "" if asked == "cpu" or not gpus else str(gpus[0].name.rpartition(":")[2])
        self.on_gpu = self.bytes
        if not self.gpu:
            said = EXIT_UNSUPPORTED, "device gpu: TensorFlow sees no GPU here"
            return said if asked == "gpu" else None
        cache, memory = cuda.cache_bytes(int(self.gpu)), cuda.memory_bytes(int(self.gpu))
        self.on_gpu = caches.gpu_array_bytes(self.params["array_mib"], cache, memory)
        if memory is not None and (ARRAYS_ON_GPU + 1) * self.on_gpu > memory:
            words = f"{ARRAYS_ON_GPU} arrays of {self.on_gpu >> 20} MiB"
            return EXIT_UNSUPPORTED, f"{words} do not fit in the GPU's {memory >> 20} MiB"
        return None

    def make_sweep(self) -> Sweep:
        """Return the sweep over kernels."""
        return Sweep("kernel", None, "bytes")

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
