"""Helper of test_cosmoflow_ranks: train the program's way on given samples and keep the weights.

``train_cosmoflow.py FOLDER R``, on each of R ranks: with batches of 4 / R they take the same four
samples in a step, whatever R is. Rank r writes ``FOLDER/rank<r>.npz``: ``w<v>`` for variable v, and
`loss[epoch]`. One rank alone also writes ``first.npz``, the weights before, and ``reference.npz``,
those after plain arithmetic with momentum.
"""

import sys
from pathlib import Path

from harness import import_without

import_without("pandas", "scipy", "PIL")

import numpy as np
import tensorflow as tf

from cosmoflow_data import dataset
from cosmoflow_training import benchmark
from harness import ranks
from harness.phases import Phases
from harness.program import Run
from tests.benchmarks.programs import Program

SHAPE, STEPS, EPOCHS, GLOBAL_BATCH = [8, 8, 8, 4], 6, 2, 4


def batches(size, number):
    """Batch `number` of `size` samples of each step, from the data set's own generator."""
    fmt = dataset.Format(tuple(SHAPE), STEPS * GLOBAL_BATCH)
    every = list(dataset.samples(fmt, "train", 0))
    x = np.log1p(np.stack([x for x, _ in every]).astype(np.float32))
    y = np.stack([y for _, y in every])
    for step in range(STEPS):
        first = step * GLOBAL_BATCH + number * size
        yield tf.constant(x[first : first + size]), tf.constant(y[first : first + size])


class Given(benchmark.Program):
    """The program, on given samples."""

    def batches(self, split, epoch):
        return batches(GLOBAL_BATCH // self.params["ranks"], ranks.rank()), STEPS


def reference(trainer):
    """Train on one rank with none of the program's steps: gradients, momentum, update."""
    network = trainer.model
    weights = [each.numpy() for each in network.trainable_variables]
    speeds = [np.zeros_like(each) for each in weights]

    @tf.function
    def gradients(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((network(x, training=True) - y) ** 2)
        return tape.gradient(loss, network.trainable_variables)

    for step in range(EPOCHS * STEPS):
        x, y = list(batches(GLOBAL_BATCH, 0))[step % STEPS]
        for number, gradient in enumerate(gradients(x, y)):
            speeds[number] = 0.9 * speeds[number] - trainer.schedule(step) * gradient.numpy()
            weights[number] = weights[number] + speeds[number]
            network.trainable_variables[number].assign(weights[number])
    return {f"w{number}": each for number, each in enumerate(weights)}


def main():
    folder, world = Path(sys.argv[1]), int(sys.argv[2])
    params = Program("cosmoflow_training", {}).defaults | {
        "input": "dummy",
        "ranks": world,
        "sample_shape": SHAPE,
        "samples_per_rank": STEPS * GLOBAL_BATCH // world,
        "validation_samples_per_rank": 0,
        "batch_size": GLOBAL_BATCH // world,
        "conv_layers": 2,
        "filters": 4,
        "epochs": EPOCHS,
        "base_learning_rate": 0.02,
        "learning_rate_reference_batch": 2,
        "warmup_epochs": 1,
    }
    ranks.use("tensorflow")
    trainer = Given(Run("test", "cosmoflow_training", 1, params, 0, None, folder, folder), Phases())
    trainer.start()
    trainer.set_up()
    trainer.warm_up()
    first = [each.numpy() for each in trainer.model.trainable_variables]
    trainer.measure()
    history, rank = trainer.history, ranks.rank()
    weights = {f"w{n}": each.numpy() for n, each in enumerate(trainer.model.trainable_variables)}
    np.savez(folder / f"rank{rank}.npz", loss=history.values["loss"], **weights)
    if world == 1:
        trainer.model.set_weights(first)
        np.savez(folder / "reference.npz", **reference(trainer))
        np.savez(folder / "first.npz", **{f"w{n}": each for n, each in enumerate(first)})
    ranks.stop()


main()
