"""Launch one attempt of one run."""

import sys
from pathlib import Path

from scalesweep.compute.job_spec import read_order
from scalesweep.compute.launcher import launch as launch_run
from scalesweep.core.paths import CHECKOUT


def launch(order: Path, digest: str = "", marker: str = "", forgive: bool = False) -> None:
    """Read a run's description in ``order`` and launch it; exits with 1 if it failed.

    ``digest``: of the order, where it may not be seen yet. ``marker``: file to write once the
    record is there; with ``forgive`` also if the run has failed, which failure.json tells, and the
    exit code is 0.
    """
    said = read_order(order, digest)
    try:
        code = launch_run(said, CHECKOUT)
    except OSError as error:
        error.filename = error.filename or said["folder"]  # a full disk names no file
        raise
    if marker and (code == 0 or forgive):
        Path(marker).parent.mkdir(parents=True, exist_ok=True)  # gone with an earlier call
        Path(marker).touch()
    elif code:
        sys.exit(code)
