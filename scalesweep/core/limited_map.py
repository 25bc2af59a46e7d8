"""Work shared among processes on this host, each item of it under a limit of time and of memory.

For what depends on numbers that nobody has looked at: an item that exceeds its limits, or that ends
its process, fails alone, and all others are done.
"""

import os
import resource
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.core.orphans import end_with_parent


@dataclass(frozen=True)
class Limits:
    """What an item may take: seconds from its start, and bytes of memory beyond what its process
    has by then (address space, so that a list that grows is stopped before it is filled)."""

    seconds: float
    memory_bytes: int


@dataclass(frozen=True)
class Failed:
    """Takes the place of a result; ``reason`` completes a sentence on the item, without a stop."""

    reason: str


def limited_map(
    function: Callable[[Any, Any], Any],
    work: Any,
    items: Sequence[Any],
    processes: int,
    limits: Limits,
) -> list[Any]:
    """``[function(work, item) for item in items]`` by at most so many forked processes.

    Items begin in their order; results can be pickled. ``Failed`` stands in for a result where an
    item exceeds ``limits``, its process is killed, or it raises anything but UserError or OSError:
    these two are raised here. The processes end with this one, however it ends.
    """
    queue = deque(range(len(items)))
    results: list[Any] = [None] * len(items)
    workers: list[_Worker] = []
    try:
        while queue or workers:
            while queue and len(workers) < max(processes, 1):
                workers.append(_Worker(function, work, limits))
            for worker in [worker for worker in workers if worker.place is None]:
                if queue:
                    worker.begin(queue.popleft(), items)
                else:
                    workers.remove(worker)
                    worker.end()
            for worker in _answering(workers):
                place, answer = worker.answer()
                results[place] = answer
                if isinstance(answer, Failed):
                    workers.remove(worker)  # whatever is left of it, the next item gets a new one
                    worker.end()
    finally:
        for worker in workers:
            worker.end()
    return results


class _Worker:
    """A process that carries out one item after the other."""

    def __init__(self, function: Callable[[Any, Any], Any], work: Any, limits: Limits) -> None:
        context = get_context("fork")
        self.pipe, theirs = context.Pipe()
        self._limits = limits
        self.place: int | None = None
        self.deadline = 0.0
        arguments = (theirs, function, work, limits, os.getpid())
        self._process: ForkProcess = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()  # so that the end of the process is the end of the pipe

    def begin(self, place: int, items: Sequence[Any]) -> None:
        """Have the item at ``place`` carried out."""
        self.place = place
        self.deadline = time.monotonic() + self._limits.seconds
        self.pipe.send(items[place])

    def answer(self) -> tuple[int, Any]:
        """Place and result of the item, once there is one or its time is up."""
        assert self.place is not None
        place, self.place = self.place, None
        if not self.pipe.poll():
            return place, Failed(f"it takes more than {self._limits.seconds:g} s")
        try:
            kind, result = self.pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            return place, Failed(f"its process {_end_of(self._process.exitcode or 0)}")
        if kind == "raise":
            raise result
        if kind == "memory":
            gib = self._limits.memory_bytes / 2**30
            return place, Failed(f"it takes more than {gib:g} GiB of memory")
        return place, Failed(result) if kind == "error" else result

    def end(self) -> None:
        """End the process; nothing that it has begun is kept."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _answering(workers: Sequence[_Worker]) -> list[_Worker]:
    """Those that have answered or ended; where none does in time, those whose time is up."""
    busy = [worker for worker in workers if worker.place is not None]
    if not busy:
        return []
    left = min(worker.deadline for worker in busy) - time.monotonic()
    ready = wait([worker.pipe for worker in busy], max(left, 0.0))
    now = time.monotonic()
    return [worker for worker in busy if worker.pipe in ready or worker.deadline <= now]


def _end_of(exit_code: int) -> str:
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    return f"was killed by {signal.Signals(-exit_code).name}"


def _serve(
    pipe: Connection,
    function: Callable[[Any, Any], Any],
    work: Any,
    limits: Limits,
    parent: int,
) -> None:
    """Answer for one item after the other, until the process is killed."""
    end_with_parent()
    if os.getppid() != parent:  # it ended just before
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to handle
    while True:
        try:
            item = pipe.recv()
        except EOFError:
            return
        pipe.send(_carried_out(function, work, item, limits))


def _carried_out(
    function: Callable[[Any, Any], Any], work: Any, item: Any, limits: Limits
) -> tuple[str, Any]:
    """What became of an item (done, raise, memory or error), and its result, error or reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = _memory() + limits.memory_bytes
    most = most if soft == resource.RLIM_INFINITY else min(most, soft)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        return "done", function(work, item)
    except (UserError, OSError) as error:
        return "raise", error
    except MemoryError:
        return "memory", None
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        lines = str(error).splitlines() or [""]
        return "error", f"{type(error).__name__}: {lines[0]}".removesuffix(": ")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _memory() -> int:
    """Bytes of address space that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
