"""Records that cannot be trusted: taken away under another name, with the reason."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalesweep.core.causes import Cause
from scalesweep.core.files import write_atomic
from scalesweep.core.record import FAILURE, POWER, RECORD, SAMPLES

BROKEN = ".broken"  # end of the names of what was set aside


def set_aside(
    folder: Path, why: str, cause: str = Cause.BAD_RECORD, job: Mapping[str, Any] | None = None
) -> None:
    """Take away a record that cannot be trusted, with its files, and leave the reason.

    All stay in the folder under other names: nothing is lost, and the run is pending again.
    ``job``: what failure.json is to say of the Slurm job.
    """
    take_away(folder)
    failure = {
        "schema": 1, "run_id": folder.name, "cause": cause, "detail": why,
        "exit_code": None, "signal": None, "attempt": 0, "started": None, "ended": None,
        "last_lines": [], **(job or {}),
    }  # fmt: skip
    write_atomic(folder / FAILURE, json.dumps(failure, indent=1) + "\n")


def take_away(folder: Path) -> None:
    """Rename a run's record and its files within their folder: the run is pending again."""
    for name in (RECORD, SAMPLES, POWER):
        with contextlib.suppress(FileNotFoundError):
            (folder / name).replace(folder / f"{name}{BROKEN}")
