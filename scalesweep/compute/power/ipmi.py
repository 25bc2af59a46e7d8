"""A node's power as its management controller reports it: ``ipmitool dcmi power reading``.

Standard library only. A reading takes a tenth of a second or more, hence a pace of its own.
"""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from select import select

from scalesweep.compute.power.domains import GIVE_UP, Domain, Meter, Reading

DEVICES = ("/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0")
PACE_S = 5.0
_NAME = "ipmi:node"
_LAST_S = 2.0
_WATTS = re.compile(r"Instantaneous power reading\s*:\s*(\d+(?:\.\d+)?)\s*Watts", re.IGNORECASE)


def possible(devices: tuple[str, ...] = DEVICES) -> bool:
    """Whether there is an IPMI device and the program."""
    return any(map(os.path.exists, devices)) and shutil.which("ipmitool") is not None


def refusal(devices: tuple[str, ...] = DEVICES) -> str:
    """Why the device cannot be used, empty if it can."""
    if any(os.access(device, os.R_OK | os.W_OK) for device in devices):
        return ""
    return "Permission denied"


class IpmiMeter(Meter):
    """Readings one after the other, each by a process of its own."""

    def __init__(self, program: str, interval_s: float) -> None:
        super().__init__({})
        self._program = program
        self._pace = max(PACE_S, interval_s)
        self.domains = [Domain(_NAME, "ipmi", "node", "power", 1.0, pace=self._pace)]
        self._process: subprocess.Popen[bytes] | None = None
        self._begun = float("-inf")
        self._failed = 0

    def start(self) -> None:
        """Begin the first reading without waiting for it."""
        self._begun = time.monotonic()
        self._process = subprocess.Popen(
            [self._program, "dcmi", "power", "reading"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def files(self) -> list[int]:
        """The output of the reading under way."""
        out = self._process.stdout if self._process else None
        return [] if out is None else [out.fileno()]

    def sample(self) -> Iterator[Reading]:
        """No value, but the next reading is begun when its time has come."""
        due = time.monotonic() - self._begun >= self._pace
        if self._process is None and due and self._failed < GIVE_UP:
            self.start()
        return iter(())

    def receive(self) -> Iterator[Reading]:
        """The value of the reading that is done."""
        assert self._process is not None
        try:  # it prints all at once, then ends
            text = self._process.communicate(timeout=_LAST_S)[0].decode("ascii", "replace")
        except subprocess.TimeoutExpired:
            self._process.kill()
            text = self._process.communicate()[0].decode("ascii", "replace")
        code, self._process = self._process.returncode, None
        match = _WATTS.search(text)
        now, clock = time.time(), time.monotonic()
        # 0 W is what controllers without such a sensor say.
        if code or match is None or not float(match[1]):
            self._failed += 1
            said = " ".join(text.split())[:60] or f"exit code {code}"
            self.lost[_NAME] = (self.lost.get(_NAME, (0.0, ""))[0] or now, f"ipmitool: {said}")
            return
        self._failed = 0
        self.lost.pop(_NAME, None)
        half = (clock - self._begun) / 2
        yield Reading(_NAME, now - half, clock - half, float(match[1]))

    def close(self) -> Iterator[Reading]:
        """One more value, waited for two seconds at most."""
        if self._process is None and self._failed < GIVE_UP:
            self.start()
        if self._process is not None:
            if select(self.files(), [], [], _LAST_S)[0]:
                yield from self.receive()
            else:
                self._process.kill()
                self._process.wait()
