"""Samples made by Python instead of tf.data: records read, decoded and mapped with NumPy alone.

Imports no TensorFlow, which every worker process would load anew. TFRecord checksums are not
looked at: of what is compared here tf.data alone computes them.
"""

import gzip
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

from cosmoflow_data import dataset


class Task(NamedTuple):
    """A sample that a worker makes: its file, its place there, and how it is mapped."""

    path: str
    place: int
    shape: tuple[int, ...]
    passes: int
    compression: str


def records(path: str, compression: str = "none") -> Iterator[bytes]:
    """Yield the records of a TFRecord file; ValueError where it ends within one."""
    opened: Any = gzip.open if compression == "GZIP" else open
    with opened(path, "rb") as file:
        while header := file.read(12):  # length, and its checksum
            size = int.from_bytes(header[:8], "little")
            record = file.read(size + 4)
            if len(header) < 12 or len(record) < size + 4:
                raise ValueError(f"{path} ends within a record")
            yield record[:size]


def mapped(record: bytes, shape: Iterable[int], passes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a record as sample x (float32, of `shape`) and y, as `pipelines` maps it."""
    x, y = dataset.parse(record, tuple(shape))
    x = x.astype(np.float32)
    for number in range(passes):
        x = np.log((x if number == 0 else np.abs(x)) + np.float32(1))
        x = (x - x.mean()) / np.sqrt(x.var() + np.float32(1e-6))
    return x, y


def make_sample(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Read and map one sample: what a worker process does."""
    record = next(islice(records(task.path, task.compression), task.place, None))
    return mapped(record, task.shape, task.passes)


def start_workers(count: int) -> ProcessPoolExecutor:
    """Start processes as new interpreters: none is forked off the threads of TensorFlow."""
    context = get_context("spawn")
    pool = ProcessPoolExecutor(count, context, _begin, (context.Barrier(count),))
    list(pool.map(bool, range(count)))  # they have begun
    return pool


def _begin(everyone: Any) -> None:
    """Wait for the other processes: else the first would answer for those that still start."""
    everyone.wait()


def samples(pool: Executor, tasks: Iterable[Task], ahead: int) -> Iterator[Any]:
    """Yield the samples of `tasks` in their order, so many of them being made ahead.

    Raises what a worker raised, and BrokenExecutor if one was ended meanwhile, as by the kernel for
    its memory.
    """
    pending: deque[Future[Any]] = deque()
    for task in tasks:
        if len(pending) >= ahead:
            yield pending.popleft().result()
        pending.append(pool.submit(make_sample, task))
    while pending:
        yield pending.popleft().result()
