"""The progress of this rank, by which a hang is distinguished from a run that is only slow.

From its start to its end a rank has a file ``stacks-*.txt`` in the run's folder. Its first line
(JSON) says who it is and when it last got further: a thread looks now and then and writes it down.
Below it, a moment before the time limit, faulthandler writes the stacks of all threads. A rank that
ends before takes its file away again.

All that is done per step is to count: `advance`.
"""

import atexit
import contextlib
import faulthandler
import json
import os
import threading
import time
from pathlib import Path

from harness.epochs import bytes_read
from harness.rank_variables import rank_and_size

# How long before the time limit stacks are written: a dump takes milliseconds, but the clocks of
# nodes differ, and the file has to reach a shared file system before its writer is killed.
LEAD_S, LEAD_SHARE = 5.0, 0.05
# How often the thread looks: a fiftieth of the limit, for what counts is a quarter of it.
LOOKS, SHORTEST_LOOK_S = 50, 0.05
# A rank whose process reads as fast gets further, though no Python runs: an epoch of a tf.data
# pipeline or a table is one call. Ranks that wait in Horovod read nothing (Gloo, Open MPI).
READING = 1e6  # bytes/s
HEAD_BYTES = 512
LONGEST_S = 1e6  # of a timer of faulthandler


class _Now:
    """Of this process: how often it got further, its phase, its number, and what watches it."""

    further = 0
    phase: str | None = None
    rank: int | None = None
    watch: "_Watch | None" = None


def advance() -> None:
    """Note that this rank got further: a step, a file, a barrier that all have passed."""
    _Now.further += 1


def enter(phase: str) -> None:
    """Note that this rank has come to a phase."""
    _Now.phase = phase
    advance()


def know_rank(rank: int) -> None:
    """Note the number that the framework has given this rank."""
    _Now.rank = rank
    advance()


def launched_rank() -> int | None:
    """Number of this rank before its framework knows it, from what the ranks' launcher has set."""
    return rank_and_size(os.environ)[0]


def arm(folder: Path, limit_s: float, elapsed_s: float) -> None:
    """Watch this process, `elapsed_s` after the run's start, until it ends.

    Without a file that can be written, or too late, nothing is watched; no run fails for that.
    """
    disarm()
    _Now.phase, _Now.rank = None, launched_rank()
    if elapsed_s < limit_s - min(LEAD_S, LEAD_SHARE * limit_s):
        with contextlib.suppress(OSError, RuntimeError):  # or no thread more is allowed
            _Now.watch = _Watch(folder, limit_s, elapsed_s)


def remaining_s() -> float | None:
    """Return the seconds until the run's time limit; None where there is none to watch."""
    return None if _Now.watch is None else _Now.watch.limit_s - _Now.watch.now_s()


@atexit.register
def disarm() -> None:
    """Stop watching. Registered before any other module's: a hang at exit is seen too."""
    watch, _Now.watch = _Now.watch, None
    if watch:
        watch.end()


class _Watch:
    """The file of a rank, and the thread that writes its first line."""

    def __init__(self, folder: Path, limit_s: float, elapsed_s: float) -> None:
        """Begin; raises OSError where the file cannot be written, RuntimeError without a thread."""
        self._origin = time.monotonic() - elapsed_s
        self.limit_s, self._dump_s = limit_s, limit_s - min(LEAD_S, LEAD_SHARE * limit_s)
        self._ended = threading.Event()
        number = "" if _Now.rank is None else _Now.rank
        self._path = folder / f"stacks-rank{number}-{os.uname().nodename}-{os.getpid()}.txt"
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        self._write_head()
        os.lseek(self._file, HEAD_BYTES, os.SEEK_SET)
        self.set_timer()
        threading.Thread(target=self._look, name="watch", daemon=True).start()

    def now_s(self) -> float:
        """Seconds since the start of the run."""
        return time.monotonic() - self._origin

    def set_timer(self) -> None:
        """Have the stacks written when it is time, if that is still to come."""
        if (left_s := self._dump_s - self.now_s()) > 0:
            faulthandler.dump_traceback_later(min(left_s, LONGEST_S), file=self._file)

    def end(self) -> None:
        """Stop both, and remove the file unless stacks may be in it; the launcher has it then."""
        faulthandler.cancel_dump_traceback_later()
        self._ended.set()
        if self.now_s() < self._dump_s:
            with contextlib.suppress(OSError):
                self._path.unlink()

    def _write_head(self) -> None:
        """Overwrite the first line in place: the rank got further just now."""
        head = {
            "rank": _Now.rank,
            "host": os.uname().nodename,
            "main_thread": f"0x{threading.main_thread().ident:016x}",
            "phase": _Now.phase and _Now.phase[:40],
            "further_s": round(self.now_s(), 3),
        }
        line = json.dumps(head).encode()[: HEAD_BYTES - 1]
        os.pwrite(self._file, line.ljust(HEAD_BYTES - 1) + b"\n", 0)

    def _look(self) -> None:
        """Until the end, rewrite the head whenever the rank has made progress."""
        period = max(SHORTEST_LOOK_S, self.limit_s / LOOKS)
        seen, read = _Now.further, bytes_read()
        while not self._ended.wait(min(period, LONGEST_S)):
            further, now_read = _Now.further, bytes_read()
            with contextlib.suppress(OSError):
                if further != seen or now_read - read >= READING * period:
                    self._write_head()
                if self.now_s() >= self._dump_s:
                    os.fsync(self._file)  # the launcher may be on another node
            seen, read = further, now_read
        os.close(self._file)


def _around_fork(watch_goes_on: bool) -> None:
    """Stop the timer, or set it again: a child would wait for its thread, which it has not."""
    if _Now.watch and watch_goes_on:
        _Now.watch.set_timer()
    elif _Now.watch:
        faulthandler.cancel_dump_traceback_later()


os.register_at_fork(
    before=lambda: _around_fork(watch_goes_on=False),
    after_in_parent=lambda: _around_fork(watch_goes_on=True),
    after_in_child=lambda: setattr(_Now, "watch", None),  # the file is the parent's
)
