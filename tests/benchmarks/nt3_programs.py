"""What the tests of nt3 share: its program, made small, and its data sets."""

from tests.benchmarks.programs import Program

SMALL = {
    "features": 400,
    "train_samples": 80,
    "test_samples": 30,
    "filters": [4, 4],
    "dense_units": [16, 8],
    "total_epochs": 2,
    "learning_rate": 0.01,
}
PROGRAM = Program("nt3", SMALL)
DECLARED, DEFAULTS = PROGRAM.declared, PROGRAM.defaults
start, write_run = PROGRAM.start, PROGRAM.write_run


def stage(out, *more, env=(), **params):
    """Stage the tables of these parameters; return the finished process."""
    return PROGRAM.stage(out, {"train": 1, "test": 1}, *more, env=env, **params)
