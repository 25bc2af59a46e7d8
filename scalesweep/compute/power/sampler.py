"""The sampler: read power and energy of one host until its standard input ends.

    python -I -S sampler.py --out DIR [--interval S] [--sources NAMES] [--sysfs ROOT] [--host NAME]

Writes ``power-<host>.csv`` (time, clock, domain, value: Unix seconds, monotonic seconds, and the
value as it was read) and ``power-<host>.json`` (domains, what could not be read, CPU seconds of the
sampler itself). Prints ``ready``, or ``nothing`` and ends at once. Samples are taken at once, then
whenever the clock shows a whole multiple of the interval, so that hosts do it together, and once
more at the end. The end is that of standard input, a file ``power.stop`` in DIR, SIGTERM, SIGUSR1
(srun hands that one on; it makes SIGKILL of SIGTERM), or that of the parent process.

Standard library only.
"""

import argparse
import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from scalesweep.compute.power.domains import POWER_SOURCES, STOP, Meter, Reading, host_name
from scalesweep.compute.power.sources import find, why_nothing
from scalesweep.core.files import write_atomic

SCHEMA = 1
# How often the stop file and the parent are looked at, whatever the interval.
_LOOK_S = 1.0
# A grid point so close (in intervals) to the sample before is left out.
_TOO_CLOSE = 0.2


class Sampler:
    """Takes samples and writes them down."""

    def __init__(self, out: Path, host: str, interval_s: float) -> None:
        self.out, self.host, self.interval_s = out, host, interval_s
        self.meter = Meter({})
        self.refused: dict[str, str] = {}
        self.samples = 0
        self.ended = ""
        self._csv: TextIO | None = None

    def begin(self, sysfs: str, sources: Iterable[str]) -> str | None:
        """Find the sources and take the first sample; why there is none, or None."""
        wanted = list(sources)
        readers, self.refused = find(sysfs, wanted)
        self.meter = Meter(readers)
        rows = list(self.meter.sample())
        if not readers:
            why = why_nothing(wanted, self.refused, self.host)
            self._describe(why)
            return why
        self._csv = (self.out / f"power-{self.host}.csv").open("w", encoding="ascii")
        self._csv.write("time,clock,domain,value\n")
        self._write(rows)
        self.samples = 1
        self._describe(None)
        return None

    def run(self, wake: int) -> None:
        """Sample until the end; ``wake`` is a file descriptor that becomes readable by a signal."""
        parent = os.getppid()
        stop_file = self.out / STOP
        # The grid is that of the time of day now; a step of that clock later moves nothing.
        offset = time.time() - time.monotonic()
        last = time.monotonic()
        due = self._after(last, offset)
        looked = last
        watched = [0, wake]
        while not self.ended:
            now = time.monotonic()
            if now - looked >= _LOOK_S:
                looked = now
                if os.getppid() != parent:
                    self.ended = "the parent process is gone"
                elif stop_file.exists():
                    self.ended = "stop file"
                continue
            if now >= due:
                self._write(self.meter.sample())
                self.samples += 1
                due = self._after(now, offset)
                continue
            timeout = max(0.0, min(due - now, looked + _LOOK_S - now))
            for file in select.select(watched, [], [], timeout)[0]:
                if file == wake:
                    self.ended = "signal"
                elif _input_ended():
                    self.ended = "end of input"

    def _after(self, clock: float, offset: float) -> float:
        """The next point of the grid that is not too close."""
        points = (clock + offset) / self.interval_s
        following = points // 1 + 1
        if following - points < _TOO_CLOSE:
            following += 1
        return following * self.interval_s - offset

    def finish(self) -> None:
        """Take the last sample and tell how it all went."""
        self._write(self.meter.sample())
        self.samples += 1
        if self._csv:
            self._csv.close()
        self._describe(None)

    def _write(self, rows: Iterable[Reading]) -> None:
        assert self._csv is not None
        self._csv.write("".join(
            f"{row.time:.6f},{row.clock:.6f},{row.domain},{row.value!r}\n" for row in rows
        ))  # fmt: skip
        # Each sample is in the file at once: what is killed leaves all that it has read.
        self._csv.flush()

    def _describe(self, missing: str | None) -> None:
        content: dict[str, Any] = {
            "schema": SCHEMA,
            "host": self.host,
            "interval_s": self.interval_s,
            "missing": missing,
            "domains": [domain._asdict() for domain in self.meter.domains],
            "refused": self.refused,
            "lost": self.meter.lost,
            "samples": self.samples,
            "cpu_s": time.process_time(),
            "ended": self.ended,
        }
        path = self.out / f"power-{self.host}.json"
        write_atomic(path, json.dumps(content, indent=1) + "\n", durable=False)


def _input_ended() -> bool:
    try:
        return not os.read(0, 4096)
    except OSError:
        return True


def _wake_on_signals() -> int:
    """A file descriptor that becomes readable when SIGTERM, SIGUSR1 or SIGINT comes."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return reader


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Sample power and energy of this host.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--interval", type=float, default=1.0, help="seconds; default: 1")
    parser.add_argument("--sources", default=",".join(POWER_SOURCES), help="default: %(default)s")
    parser.add_argument("--sysfs", default="/sys")
    parser.add_argument("--host", default=host_name(), help="default: %(default)s")
    return parser.parse_args()


def main() -> None:
    """Run the command line."""
    wake = _wake_on_signals()
    given = _arguments()
    sampler = Sampler(given.out, given.host, given.interval)
    missing = sampler.begin(given.sysfs, given.sources.split(","))
    # Whoever waits for this line may be gone.
    with contextlib.suppress(BrokenPipeError):
        print("nothing" if missing else "ready", sampler.host, flush=True)
    if not missing:
        sampler.run(wake)
        sampler.finish()


if __name__ == "__main__":
    main()
