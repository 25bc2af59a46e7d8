"""What a rank does: move three large arrays, kernel by kernel."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from harness import ranks
from harness.frame import Arrays
from harness.native import Metric, metric
from harness.probe import Probe, wait
from harness.program import EXIT_UNSUPPORTED
from harness.sweep import SECONDS, Case, Sweep, rates
from memory_bandwidth import caches, kernels


class MemoryBandwidth(Probe):
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
        problem = None
        if there is not None and needed > there:
            words = f"three arrays of {self.bytes >> 20} MiB"
            problem = (EXIT_UNSUPPORTED, f"{words} a rank do not fit in {there >> 20} MiB")
        ranks.raise_together(problem)

    def make_sweep(self) -> Sweep:
        """Return the sweep over kernels."""
        return Sweep("kernel", None, "bytes")

    def cases(self) -> Iterator[Case]:
        """Return a case for each kernel of each library; arrays are made by its first kernel."""
        size = self.bytes // 8
        made: dict[str, dict[str, kernels.Kernel]] = {}

        def make(library: str, kernel: str) -> Callable[[], Any]:
            if library not in made:
                made.clear()  # the other library's arrays
                made[library] = (
                    kernels.numpy_kernels(size, self.threads()[1])
                    if library == "numpy"
                    else kernels.tensorflow_kernels(size, wait)
                )
            return made[library][kernel]

        for library in self.params["libraries"]:
            for kernel, arrays in kernels.ARRAYS.items():
                amount = self.params["ranks"] * arrays * size * 8
                yield Case(f"{library} {kernel}", amount, partial(make, library, kernel))

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
        return super().notes(about_ranks) | {"memory": sizes}
