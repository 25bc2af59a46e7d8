"""Helper of test_spans: train a small network as CosmoFlow's is trained, with planted faults.

``planted.py FOLDER``, on two ranks. Of each case of `CASES` rank 0 writes ``FOLDER/<case>.npz``,
in which each array ends with the rank: those that a training program keeps, the samples `x` and
`y` ``[step, sample, ...]``, the weights before they are broadcast (`first`) and at the end, and
`planted` ``[step]``, the seconds of a step of the last epoch that a rank slept in the planted
place, as its own clock saw them: on a busy machine these are more than were asked for.
"""

import sys
import time
from pathlib import Path
from unittest import mock

from harness import import_without

import_without("pandas", "scipy", "PIL")

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from cosmoflow_training import benchmark
from harness import ranks
from harness.phases import Phases
from harness.program import Run
from tests.benchmarks.programs import Program

EPOCHS, STEPS, BATCH, DELAY_S = 2, 6, 8, 0.1
# Where to sleep, and on which ranks.
CASES = {
    "straggler": ("compute", (1,)),
    "reader": ("input", (0, 1)),
    "network": ("network", (0, 1)),
}
PARAMS = Program("cosmoflow_training", {}).defaults | {
    "input": "dummy", "ranks": 2, "samples_per_rank": STEPS * BATCH, "batch_size": BATCH,
    "validation_samples_per_rank": 0, "epochs": EPOCHS, "base_learning_rate": 0.01,
    "learning_rate_reference_batch": BATCH, "warmup_epochs": 1,
}  # fmt: skip


class Late(benchmark.Program):
    """The program on a single layer and samples made here; it sleeps where that is planted."""

    def plant(self, place, where):
        """Choose the place, on these ranks; elsewhere nothing is late."""
        self.place = place if hvd.rank() in where else "nowhere"
        self.slept = []

    def sleep(self, place):
        if self.place == place:
            began = time.perf_counter()
            time.sleep(DELAY_S)
            self.slept.append(time.perf_counter() - began)

    def in_graph(self, tensor, place):
        """The tensor, once the sleep is over, if that is planted here."""
        if self.place != place:
            return tensor

        def pause(value):
            self.sleep(place)
            return value

        after = tf.numpy_function(pause, [tensor], tensor.dtype)
        after.set_shape(tensor.shape)
        return after

    def by_step(self):
        """The seconds of each step of the last epoch."""
        return np.array(self.slept or [0.0] * STEPS)[-STEPS:]

    def set_up(self):
        numbers = np.random.default_rng(hvd.rank())
        self.x = numbers.standard_normal((STEPS, BATCH, 4)).astype(np.float32)
        self.y = self.x.sum(axis=2, keepdims=True)

        def measure(y, prediction):
            # Of the target: what has no gradient may pass through Python.
            difference = self.in_graph(y, "compute") - prediction
            return [tf.reduce_sum(power, axis=1) for power in (difference**2, abs(difference))]

        network = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
        self.build(network, measure, ((4,), (1,)))

    def weights(self):
        return ranks.gather(np.concatenate([np.ravel(w) for w in self.model.get_weights()]))

    def batches(self, split, epoch):
        def late():
            for x, y in zip(self.x, self.y, strict=True):
                self.sleep("input")
                yield tf.constant(x), tf.constant(y)

        return late(), STEPS


def run(folder, case):
    trainer = Late(Run(case, "", 1, PARAMS, 0, None, folder, folder), Phases())
    trainer.start()
    trainer.plant(*CASES[case])
    real = hvd.allreduce

    def exchange(tensor, **kwargs):
        # A gradient leaves late and arrives late: only then does it become the network's time.
        late = "network" if kwargs["name"] == "gradient_1" else ""
        return trainer.in_graph(real(tensor, **kwargs), late)

    with mock.patch.object(hvd, "allreduce", exchange):
        trainer.set_up()
        first = trainer.weights()
        trainer.warm_up()
        trainer.measure()
    arrays = trainer.history.arrays() | {"first": first, "weights": trainer.weights()}
    own = {"x": trainer.x, "y": trainer.y, "planted": trainer.by_step()}
    arrays |= {name: ranks.gather(array) for name, array in own.items()}
    if ranks.rank() == 0:
        np.savez(folder / f"{case}.npz", **arrays)


def main():
    ranks.use("tensorflow")
    for case in CASES:
        run(Path(sys.argv[1]), case)
    ranks.stop()


if __name__ == "__main__":
    main()
