"""One process at a time in a folder (standard library only, for compute nodes too)."""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from scalesweep.errors import UserError


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the lock of the run in ``folder``.

    Raises UserError while another process of this machine measures it.
    """
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{folder.name}: is being measured by another process") from None
        except OSError:
            pass  # a file system without locks, as some clusters mount theirs
        yield


def claim(results: Path) -> TextIO:
    """Take the results folder for this process, for as long as the file that is returned is open.

    Raises UserError naming the process that has it. Snakemake's own lock is one of the working
    folder; two of those may share a results folder.
    """
    results.mkdir(parents=True, exist_ok=True)
    lock = (results / ".lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        who = lock.read().strip() or "another process"
        lock.close()
        raise UserError(
            f"{results}: {who} is running a campaign into this folder; wait for it, or name "
            "another with --config results=FOLDER"
        ) from None
    except OSError:
        return lock  # a file system without locks
    lock.truncate(0)
    lock.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    lock.flush()
    return lock
