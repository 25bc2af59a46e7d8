"""How long each phase of a program took."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from harness import watch


def since_start() -> float:
    """Return seconds since the program was started: by the Unix time in SCALESWEEP_STARTED when the
    launcher set it (so that starting the ranks counts too), else the seconds of this process's CPU.
    """
    try:
        elapsed = time.time() - float(os.environ["SCALESWEEP_STARTED"])
        if 0 <= elapsed < 86400:  # else the clocks of two hosts disagree, or the value is old
            return elapsed
    except (KeyError, ValueError):
        pass
    return time.process_time()


class Phases:
    """Seconds by phase; a phase entered twice adds up.

    `spans` are the phases in their order with begin and end in Unix seconds, by which what is
    measured outside the program (power) can be assigned to phases.
    """

    def __init__(self) -> None:
        """Start with no phase."""
        self.seconds: dict[str, float] = {}
        self.spans: list[tuple[str, float, float]] = []

    def add(self, name: str, seconds: float) -> None:
        """Add `seconds`, which end now, to phase `name`."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        now = time.time()
        self.spans.append((name, now - seconds, now))

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time the body of a ``with`` statement as phase `name`, also when it raises."""
        watch.enter(name)
        began = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - began)
            watch.advance()
