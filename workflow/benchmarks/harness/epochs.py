"""The timed part: epochs between barriers."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class EpochTimes:
    """What this rank measured, one entry per finished epoch."""

    local: list[float] = field(default_factory=list)  # s, until this rank was done
    total: list[float] = field(default_factory=list)  # s, until every rank was done
    read_inside: list[float] = field(default_factory=list)  # bytes read while timed; NaN: unknown


def bytes_read() -> float:
    """Return the bytes this process has read so far, from disk or page cache; NaN if unknown."""
    try:
        with open("/proc/self/io", "rb") as file:  # noqa: PTH123
            return float(file.readline().split()[1])
    except (OSError, IndexError, ValueError):
        return float("nan")


def time_epochs(
    epochs: int,
    prepare: Callable[[int], Any],
    work: Callable[[Any], bool],
    barrier: Callable[[bool], bool],
) -> EpochTimes:
    """Time `work` on what `prepare(epoch)` returns, for each epoch, from one barrier to the next.

    `prepare` is not timed. `work` returns whether it went well. `barrier(ok)` returns, on every
    rank, whether all ranks said so: after an epoch that went wrong anywhere all ranks stop
    together. Between a barrier and the reading of the clock nothing else happens. The bytes read
    inside the timed parts show whether a pipeline read ahead for a later epoch.
    """
    times = EpochTimes()
    for epoch in range(epochs):
        prepared = prepare(epoch)
        began_reading = bytes_read()
        barrier(True)
        start = time.perf_counter()
        ok = work(prepared)
        local = time.perf_counter()
        ok = barrier(ok)
        end = time.perf_counter()
        if not ok:
            break
        times.local.append(local - start)
        times.total.append(end - start)
        times.read_inside.append(bytes_read() - began_reading)
    return times
