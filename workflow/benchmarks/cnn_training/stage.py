"""Make or check the stand-in that input tfrecords reads; `harness.staging` has the frame."""

from cnn_training import records
from harness import staging


def main(arguments: list[str]) -> int:
    """Run the command line and return the exit code."""
    make = records.StandIn.from_params
    return staging.main("cnn_training.stage", __doc__, records.SPLITS, make, arguments)
