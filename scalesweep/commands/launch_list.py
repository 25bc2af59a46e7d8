"""Launch runs one after the other, in one process and so in one allocation."""

import argparse
import contextlib
import io
import json
import sys
from pathlib import Path

from scalesweep.compute.job_spec import read_order
from scalesweep.compute.launcher import launch
from scalesweep.core.paths import REPO


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    parser.add_argument("list", type=Path, help="JSON: [[group, file that describes a run], ...]")


def run(args: argparse.Namespace) -> None:
    """Launch each run of the list, and print its number when it has ended.

    Once a run has failed the others of its group are left out. Exits with 1 if any has failed.
    """
    failed: set[str] = set()
    runs = json.loads(args.list.read_bytes())
    for place, (group, file) in enumerate(runs, 1):
        if group not in failed:
            with contextlib.redirect_stdout(io.StringIO()):  # each has a line of its own
                code = launch(read_order(Path(file)), REPO)
            if code:
                failed.add(group)
        print(f"{place} of {len(runs)}", flush=True)
    if failed:
        sys.exit(1)
