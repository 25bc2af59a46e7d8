"""Helper of test_sleeping: real steps of cnn_training on two ranks, whose reader is slow.

``slow_input.py FOLDER``: rank 0 writes ``FOLDER/arrays.npz``. The pipeline is the program's own,
but each of its batches takes BATCH_S more and waits in a last prefetch of one.
"""

import sys
import time
from pathlib import Path

from harness import import_without

import_without("pandas", "scipy", "PIL")

import numpy as np
import tensorflow as tf

from cnn_training import cluster, images, updates
from harness import ranks, spans
from tests.benchmarks.cnn_programs import DEFAULTS

WARM, STEPS = 8, 32
SETTINGS = {
    "model": "trivial", "data_set": "imagenet", "input": "pipeline", "batch_size": 2,
    "ranks": 2, "ranks_per_node": 2, "intra_threads": 1, "inter_threads": 2,
}  # fmt: skip
BATCH_S = 0.2


def slow(make):
    """What makes the program's pipeline, with batches that take longer."""

    def wait(number):
        time.sleep(BATCH_S)
        return number

    def late(*batch):
        number = tf.numpy_function(wait, [np.int64(0)], tf.int64)
        with tf.control_dependencies([number]):
            return tf.nest.map_structure(tf.identity, batch)

    return lambda *arguments: make(*arguments).map(late).prefetch(1)


def main():
    params = DEFAULTS | SETTINGS
    ranks.use("tensorflow")
    place = cluster.join(params)
    images.rank_dataset = slow(images.rank_dataset)
    trainer = updates.make(params, place, None)
    trainer.run(WARM)
    # They begin at different moments, so that the pipelines do.
    time.sleep(BATCH_S / 2 * ranks.rank())
    times, _, parts = trainer.run(STEPS)
    every = [ranks.gather(each) for each in (times, *parts.swapaxes(0, 1))]
    if ranks.rank() == 0:
        names = ("step_times", *spans.COLUMNS)
        np.savez(Path(sys.argv[1]) / "arrays.npz", **dict(zip(names, every, strict=True)))
    ranks.stop()


if __name__ == "__main__":
    main()
