"""Reading files with plain system calls, by threads. No TensorFlow."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

KIB = 1 << 10


def offsets(file_bytes: int, block: int, most: int | None, seed: Sequence[int]) -> list[int]:
    """Return where the blocks of a file begin, in the order in which they are read.

    All of them in order, or with `most` so many of them in random order. A last block that is not
    whole is left out.
    """
    blocks = np.arange(file_bytes // block)
    if most is not None:
        blocks = np.random.default_rng(seed).permutation(blocks)[:most]
    return [int(number) * block for number in blocks]


def read_blocks(path: str, begins: Sequence[int], block: int) -> None:
    """Read blocks of a file into the same memory; OSError where the file ends before."""
    buffer = bytearray(block)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        for begin in begins:
            if os.preadv(descriptor, [buffer], begin) != block:
                raise OSError(f"{path} is shorter than it must be")
    finally:
        os.close(descriptor)


def make_call(
    paths: Sequence[str], begins: Sequence[Sequence[int]], block: int
) -> Callable[[], None]:
    """Return a function that reads each file by a thread of its own, all at the same time."""
    if len(paths) == 1:
        return lambda: read_blocks(paths[0], begins[0], block)
    pool = ThreadPoolExecutor(len(paths))

    def call() -> None:
        for done in [
            pool.submit(read_blocks, *job, block) for job in zip(paths, begins, strict=True)
        ]:
            done.result()

    return call
