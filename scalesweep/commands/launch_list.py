"""Launch runs one after the other, in one process and so in one allocation."""

import argparse
import contextlib
import io
import json
import sys
import time
from pathlib import Path

from scalesweep.compute.job_spec import CACHED_S, await_order
from scalesweep.compute.launcher import launch
from scalesweep.core.paths import REPO


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    parser.add_argument(
        "list", type=Path, help="JSON: [[group, file that describes a run, its digest], ...]"
    )


def run(args: argparse.Namespace) -> None:
    """Launch each run of the list, and print its number when it has ended.

    Once a run has failed the others of its group are left out. Exits with 1 if any has failed.
    """
    failed: set[str] = set()
    runs = json.loads(_awaited(args.list))
    for place, (group, file, digest) in enumerate(runs, 1):
        if group not in failed:
            with contextlib.redirect_stdout(io.StringIO()):  # each has a line of its own
                code = launch(await_order(Path(file), digest), REPO)
            if code:
                failed.add(group)
        print(f"{place} of {len(runs)}", flush=True)
    if failed:
        sys.exit(1)


def _awaited(path: Path) -> bytes:
    """The content of a file that a node may see some seconds late (a network file system)."""
    last = time.monotonic() + CACHED_S
    while not path.exists() and time.monotonic() < last:
        time.sleep(0.2)
    return path.read_bytes()
