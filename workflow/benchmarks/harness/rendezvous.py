"""Where this rank stands among the others, from what the launcher has set, and where they meet.

torchrun and ``workflow/launchers/local_ranks.py`` say both (MASTER_ADDR, MASTER_PORT). srun, mpirun
and horovodrun say which rank this is; then rank 0 leaves its host and a free port in a file of the
run's folder, which all nodes see. Standard library only.
"""

import fcntl
import json
import os
import re
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from harness.program import EXIT_LAUNCH, EXIT_PARAMETERS, ProgramError
from harness.rank_variables import HYDRA, LAUNCHERS, SRUN

_SIOCGIFADDR = 0x8915  # of Linux: the address of an interface
# How ranks look for the file that says where rank 0 is met.
MEETING, LOOK_S, SLOW_LOOK_S = "meeting.json", 0.05, 1.0


class Place(NamedTuple):
    """A rank among the others; ``launcher`` is who has said so, in words."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    launcher: str


def place_of(environ: Mapping[str, str] = os.environ) -> Place:
    """Return what the launcher says of this rank; without a launcher it is the only one.

    Raises ProgramError (code 2) that names the variable where something is missing or odd.
    """
    for launcher, *names in LAUNCHERS:
        # PMI_RANK and PMI_SIZE without the others are srun's (--mpi=pmi2).
        needed = names if names == list(HYDRA[1:]) else names[:2]
        if names[-1] and all(variable in environ for variable in needed):
            numbers = [_number(environ, variable, launcher) for variable in names]
            break
    else:
        launcher, numbers = "", [0, 1, 0, 1]
        if SRUN.size in environ:
            launcher, numbers = SRUN.name, _place_in_step(environ)
    rank, size, local_rank, local_size = numbers
    if not (0 <= rank < size and 0 <= local_rank < local_size <= size):
        said = f"{launcher} has set numbers of no rank: rank {rank} of {size}"
        raise ProgramError(EXIT_PARAMETERS, f"{said}, on its host {local_rank} of {local_size}")
    return Place(rank, size, local_rank, local_size, launcher)


def said_meeting(environ: Mapping[str, str] = os.environ) -> tuple[str, int]:
    """Return where ranks meet as the launcher says it: address and port; empty and 0: it does not.

    Raises ProgramError (code 2) for a port that is none.
    """
    port = _number(environ, "MASTER_PORT", "the environment") if "MASTER_PORT" in environ else 0
    if port >= 1 << 16:
        raise ProgramError(EXIT_PARAMETERS, f"MASTER_PORT is {port}, not 1 to 65535")
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
                return str(content["address"]), int(content["port"])
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
    value = environ.get(name, "")
    if not value.isdecimal():
        said = f"is {value!r}, not a number" if value else "is not set"
        raise ProgramError(EXIT_PARAMETERS, f"started by {launcher}, but {name} {said}")
    return int(value)


def _place_in_step(environ: Mapping[str, str]) -> list[int]:
    """Rank, size, local rank and local size of a task of a Slurm step."""
    names = (*SRUN[1:4], "SLURM_NODEID")
    rank, size, local_rank, node = (_number(environ, name, "srun") for name in names)
    tasks = environ.get("SLURM_STEP_TASKS_PER_NODE", "")  # 2(x3),1: three nodes of two, one of one
    for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", tasks):
        node -= int(times or 1)
        if node < 0:
            return [rank, size, local_rank, int(count)]
    said = f"started by srun, but SLURM_STEP_TASKS_PER_NODE is {tasks!r}"
    raise ProgramError(EXIT_PARAMETERS, said)
