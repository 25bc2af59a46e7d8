"""Helper of test_spans: train with faults that are planted in the program under test.

``planted.py FOLDER``, on two ranks. Of each case of `CASES` rank 0 writes ``FOLDER/<case>.npz``:
the arrays that a training program keeps, and `planted[step, rank]`, the seconds of a step of the
last epoch that each rank slept in the planted place, as its own clock saw them: on a busy machine
these are more than were asked for, on one rank or the other.
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
CASES = {
    "straggler": ("compute", (1,)),
    "reader": ("input", (0, 1)),
    "network": ("network", (0, 1)),
}


class Fault:
    """Sleeps where it is planted, on this rank, and notes the seconds of each time."""

    def __init__(self, place, where):
        self.place = place if hvd.rank() in where else "nowhere"
        self.slept = []

    def sleep(self):
        began = time.perf_counter()
        time.sleep(DELAY_S)
        self.slept.append(time.perf_counter() - began)

    def by_step(self):
        """The seconds of each step of the last epoch, of which some have several sleeps.

        After its steps an epoch exchanges its loss, which is late too and in no step.
        """
        last = np.array(self.slept or np.zeros(STEPS))[-(len(self.slept) // EPOCHS) :]
        return last[: len(last) // STEPS * STEPS].reshape(STEPS, -1).sum(axis=1)

    def in_graph(self, tensor, place):
        """The tensor, once the sleep is over, if that is planted here."""
        if self.place != place:
            return tensor

        def pause(value):
            self.sleep()
            return value

        after = tf.numpy_function(pause, [tensor], tensor.dtype)
        after.set_shape(tensor.shape)
        return after


def batches(fault, count):
    generator = np.random.default_rng(hvd.rank())
    for _ in range(count):
        if fault.place == "input":
            fault.sleep()
        x = tf.constant(generator.standard_normal((8, 4)), tf.float32)
        yield x, tf.reduce_sum(x, axis=1, keepdims=True)


def run(folder, case):
    fault = Fault(*CASES[case])
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    optimizer = tf.keras.optimizers.legacy.SGD(0.01)
    optimizer._create_all_weights(model.trainable_variables)

    def measure(y, prediction):
        # Of the target: what has no gradient may pass through Python.
        return [tf.reduce_sum((fault.in_graph(y, "compute") - prediction) ** 2, axis=1)]

    real = hvd.allreduce
    if fault.place == "network":
        # Gradients leave late and arrive late: only then does it become the network's time.
        hvd.allreduce = lambda tensor, **kwargs: fault.in_graph(real(tensor, **kwargs), "network")
    try:
        step = tf_training.make_step(model, optimizer, measure)
        tf_training.broadcast(model, optimizer)
        history = tf_training.train(
            EPOCHS,
            lambda _: tf_training.run_part(batches(fault, STEPS), step, STEPS),
            None,
            ["loss"],
            Phases(),
            rate=lambda: 0.01,
        )
    finally:
        hvd.allreduce = real
    arrays = history.arrays()
    planted = ranks.gather(fault.by_step())
    if ranks.rank() == 0:
        np.savez(folder / f"{case}.npz", planted=planted, **arrays)


def main():
    ranks.use("tensorflow")
    ranks.start(2)
    folder = Path(sys.argv[1])
    for case in CASES:
        run(folder, case)
    ranks.stop()


if __name__ == "__main__":
    main()
