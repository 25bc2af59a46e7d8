"""The progress of this rank, by which a hang is distinguished from a run that is only slow.

Each rank has a file ``stacks-*.json`` in the run's folder: who it is, and when it last got further.
A thread looks now and then and writes it again; a moment before the time limit with the stacks of
all threads. The launcher reads the files, or removes them (scalesweep/compute/hangs.py).

All that is done per step is to count: `advance`.
"""

import contextlib
import json
import os
import sys
import threading
import time
from pathlib import Path
from traceback import walk_stack

from harness.epochs import bytes_read
from harness.rank_variables import rank_of

# How long before the time limit stacks are written: that takes milliseconds, but the clocks of
# nodes differ, and the file has to reach a shared file system before its writer is killed.
LEAD_S, LEAD_SHARE = 5.0, 0.05
# How often the thread looks: a fiftieth of the limit, for what counts is a quarter of it.
LOOKS, SHORTEST_LOOK_S, LONGEST_LOOK_S = 50, 0.05, 1e6
# A rank whose process reads as fast gets further, though no Python runs: an epoch of a tf.data
# pipeline or a table is one call. Ranks that wait in Horovod read nothing (Gloo, Open MPI).
READING = 1e6  # bytes/s


class _Now:
    """Of this process: how often it got further, its phase, its number, and the run's time limit,
    with when the run started by the monotonic clock."""

    further = 0
    phase: str | None = None
    rank: int | None = None
    limit_s: float | None = None
    origin = 0.0


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


def arm(folder: Path, limit_s: float, elapsed_s: float) -> None:
    """Watch this process, `elapsed_s` after the run's start, until it ends."""
    _Now.phase, _Now.rank = None, rank_of(os.environ)
    _Now.limit_s, _Now.origin = limit_s, time.monotonic() - elapsed_s
    number = "" if _Now.rank is None else _Now.rank
    path = folder / f"stacks-rank{number}-{os.uname().nodename}-{os.getpid()}.json"
    # No run fails for that: nothing can be written there, or no thread more is allowed.
    with contextlib.suppress(OSError, RuntimeError):
        _write(path, elapsed_s, [])
        threading.Thread(target=_look, args=(path, limit_s), name="watch", daemon=True).start()


def remaining_s() -> float | None:
    """Return the seconds until the run's time limit; None where there is none to watch."""
    return None if _Now.limit_s is None else _Now.limit_s - (time.monotonic() - _Now.origin)


def _look(path: Path, limit_s: float) -> None:
    """Write the file whenever the rank has made progress, and with its stacks when it is time."""
    period = min(max(SHORTEST_LOOK_S, limit_s / LOOKS), LONGEST_LOOK_S)
    last_s = limit_s - min(LEAD_S, LEAD_SHARE * limit_s)
    seen, read, further_s = _Now.further, bytes_read(), time.monotonic() - _Now.origin
    while True:
        further, now_read, now_s = _Now.further, bytes_read(), time.monotonic() - _Now.origin
        progress = further != seen or now_read - read >= READING * period
        further_s = now_s if progress else further_s
        if progress or now_s >= last_s:
            with contextlib.suppress(OSError):
                _write(path, further_s, _stacks() if now_s >= last_s else [])
        if now_s >= last_s:
            return
        seen, read = further, now_read
        time.sleep(min(period, last_s - now_s))


def _write(path: Path, further_s: float, stacks: list[list[str]]) -> None:
    content = {
        "rank": _Now.rank,
        "host": os.uname().nodename,
        "phase": _Now.phase and _Now.phase[:40],
        "further_s": round(further_s, 3),
        "stacks": stacks,
    }
    path.write_text(json.dumps(content, indent=1))


def _stacks() -> list[list[str]]:
    """Return where each thread is, the main one first: ``path:line function``, innermost first."""
    frames, main = sys._current_frames(), threading.main_thread().ident
    return [
        [f"{at.f_code.co_filename}:{line} {at.f_code.co_name}" for at, line in walk_stack(frame)]
        for _, frame in sorted(frames.items(), key=lambda item: item[0] != main)
    ]
