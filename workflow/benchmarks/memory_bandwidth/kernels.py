"""STREAM's kernels in NumPy and TensorFlow.

Bytes are counted as STREAM does: each array that a kernel reads or writes once, without the line
that a cache may read before it writes to it (J. D. McCalpin, STREAM, www.cs.virginia.edu/stream).
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np

Floats: TypeAlias = np.ndarray
Kernel: TypeAlias = Callable[[], Any]

ARRAYS = {"copy": 2, "scale": 2, "add": 3, "triad": 3}  # that a kernel reads or writes
SCALAR = 3.0
# Values of a block: NumPy's triad takes two passes, of which the second finds its operands in the
# second-level cache. Larger blocks cost less in calls.
BLOCK = 1 << 16


def numpy_kernels(size: int, threads: int) -> dict[str, Kernel]:
    """Return the kernels on arrays of `size` float64, shared out among threads.

    NumPy lets go of Python's lock while it works on a block. Each thread writes its own part first,
    so that its pages lie where it runs.
    """
    a, b, c = (np.empty(size) for _ in range(3))
    pool = ThreadPoolExecutor(threads)
    edges = np.linspace(0, size, threads + 1, dtype=np.int64).tolist()

    def fill(low: int, high: int) -> None:
        for array, value in ((a, 1.0), (b, 2.0), (c, 0.0)):
            array[low:high] = value

    def copy(part: slice) -> None:
        np.copyto(c[part], a[part])

    def scale(part: slice) -> None:
        np.multiply(c[part], SCALAR, out=b[part])

    def add(part: slice) -> None:
        np.add(a[part], b[part], out=c[part])

    def triad(part: slice) -> None:
        np.multiply(c[part], SCALAR, out=a[part])
        np.add(a[part], b[part], out=a[part])

    def by_blocks(kernel: Callable[[slice], None]) -> Callable[[int, int], None]:
        def work(low: int, high: int) -> None:
            for begin in range(low, high, BLOCK):
                kernel(slice(begin, min(begin + BLOCK, high)))

        return work

    def shared(work: Callable[[int, int], None]) -> Kernel:
        if threads == 1:
            return lambda: work(0, size)
        return lambda: list(pool.map(work, edges[:-1], edges[1:]))

    shared(fill)()
    kernels = {"copy": copy, "scale": scale, "add": add, "triad": triad}
    return {name: shared(by_blocks(kernel)) for name, kernel in kernels.items()}


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
