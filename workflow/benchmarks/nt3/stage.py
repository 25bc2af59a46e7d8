"""Make or check the tables of NT3's stand-in; `harness.staging` has the frame."""

from harness import staging
from nt3 import dataset


def main(arguments: list[str]) -> int:
    """Run the command line and return the exit code."""
    make = dataset.Tables.from_params
    return staging.main("nt3.stage", __doc__, dataset.SPLITS, make, arguments)
