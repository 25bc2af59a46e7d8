"""What a launcher starts ends with it, and measurements never overlap with leftovers.

A launcher that is killed with -9 cannot end its program, and ranks may be in sessions of their own.
So all that a launcher starts carries a mark in its environment, which tells the launcher and the
attempt. A guard, forked off the launcher, ends what bears the mark as soon as the launcher is gone.
It may be killed as well; so whatever bears the mark of a dead launcher is ended before a program
is started. One host only: on other nodes ranks end with their Slurm job or by what started them.

Standard library only, for the launcher.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

from scalesweep.core.errors import UserError

MARK = "SCALESWEEP_LAUNCHER"
_PR_SET_PDEATHSIG = 1
# A program whose launcher is gone is asked to end, and made to after so long.
GRACE_S = 3.0
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


def end_children() -> None:
    """Call off (SIGTERM) every process that this one has started."""
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that has ended
            for pid in path.read_text().split():
                _signal(int(pid), signal.SIGTERM)


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
    deadline = time.monotonic() + KILLED_S
    while orphans := [process for process in marked(runs) if not process.launcher_alive]:
        if time.monotonic() > deadline:
            left = orphans[0]
            raise UserError(
                f"{left.run_id}: cannot end process {left.pid} of an attempt that was killed; "
                "measurements never overlap"
            )
        for process in orphans:
            _signal(process.pid, signal.SIGKILL)
        time.sleep(_POLL_S)


def end_marked(work: Path) -> None:
    """End what this launcher has started for an attempt, if anything is left of it."""
    _end_all(work.parents[1], mark(work), signal.SIGKILL, KILLED_S)


@contextlib.contextmanager
def guard(work: Path) -> Iterator[None]:
    """End what is started inside, if this process is killed meanwhile or called off."""
    own = mark(work)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _watch(reader, work.resolve().parents[1], own)
    os.close(reader)
    try:
        yield
        with contextlib.suppress(OSError):  # the guard has been killed
            os.write(writer, b".")
    finally:
        os.close(writer)
        os.waitpid(pid, 0)


def _watch(reader: int, runs: Path, own: str) -> NoReturn:
    """Wait for the launcher's word; its end without one is the program's end too."""
    try:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        # Neither the run's lock nor anyone's pipe stays open for this process.
        for fd in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
            if fd != reader:
                with contextlib.suppress(OSError):
                    os.close(fd)
        if os.read(reader, 1) == b"":
            _end_all(runs, own, signal.SIGTERM, GRACE_S)
            _end_all(runs, own, signal.SIGKILL, KILLED_S)
    finally:
        os._exit(0)


def _end_all(runs: Path, own: str, number: signal.Signals, patience: float) -> None:
    """Send every process that bears the mark ``own`` the signal once; wait until none is left."""
    signalled: set[int] = set()
    deadline = time.monotonic() + patience
    attempt = own.rpartition("|")[2]
    while time.monotonic() < deadline:
        left = {p.pid for p in marked(runs) if p.attempt == attempt}
        for pid in left - signalled:
            _signal(pid, number)
        if not left:
            return
        signalled |= left
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
