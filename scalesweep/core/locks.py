"""One process at a time in a folder (standard library only, for compute nodes too).

Locks are the kernel's: they end with the process that holds them, however it ends. On a file system
without locks, as some clusters mount theirs, there are none.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from scalesweep.core.errors import UserError

RUNS, REPORT = ".lock", ".report.lock"
_DOING = {
    RUNS: "is already using this results folder",
    REPORT: "is already writing the report of this folder",
}


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the lock of the run in ``folder``. Raises UserError while another process of this
    machine measures it."""
    with (folder / RUNS).open("ab+", buffering=0) as lock:
        if _taken(lock) is not None:
            raise UserError(f"{folder.name}: another process is measuring this run")
        yield


def claim(results: Path, name: str = RUNS, wait: bool = False) -> FileIO:
    """Take the results folder for this process, its runs (``RUNS``) or all that is made of them
    (``REPORT``), until the file is closed or the process ends.

    Raises UserError naming the process that has it, or waits for that one's end.
    """
    try:
        results.mkdir(parents=True, exist_ok=True)
        lock = (results / name).open("ab+", buffering=0)
    except OSError as error:
        raise UserError(f"{results}: cannot write to this folder: {error.strerror}") from None
    if (other := _taken(lock)) is not None:
        if not wait:
            lock.close()
            raise UserError(
                f"{results}: {other} {_DOING[name]}; wait for it, or name another folder "
                "(--config results=FOLDER; of scalesweep: --results FOLDER)"
            )
        import logging  # milliseconds, which a launch is spared

        log = logging.getLogger(__name__)
        log.info("%s: %s %s; waiting for it", results, other, _DOING[name])
        fcntl.flock(lock, fcntl.LOCK_EX)
    with contextlib.suppress(OSError):  # a full disk: the lock holds, without a name on it
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {os.uname().nodename}".encode())
    return lock


def _taken(lock: FileIO) -> str | None:
    """Take the lock; who has it, if it is taken."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        return lock.read(200).decode(errors="replace") or "another process"
    except OSError:  # no locks here
        pass
    return None
