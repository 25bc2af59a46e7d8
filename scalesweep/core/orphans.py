"""What a launcher starts ends with it, and measurements never overlap with leftovers.

A program is called off when its launcher ends. It may not listen, and ranks may be in sessions of
their own; so all that a launcher starts carries a mark in its environment, which tells the launcher
and the attempt, and whatever bears the mark of a dead launcher is ended before a program is
started. One host only: on other nodes ranks end with their Slurm job or by what started them.

Standard library only, for the launcher.
"""

import contextlib
import ctypes
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

from scalesweep.core.errors import UserError

MARK = "SCALESWEEP_LAUNCHER"
_PR_SET_PDEATHSIG = 1
# Nothing outlives SIGKILL longer than this but what hangs in the kernel (a dead file system).
KILLED_S = 20.0
_POLL_S = 0.02


class Marked(NamedTuple):
    """A process that a launcher has started, itself or through others."""

    pid: int
    launcher: int
    launcher_alive: bool
    attempt: str

    @property
    def run_id(self) -> str:
        """Name of the run's folder."""
        return Path(self.attempt).parent.name


def end_with_parent() -> None:
    """Have this process called off (SIGTERM) when the one that has started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def end_with_snakemake(pid: int) -> None:
    """The same for a script that Snakemake has started, which may have ended just before."""
    end_with_parent()
    with contextlib.suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            sys.exit("error: the snakemake process that started this has ended")


def mark(work: Path) -> str:
    """The mark of this launcher, for what it starts in the attempt's folder ``work``."""
    pid = os.getpid()
    return f"{os.uname().nodename}|{pid}|{start_of(pid)}|{work.resolve()}"


def marked(runs: Path) -> list[Marked]:
    """Every process of this host that a launcher of this host has started for a run in ``runs``."""
    here, inside = (re.escape(os.fsencode(it)) for it in (os.uname().nodename, runs.resolve()))
    pattern = re.compile(rb"%s=%s\|(\d+)\|(\d*)\|(%s/[^\0]*)" % (MARK.encode(), here, inside))
    processes = []
    for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 (speed: thousands)
        # Of one that is gone, or another user's, nothing can be read.
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            if match := pattern.search(file.read()):
                launcher, began, attempt = map(os.fsdecode, match.groups())
                alive = start_of(int(launcher)) == began
                processes.append(Marked(int(pid), int(launcher), alive, attempt))
    return processes


def end_orphans(runs: Path, attempt: Path | None = None) -> None:
    """End what launchers that are gone have left of the runs in ``runs``, and what this one has
    started for an ``attempt`` that is over.

    Raises UserError if something cannot be ended, because the next measurement would be disturbed.
    """
    over = attempt and str(attempt.resolve())
    deadline = time.monotonic() + KILLED_S
    while left := [it for it in marked(runs) if not it.launcher_alive or it.attempt == over]:
        if time.monotonic() > deadline:
            raise UserError(
                f"{left[0].run_id}: cannot end process {left[0].pid}, which an attempt that was "
                "killed has left; measurements never overlap"
            )
        for process in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal.SIGKILL)
        time.sleep(_POLL_S)


def start_of(pid: int) -> str:
    """When a process was started (in ticks since boot); empty if it is gone or a zombie."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else fields[18]
