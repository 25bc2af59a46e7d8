"""Launch one attempt of one run."""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from scalesweep.compute.job_spec import read_order
from scalesweep.compute.launcher import launch
from scalesweep.smk.cli import run_main


def main() -> None:
    """Read the run's description and launch it; exits with 1 if it failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--order", type=Path, required=True, help="file that describes the run")
    parser.add_argument("--marker", type=Path, help="file to leave once the record is there")
    args = parser.parse_args()
    order = read_order(args.order)
    try:
        code = launch(order, ROOT)
    except OSError as error:
        error.filename = error.filename or order["folder"]  # of a full disk nobody names a file
        raise
    if code:
        sys.exit(code)
    if args.marker is not None:
        # In the folder of the record: a network file system that shows it shows the record too.
        args.marker.touch()


if __name__ == "__main__":
    run_main(main)
