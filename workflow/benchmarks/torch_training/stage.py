"""Make or check the stand-in that input staged reads; `harness.staging` has the frame."""

from harness import staging
from torch_training import dataset


def main(arguments: list[str]) -> int:
    """Run the command line and return the exit code."""
    make = dataset.StandIn.from_params
    return staging.main("torch_training.stage", __doc__, dataset.SPLITS, make, arguments)
