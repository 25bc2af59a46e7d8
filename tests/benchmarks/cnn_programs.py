"""What the tests of cnn_training share: its program, made small, and its pipelines."""

import numpy as np

from tests.benchmarks.programs import Program

SMALL = {
    "model": "lenet",
    "batch_size": 4,
    "warmup_batches": 2,
    "batches": 6,
    "learning_rate": 0.001,
}
PROGRAM = Program("cnn_training", SMALL)
DECLARED, DEFAULTS = PROGRAM.declared, PROGRAM.defaults
start = PROGRAM.start
CIFAR10 = DEFAULTS | {"model": "resnet20", "data_set": "cifar10", "batch_size": 4}
LENET = DEFAULTS | {"model": "lenet", "data_set": "imagenet", "batch_size": 4}


def steps(data, count):
    """The first steps of a pipeline: images [step, device, batch, ...] and labels."""
    taken = list(data.take(count).as_numpy_iterator())
    return np.array([each[0] for each in taken]), np.array([each[1] for each in taken])
