"""Helper of test_spans: train on two ranks with faults that are planted in the program under test.

``planted.py FOLDER``: of each case of `CASES` rank 0 writes ``FOLDER/<case>.npz``, the arrays that
a training program keeps.
"""

import sys
import time
from pathlib import Path

from harness import import_without

import_without("pandas", "scipy", "PIL")

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from harness import ranks, tf_training
from harness.phases import Phases

EPOCHS, STEPS, DELAY_S = 2, 8, 0.1
# Where to sleep, and on which ranks.
CASES = {"compute": (1,), "input": (0, 1), "network": (0, 1)}


def delayed(tensor):
    """The tensor, once a sleep in the graph is over."""
    slept = tf.py_function(lambda: time.sleep(DELAY_S), [], [])
    with tf.control_dependencies([slept]):
        return tf.identity(tensor)


def batches(slow):
    generator = np.random.default_rng(hvd.rank())
    for _ in range(STEPS):
        time.sleep(DELAY_S if slow else 0)
        x = tf.constant(generator.standard_normal((8, 4)), tf.float32)
        yield x, tf.reduce_sum(x, axis=1, keepdims=True)


def run(folder, case):
    late = hvd.rank() in CASES[case] and case
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    optimizer = tf.keras.optimizers.legacy.SGD(0.01)
    optimizer._create_all_weights(model.trainable_variables)

    def measure(y, prediction):
        # Of the target: what has no gradient may pass through Python.
        y = delayed(y) if late == "compute" else y
        return [tf.reduce_sum((y - prediction) ** 2, axis=1)]

    real, exchanged = hvd.allreduce, []

    def allreduce(tensor, **kwargs):
        exchanged.append(tensor)  # the first gradient only: a delay for each step
        arrived = real(tensor, **kwargs)
        return delayed(arrived) if late == "network" and len(exchanged) == 1 else arrived

    hvd.allreduce = allreduce
    try:
        step = tf_training.make_step(model, optimizer, measure)
        tf_training.broadcast(model, optimizer)
        history = tf_training.train(
            EPOCHS,
            lambda _: tf_training.run_part(batches(late == "input"), step, STEPS),
            None,
            ["loss"],
            Phases(),
            rate=lambda: 0.01,
        )
    finally:
        hvd.allreduce = real
    arrays = history.arrays()
    if ranks.rank() == 0:
        np.savez(folder / f"{case}.npz", **arrays)


ranks.use("tensorflow")
ranks.start(2)
for each in CASES:
    run(Path(sys.argv[1]), each)
ranks.stop()
