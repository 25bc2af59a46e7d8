"""Whether this process was stopped, with its job, and for how long (``scontrol suspend``, gangs).

Time goes on for a program that is suspended: a record would say that it took longer. A deadline
must not count such time either; Slurm's own limit does not. The watch wakes up every second. Where
it wakes up late although it did not wait for a CPU (``/proc/self/schedstat``), or was told to
continue (SIGCONT), it had been stopped. Standard library only, for the launcher.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

BEAT_S = 1.0
# How late it must be where nothing but the clock says so: a page that is read from a slow disk
# takes less. After SIGCONT: more than a busy machine's delay, which is known.
_LEAST_S, _LEAST_CONTINUED_S = 3.0, 0.3


class AwakeClock:
    """Seconds in which this process was not stopped, as long as ``beat`` is called every
    ``BEAT_S``."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        waited: Callable[[], float] | None = None,
    ) -> None:
        """``clock`` and ``waited``: seconds, and those of them spent on waiting for a CPU."""
        self._clock, self._waited = clock, waited or _waited_s
        self._last, self._waited_before = self._clock(), self._waited()
        self._continued = False
        self.stood_s = 0.0

    def beat(self) -> float:
        """Note that this process is at work; the seconds that it was stopped in all."""
        now, waited = self._clock(), self._waited()
        late_s = now - self._last - BEAT_S - (waited - self._waited_before)
        if late_s >= (_LEAST_CONTINUED_S if self._continued else _LEAST_S):
            self.stood_s += late_s
        self._last, self._waited_before, self._continued = now, waited, False
        return self.stood_s

    def now(self) -> float:
        """The time by this clock, in seconds since some moment."""
        return self._clock() - self.stood_s

    def continued(self) -> None:
        """Note that this process was told to continue."""
        self._continued = True

    @contextlib.contextmanager
    def noting_continues(self) -> Iterator[None]:
        """Heed SIGCONT meanwhile; in the main thread only, where Python handles signals."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def on_continue(_number: int, _frame: Any) -> None:
            self.continued()

        before = signal.signal(signal.SIGCONT, on_continue)
        try:
            yield
        finally:
            signal.signal(signal.SIGCONT, before)


def suspended(stood_s: float, wall_s: float) -> str:
    """Why the times of a run that was suspended are none, in words."""
    return f"stopped for {stood_s:.0f} s of {wall_s:.0f} s: its times are not the program's"


def _waited_s() -> float:
    """Seconds for which this thread was ready and had no CPU; 0 where Linux does not count them."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
