"""Launch one attempt of one run."""

import argparse
import sys
from pathlib import Path

from scalesweep.compute.job_spec import await_order, read_order
from scalesweep.compute.launcher import launch
from scalesweep.core.paths import CHECKOUT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    parser.add_argument("--order", type=Path, required=True, help="file that describes the run")
    parser.add_argument("--digest", default="", help="of the order, where it may not be seen yet")
    parser.add_argument("--marker", type=Path, help="file to write once the record is there")
    parser.add_argument(
        "--forgive",
        action="store_true",
        help="write it too if the run has failed, which failure.json tells, and exit with 0",
    )


def run(args: argparse.Namespace) -> None:
    """Read the run's description and launch it; exits with 1 if it failed."""
    order = await_order(args.order, args.digest) if args.digest else read_order(args.order)
    try:
        code = launch(order, CHECKOUT)
    except OSError as error:
        error.filename = error.filename or order["folder"]  # a full disk names no file
        raise
    if args.marker and (code == 0 or args.forgive):
        args.marker.parent.mkdir(parents=True, exist_ok=True)  # gone with an earlier call
        args.marker.touch()
        code = 0
    if code:
        sys.exit(code)
