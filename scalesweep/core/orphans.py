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
import signal
import sys
import time
from collections.abc import Callable
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
    return f"{_here()}|{os.getpid()}|{start_of(os.getpid())}|{work.resolve()}"


def marked(runs: Path) -> list[Marked]:
    """Every process of this host that a launcher has started for a run in ``runs``."""
    marked = []
    here, inside = _here().encode(), f"|{runs.resolve()}/".encode()
    wanted = f"{MARK}=".encode()
    for name in os.listdir("/proc"):  # noqa: PTH208 (speed: there may be thousands)
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123 (as above)
                environ = file.read()
        except OSError:
            continue  # gone, or another user's
        start = environ.find(wanted)
        if start < 0:
            continue
        value = environ[start + len(wanted) :].partition(b"\0")[0]
        if value.startswith(here) and inside in value:
            *_, launcher, began, attempt = os.fsdecode(value).split("|", 4)
            alive = start_of(int(launcher)) == began
            marked.append(Marked(int(name), int(launcher), alive, attempt))
    return marked


def end_orphans(runs: Path) -> None:
    """End what launchers that are gone have left of the runs in ``runs``.

    Raises UserError if something cannot be ended, because the next measurement would be disturbed.
    """
    _end(lambda: [process for process in marked(runs) if not process.launcher_alive])


def end_marked(work: Path) -> None:
    """End what this launcher has started for an attempt, if anything is left of it. Raises
    UserError as ``end_orphans``."""
    runs, attempt = work.parents[1], str(work.resolve())
    _end(lambda: [process for process in marked(runs) if process.attempt == attempt])


def _end(left: Callable[[], list[Marked]]) -> None:
    deadline = time.monotonic() + KILLED_S
    while processes := left():
        if time.monotonic() > deadline:
            raise UserError(
                f"{processes[0].run_id}: cannot end process {processes[0].pid} of an attempt that "
                "was killed; measurements never overlap"
            )
        for process in processes:
            _signal(process.pid, signal.SIGKILL)
        time.sleep(_POLL_S)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _here() -> str:
    """This host and its processes' name space, in which a pid means one process."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = ""
    return f"{os.uname().nodename}|{space}"


def start_of(pid: int) -> str:
    """When a process was started (in ticks since boot); empty if it is gone or a zombie."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else fields[18]
