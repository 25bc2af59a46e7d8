"""Where this rank stands among the others, from what the launcher has set, and where they meet.

torchrun and ``workflow/launchers/local_ranks.py`` say both (MASTER_ADDR, MASTER_PORT). srun, mpirun
and horovodrun say which rank this is; then rank 0 leaves its host and a free port in a file of the
run's folder, which all nodes see. Standard library only.
"""

import fcntl
import json
import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from harness.program import EXIT_LAUNCH, EXIT_PARAMETERS, ProgramError
from harness.rank_variables import LAUNCHERS

_SIOCGIFADDR = 0x8915  # of Linux: the address of an interface
# How ranks look for the file that says where rank 0 is met.
MEETING, LOOK_S, SLOW_LOOK_S = "meeting.json", 0.05, 1.0


class Place(NamedTuple):
    """A rank among the others."""

    rank: int
    size: int
    local_rank: int


def place_of(environ: Mapping[str, str] = os.environ) -> Place:
    """Return what the launcher says of this rank; without a launcher it is the only one.

    Raises ProgramError (code 2) that names what is odd.
    """
    for launcher, *names in LAUNCHERS:
        if all(name in environ for name in names):
            place = Place(*(_number(environ, name, launcher) for name in names))
            if place.rank >= place.size:
                said = f"{launcher} has set the number of no rank: {place.rank} of {place.size}"
                raise ProgramError(EXIT_PARAMETERS, said)
            return place
    return Place(0, 1, 0)


def said_meeting(environ: Mapping[str, str] = os.environ) -> tuple[str, int]:
    """Return where ranks meet as the launcher says it: address and port; empty and 0: it does not.

    Raises ProgramError (code 2) for a port that is no number.
    """
    port = _number(environ, "MASTER_PORT", "the environment") if "MASTER_PORT" in environ else 0
    return environ.get("MASTER_ADDR", ""), port


def leave_meeting(folder: Path, address: str, port: int) -> None:
    """Leave for the other ranks where rank 0 is met; raises OSError."""
    path = folder / MEETING
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps({"address": address, "port": port}))
    partial.rename(path)


def find_meeting(folder: Path, patience_s: float) -> tuple[str, int]:
    """Wait until rank 0 has left where it is met; address and port.

    Raises ProgramError (code 75) where it has not within so many seconds.
    """
    until, pause_s = time.monotonic() + patience_s, LOOK_S
    while True:
        try:
            # Asking for the names has a network file system look again for one that was not there.
            if MEETING in os.listdir(folder):  # noqa: PTH208
                content = json.loads((folder / MEETING).read_bytes())
                here = content["address"] == socket.gethostname()
                return "127.0.0.1" if here else str(content["address"]), int(content["port"])
        except OSError:
            pass
        if time.monotonic() >= until:
            raise ProgramError(
                EXIT_LAUNCH,
                f"rank 0 has not said within {patience_s:.0f} s where it is met, in"
                f" {folder / MEETING}: set MASTER_ADDR and MASTER_PORT if nodes do not share that"
                " folder",
            )
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, SLOW_LOOK_S)


def own_address() -> str:
    """Return how other ranks reach this host: its name, or its address on Gloo's interface."""
    name = os.environ.get("HOROVOD_GLOO_IFACE", "").partition(",")[0]
    if not name:
        return socket.gethostname()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        request = struct.pack("256s", name.encode()[:15])
        return socket.inet_ntoa(fcntl.ioctl(asked, _SIOCGIFADDR, request)[20:24])


def _number(environ: Mapping[str, str], name: str, launcher: str) -> int:
    value = environ[name]
    if not value.isdecimal():
        said = f"started by {launcher}, but {name} is {value!r}, not a number"
        raise ProgramError(EXIT_PARAMETERS, said)
    return int(value)
