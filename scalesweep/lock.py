"""One process at a time in a run's folder (standard library only, for compute nodes too)."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

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
