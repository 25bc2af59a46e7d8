"""A limit for what may never end: searching for a user's pattern in what a program has printed.

Standard library only, for the launcher.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any, NoReturn

# Anything that is no riddle takes some hundredths of this.
_FLOOR_S, _SECONDS_PER_MB = 20.0, 10.0
_AGAIN_S = 0.1


class TookTooLongError(Exception):
    """The limit was reached."""


def reading_limit(size: int) -> float:
    """CPU seconds that reading ``size`` bytes may take, generously."""
    return _FLOOR_S + _SECONDS_PER_MB * size / 1e6


@contextlib.contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise TookTooLongError inside the body after so many seconds of CPU time.

    A slow disk is not counted. Python's regular expressions look for signals while they search,
    which no thread could make them do; so there is no limit outside of the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: Any) -> NoReturn:
        raise TookTooLongError

    before = signal.signal(signal.SIGVTALRM, stop)
    # Again and again: Python drops an exception that is raised inside a destructor or a callback of
    # its garbage collector.
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, _AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
