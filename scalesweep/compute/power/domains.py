"""What is read: domains (a package, a GPU, a node), and meters that read some of them.

Standard library only.
"""

import os
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

# Failed readings of a domain in a row, after which it is left alone.
GIVE_UP = 3
STOP = "power.stop"  # a file next to the samples, at which their samplers end
# So much of a time may be without values at its edges: the sampler's start, clocks of hosts that
# differ. A part of the time, and seconds.
SLACK, SLACK_S = 0.01, 0.02
# A sensor without a value for more intervals than this was not watched.
WATCHED = 3.0
POWER_SOURCES = ("rapl", "nvml", "pm_counters", "hwmon")


class Domain(NamedTuple):
    """One quantity of one part of a host.

    ``name`` is unique on its host (``rapl:package-0``). ``part``: node, psys, package, dram, core,
    uncore, gpu or other. A value times ``unit`` is joules for the kind ``counter``, watts for
    ``power``. ``wrap``: the count at which a counter starts again at 0, None if it does not.
    ``device``: PCI address, where it is of a PCI device.
    """

    name: str
    source: str
    part: str
    kind: str
    unit: float
    wrap: int | None = None
    device: str = ""


class Reading(NamedTuple):
    """A value of a domain: Unix time and the monotonic clock, in seconds, at which it was read."""

    domain: str
    time: float
    clock: float
    value: float


class Sources(NamedTuple):
    """What a search for a source gave: ways to read domains, and why others cannot be read."""

    readers: dict[Domain, Callable[[], float]]
    refused: dict[str, str]


class Meter:
    """Domains that are read directly, each by a function (OSError or ValueError if it fails)."""

    def __init__(self, readers: dict[Domain, Callable[[], float]]) -> None:
        self.domains = list(readers)
        self._readers = {domain.name: read for domain, read in readers.items()}
        self._last: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        # Name of a domain that was lost -> Unix time of its last value and why.
        self.lost: dict[str, tuple[float, str]] = {}

    def sample(self) -> Iterator[Reading]:
        """Values now of all that can still be read."""
        for name, read in list(self._readers.items()):
            # Reading itself may take milliseconds: the value is of some time between.
            before, clock = time.time(), time.monotonic()
            try:
                value = read()
            except (OSError, ValueError) as error:
                self._fail(name, reason(error))
                continue
            half = (time.monotonic() - clock) / 2
            self._last[name] = before
            self._failures.pop(name, None)
            self.lost.pop(name, None)
            yield Reading(name, before + half, clock + half, value)

    def _fail(self, name: str, why: str) -> None:
        # Told although it may come back: then the next value takes it out again.
        self.lost[name] = (self._last.get(name, 0.0), why)
        self._failures[name] = self._failures.get(name, 0) + 1
        if self._failures[name] >= GIVE_UP:
            del self._readers[name]


def host_name() -> str:
    """This host as Slurm calls it, else as it calls itself."""
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename


def reason(error: Exception) -> str:
    """An error in a few words, without its file."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
