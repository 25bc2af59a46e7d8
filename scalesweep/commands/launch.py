"""Launch one attempt of one run, or of several in one job or process."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from scalesweep.compute.job_spec import await_order, read_order
from scalesweep.compute.launcher import launch
from scalesweep.compute.left_out import left_out
from scalesweep.compute.placement import placed
from scalesweep.core.paths import CHECKOUT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--order", type=Path, help="file that describes the run")
    what.add_argument("--pack", type=Path, help="file that lists several runs")
    parser.add_argument("--digest", default="", help="of the order, where it may not be seen yet")
    parser.add_argument(
        "--marker",
        type=Path,
        help="file to write once the record is there; with --pack its name in each run's folder",
    )
    parser.add_argument(
        "--forgive", action="store_true", help="write it too if the run has failed, and exit with 0"
    )


def run(args: argparse.Namespace) -> None:
    """Read the run's description and launch it; exits with 1 if it failed.

    With --pack the exit code says nothing of the runs, which speak for themselves.
    """
    if args.pack is None:
        code = _launch(args.order, args.digest, args.marker)
        if code and args.forgive and args.marker:
            args.marker.touch()
        elif code:
            sys.exit(code)
        return
    from scalesweep.compute.pack_launcher import (
        run_pack,
    )  # milliseconds, which other jobs are spared

    def launch_run(order: Path, digest: str, hosts: Sequence[str]) -> int:
        return _launch(order, digest, args.marker and order.with_name(args.marker.name), hosts)

    run_pack(args.pack, launch_run)


def _launch(path: Path, digest: str, marker: Path | None, hosts: Sequence[str] = ()) -> int:
    """Launch the run that the order at ``path`` describes, on these nodes of its job (all where
    none is named); the exit code."""
    if path.parent.name in left_out(path.parents[1]):
        print(f"{path.parent.name}: left out: enough runs like it have failed in the same way")
        return 1
    order = placed(await_order(path, digest) if digest else read_order(path), hosts)
    try:
        code = launch(order, CHECKOUT)
    except OSError as error:
        error.filename = error.filename or order["folder"]  # a full disk names no file
        raise
    if code == 0 and marker is not None:
        # In the folder of the record: a network file system that shows it shows the record too.
        marker.touch()
    return code
