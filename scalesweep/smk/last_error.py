"""The error of a script, once more as the last line: Snakemake prints twenty behind it."""

import atexit
import sys
import time
from pathlib import Path

from scalesweep.core.visible import visible


def repeat_error(logs: Path, pattern: str) -> None:
    """When this process ends, print the last error in each of these logs that was written since.

    ``logs`` is their folder, ``pattern`` that of their names.
    """
    atexit.register(_repeat, logs, pattern, time.time_ns())


def _repeat(logs: Path, pattern: str, since_ns: int) -> None:
    for log in sorted(logs.glob(pattern)):
        try:
            if log.stat().st_mtime_ns < since_ns:
                continue
            lines = log.read_text("utf-8", errors="replace").splitlines()
        except OSError:
            continue
        if error := next((line for line in reversed(lines) if line.startswith("error: ")), None):
            print(visible(error), file=sys.stderr, flush=True)
