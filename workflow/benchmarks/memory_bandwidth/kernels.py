"""STREAM's kernels in NumPy and TensorFlow, and how large arrays must be to miss the caches.

Bytes are counted as STREAM does: each array that a kernel reads or writes once, without the line
that a cache may read before it writes to it (J. D. McCalpin, STREAM, www.cs.virginia.edu/stream).
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

Kernel = Callable[[], Any]

ARRAYS = {"copy": 2, "scale": 2, "add": 3, "triad": 3}  # that a kernel reads or writes
SCALAR = 3.0
# Values of a block: NumPy's triad takes two passes, of which the second finds its operands in the
# second-level cache. Larger blocks cost less in calls.
BLOCK = 1 << 16
CPUS = Path("/sys/devices/system/cpu")
TIMES = 4  # STREAM's rule: each array at least four times the sum of the last-level caches
LEAST_BYTES = 64 << 20  # where no cache size can be read
GPU_MIB = 1 << 10  # of an array on a GPU: above four times any second-level cache of today
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def numpy_kernels(size: int, threads: int) -> dict[str, Kernel]:
    """Return the kernels on arrays of `size` float64, shared out among threads.

    NumPy lets go of Python's lock while it works on a block. Each thread writes its own part first,
    so that its pages lie where it runs.
    """
    a, b, c = (np.empty(size) for _ in range(3))
    pool = ThreadPoolExecutor(threads)
    edges = np.linspace(0, size, threads + 1, dtype=np.int64).tolist()

    def fill(part: slice) -> None:
        a[part], b[part], c[part] = 1.0, 2.0, 0.0

    def triad(part: slice) -> None:
        np.multiply(c[part], SCALAR, out=a[part])
        np.add(a[part], b[part], out=a[part])

    def shared(kernel: Callable[[slice], Any]) -> Kernel:
        def work(low: int, high: int) -> None:
            for begin in range(low, high, BLOCK):
                kernel(slice(begin, min(begin + BLOCK, high)))

        return lambda: list(pool.map(work, edges[:-1], edges[1:]))

    shared(fill)()
    return {
        "copy": shared(lambda part: np.copyto(c[part], a[part])),
        "scale": shared(lambda part: np.multiply(c[part], SCALAR, out=b[part])),
        "add": shared(lambda part: np.add(a[part], b[part], out=c[part])),
        "triad": shared(triad),
    }


def tensorflow_kernels(size: int, wait: Callable[[Any], Any]) -> dict[str, Kernel]:
    """Return the kernels on tensors of `size` float64; each makes its result, as operations do.

    The triad is compiled with XLA, which fuses it; as two operations it would move five arrays.
    """
    import tensorflow as tf

    a, b = tf.ones([size], tf.float64), 2 * tf.ones([size], tf.float64)
    scalar = tf.constant(SCALAR, tf.float64)
    triad = tf.function(lambda x, y: x + scalar * y, jit_compile=True)
    return {
        "copy": lambda: wait(tf.raw_ops.Snapshot(input=a)),
        "scale": lambda: wait(a * scalar),
        "add": lambda: wait(a + b),
        "triad": lambda: wait(triad(a, b)),
    }


def last_level_bytes(cpus: set[int], folder: Path = CPUS) -> int | None:
    """Return the bytes of the last-level caches that these CPUs share, each counted once.

    None where the kernel does not tell.
    """
    caches = {}
    for cpu in cpus:
        # The last one is of the highest level.
        for index in sorted((folder / f"cpu{cpu}" / "cache").glob("index*"))[-1:]:
            size = (index / "size").read_text().strip()
            shared = (index / "shared_cpu_list").read_text().strip()
            caches[shared] = int(size[:-1]) * _UNITS[size[-1]]
    return sum(caches.values()) or None


def array_bytes(array_mib: int | None) -> int:
    """Return the size of an array: the one that is asked for, or what misses the caches here."""
    if array_mib is not None:
        return array_mib << 20
    return max(LEAST_BYTES, TIMES * (last_level_bytes(os.sched_getaffinity(0)) or 0))
