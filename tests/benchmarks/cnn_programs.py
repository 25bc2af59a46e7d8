"""What the tests of cnn_training share: its program, made small."""

from tests.benchmarks.programs import Program

SMALL = {
    "model": "lenet",
    "batch_size": 4,
    "warmup_batches": 2,
    "batches": 6,
    "learning_rate": 0.001,
}
PROGRAM = Program("cnn_training", SMALL)
DEFAULTS, start = PROGRAM.defaults, PROGRAM.start
