"""The sampler: read power and energy of one host until its standard input ends.

    python -I -S sampler.py '{"out": DIR, "interval_s": 1.0, "sources": [...], "sysfs": "/sys"}'

Writes ``power-<host>.csv`` (Unix time, domain, value in joules or watts) and ``power-<host>.json``
(domains, what could not be read, CPU seconds of the sampler itself). Prints ``ready``, or
``nothing`` and ends at once. Samples are taken at once, then whenever the clock shows a whole
multiple of the interval, so that hosts do it together, and once more at the end of the input.

Standard library only.
"""

import contextlib
import json
import os
import select
import sys
import time
from pathlib import Path
from typing import Any, TextIO

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from scalesweep.compute.power.counters import Read, find, host_name, reason, why_nothing
from scalesweep.core.files import write_atomic

# A grid point so close (in intervals) to the sample before is left out.
_TOO_CLOSE = 0.2


class Sampler:
    """Takes samples and writes them down. Time goes on with the monotonic clock from where the
    time of day was at the begin: a step of that clock later moves nothing."""

    def __init__(self, out: Path, host: str, interval_s: float, readers: dict[str, Read]) -> None:
        self.interval_s, self.readers = interval_s, readers
        self.failed: dict[str, str] = {}  # name of a domain -> why its last reading failed
        self._offset = time.time() - time.monotonic()
        self._csv: TextIO = (out / f"power-{host}.csv").open("w", encoding="ascii")
        self._csv.write("time,domain,value\n")
        self.sample()

    def sample(self) -> None:
        """Write down the values now of all that can still be read."""
        for name, read in self.readers.items():
            # Reading itself may take milliseconds: the value is of some time between.
            began = time.monotonic()
            try:
                value = read()
            except (OSError, ValueError) as error:
                self.failed[name] = reason(error)
                continue
            self.failed.pop(name, None)
            now = (began + time.monotonic()) / 2 + self._offset
            self._csv.write(f"{now:.6f},{name},{value!r}\n")
        # Each sample is in the file at once: what is killed leaves all that it has read.
        self._csv.flush()

    def run(self) -> None:
        """Sample until the input ends."""
        while True:
            now = time.monotonic() + self._offset
            due = now // self.interval_s + 1
            due += due - now / self.interval_s < _TOO_CLOSE
            while (left_s := due * self.interval_s - now) > 0:
                if select.select([0], [], [], left_s)[0] and not _still_open():
                    self.sample()
                    return
                now = time.monotonic() + self._offset
            self.sample()


def _still_open() -> bool:
    try:
        return bool(os.read(0, 4096))
    except OSError:
        return False


def main(given: dict[str, Any]) -> None:
    """Sample as ``given`` says."""
    out, host = Path(given["out"]), host_name()
    counters, refused = find(given["sysfs"], given["sources"])
    missing = None if counters else why_nothing(given["sources"], refused, host)
    said: dict[str, Any] = {
        "host": host, "interval_s": given["interval_s"], "missing": missing,
        "domains": list(counters), "refused": refused, "failed": {},
    }  # fmt: skip

    def describe() -> None:
        said["cpu_s"] = time.process_time()
        text = json.dumps(said, indent=1) + "\n"
        write_atomic(out / f"power-{host}.json", text, durable=False)

    describe()
    readers = {domain.name: read for domain, read in counters.items()}
    sampler = Sampler(out, host, given["interval_s"], readers) if readers else None
    # Whoever waits for this line may be gone.
    with contextlib.suppress(BrokenPipeError):
        print("ready" if sampler else "nothing", host, flush=True)
    if sampler:
        sampler.run()
        said["failed"] = sampler.failed
        describe()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
