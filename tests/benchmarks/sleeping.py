"""Helper of test_sleeping: two ranks take steps of sleeps and exchange a number after each.

``sleeping.py FOLDER``: of each row of `ROWS` rank 0 writes ``FOLDER/<row>.npz``, the arrays that a
program of a user's would keep: ``step_times``, the spans and ``span_between`` ``[step, rank]``.
"""

import queue
import sys
import threading
import time
from pathlib import Path

from harness import import_without

import_without("pandas", "scipy", "PIL")

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from harness import ranks

STEPS, BASE_S, MORE_S, BATCH_S, STALL_S = 40, 0.02, 0.03, 0.08, 0.3


class Row:
    """A row: seconds more by place, on this rank in a step."""

    batch_s = 0.0

    def compute(self, rank, step):
        return 0.0

    def read(self, rank, step):
        return 0.0

    def between(self, rank, step):
        return 0.0


class BothLate(Row):
    def compute(self, rank, step):
        return MORE_S * (rank == 1)

    def read(self, rank, step):
        return MORE_S * (rank == 0)


class InputBound(Row):
    batch_s = BATCH_S

    def compute(self, rank, step):
        return MORE_S * (rank == 1)


class StallsAndLogging(Row):
    """Rank 1 stalls in every 10th step, rank 0 logs between all of them."""

    def compute(self, rank, step):
        return STALL_S * (rank == 1 and step % 10 == 9)

    def between(self, rank, step):
        return MORE_S * (rank == 0)


class InTurn(Row):
    def compute(self, rank, step):
        return MORE_S * (step % 2 == rank)


ROWS = {
    "both late": BothLate, "input-bound": InputBound, "stalls and logging": StallsAndLogging,
    "in turn": InTurn,
}  # fmt: skip


def pipeline(seconds, count):
    """A queue of batches that a thread makes ahead, one every so many seconds."""
    batches = queue.Queue(1)

    def make():
        for number in range(count):
            time.sleep(seconds)
            batches.put(number)

    threading.Thread(target=make, daemon=True).start()
    return batches


def run(name, row):
    rank, clock = hvd.rank(), time.perf_counter
    warm = 5
    batches = pipeline(row.batch_s, STEPS + warm) if row.batch_s else None
    kept = []
    ranks.barrier()
    ended = clock()
    for step in range(-warm, STEPS):
        time.sleep(row.between(rank, step))
        began = clock()
        if batches is not None:
            batches.get()
        time.sleep(row.read(rank, step))
        fed = clock()
        time.sleep(BASE_S + row.compute(rank, step))
        ready = clock()
        hvd.allreduce(tf.constant([1.0]), name="gradient")
        reduced = clock()
        kept.append([reduced - began, fed - began, ready - fed, reduced - ready, began - ended])
        ended = clock()
    every = ranks.gather(np.array(kept[warm:]))
    names = ("step_times", "span_input", "span_compute", "span_communication", "span_between")
    return None if every is None else {one: every[:, i] for i, one in enumerate(names)}


def main():
    ranks.use("tensorflow")
    ranks.start(2)
    folder = Path(sys.argv[1])
    for name, row in ROWS.items():
        arrays = run(name, row())
        if arrays is not None:
            np.savez(folder / f"{name}.npz", **arrays)
    ranks.stop()


if __name__ == "__main__":
    main()
