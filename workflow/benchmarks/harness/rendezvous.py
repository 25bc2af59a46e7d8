"""Where this rank stands among the others and where they meet, from what the launcher has set.

torch.distributed needs RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
torchrun and ``workflow/launchers/local_ranks.py`` set all six. srun, mpirun and horovodrun set
variables of their own; from these every rank works out the same six without asking another one.
A MASTER_ADDR or MASTER_PORT that is set already is kept. Where a launcher says too little (MPICH
and Intel MPI name no port, mpirun outside of Slurm no host) rank 0 leaves host and port in a file
of the run's folder, which all nodes see. Standard library only.
"""

import json
import os
import re
import socket
import time
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from harness.program import EXIT_LAUNCH, EXIT_PARAMETERS, ProgramError
from harness.rank_variables import HYDRA, LAUNCHERS, SRUN

# Ports of ranks that cannot agree on a free one: below those that Linux gives to connections
# (ip_local_port_range begins at 32768), so that none of these is in the way.
FIRST_PORT, PORTS = 20000, 9973
# Steps of jobs whose ids differ by less than so many have different ports: PORTS is prime, and the
# first STEPS steps of a job have ports beside each other.
STEPS = 101

_OWN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


# How ranks look for the file that says where rank 0 is met.
MEETING, LOOK_S, SLOW_LOOK_S = "meeting.json", 0.05, 1.0


class Rendezvous(NamedTuple):
    """The six variables; ``launcher`` is who has set what they were made of, in words.

    An empty address and port 0 are not known before rank 0 has left them (``leave_meeting``).
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    address: str
    port: int
    launcher: str

    def variables(self) -> dict[str, str]:
        """The six as torch.distributed reads them (``env://``)."""
        names = (*_OWN, "MASTER_ADDR", "MASTER_PORT")
        return {name: str(value) for name, value in zip(names, self[:6], strict=True)}


def rendezvous(environ: Mapping[str, str] = os.environ, by_file: bool = False) -> Rendezvous:
    """Return what the launcher says of this rank; without a launcher it is the only one.

    With ``by_file`` address and port may be left open. Raises ProgramError (code 2) that names the
    variable where something is missing or odd.
    """
    for name, *names in LAUNCHERS:
        # PMI_RANK and PMI_SIZE without the others are srun's (--mpi=pmi2).
        needed = names if names == list(HYDRA[1:]) else names[:2]
        if names[-1] and all(variable in environ for variable in needed):
            launcher = name
            place = [_number(environ, variable, launcher) for variable in names]
            break
    else:
        launcher = SRUN.name if SRUN.size in environ else ""
        place = _place_in_step(environ) if launcher else [0, 1, 0, 1]
    rank, size, local_rank, local_size = place
    if not (0 <= rank < size and 0 <= local_rank < local_size <= size):
        said = ", ".join(f"{name} {value}" for name, value in zip(_OWN, place, strict=True))
        raise ProgramError(EXIT_PARAMETERS, f"{launcher} has set numbers of no rank: {said}")
    address = environ.get("MASTER_ADDR")
    if not address:
        address = _address(environ, launcher, local_size == size)
        if not address and not by_file:
            raise ProgramError(
                EXIT_PARAMETERS,
                f"ranks are on several hosts, and {launcher} does not say which has rank 0: set "
                "MASTER_ADDR to its name",
            )
    port = _port(environ, launcher, size)
    if not port and not by_file:
        raise ProgramError(
            EXIT_PARAMETERS, f"{launcher} says no port on which ranks meet: set MASTER_PORT"
        )
    return Rendezvous(*place, address, port, launcher)


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


def free_port() -> int:
    """Return a TCP port that is free on this host now."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


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
    return [rank, size, local_rank, _tasks_on(environ.get("SLURM_STEP_TASKS_PER_NODE", ""), node)]


def _tasks_on(tasks: str, node: int) -> int:
    """Return the tasks of a step on its ``node``-th node; ``2(x3),1``: three nodes of two, one of
    one."""
    for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", tasks):
        node -= int(times or 1)
        if node < 0:
            return int(count)
    raise ProgramError(
        EXIT_PARAMETERS, f"started by srun, but SLURM_STEP_TASKS_PER_NODE is {tasks!r}"
    )


def _address(environ: Mapping[str, str], launcher: str, on_one_host: bool) -> str:
    """Return the host of rank 0: the first of the step's, or of the job's; empty: not known."""
    if on_one_host:
        return "127.0.0.1"
    nodes = environ.get("SLURM_STEP_NODELIST" if launcher == "srun" else "SLURM_JOB_NODELIST", "")
    if not nodes:
        return ""
    host = first_host(nodes)
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        # The name is Slurm's alone. srun was started on the first node of the allocation.
        return environ.get("SLURM_LAUNCH_NODE_IPADDR") or host
    return host


def first_host(nodes: str) -> str:
    """Return the first of a list of hosts as Slurm writes it: ``n[004-007,9],m1`` is ``n004``."""
    head = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)
    return re.sub(r"\[(\d+)[^\]]*\]", r"\1", head[0] if head else nodes)


def _port(environ: Mapping[str, str], launcher: str, size: int) -> int:
    """Return the port on which rank 0 is met: one that all ranks work out alike; 0: not known."""
    if "MASTER_PORT" in environ:
        port = _number(environ, "MASTER_PORT", launcher or "the environment")
        if not 0 < port < 1 << 16:
            raise ProgramError(EXIT_PARAMETERS, f"MASTER_PORT is {port}, not 1 to 65535")
        return port
    if size == 1:
        return free_port()
    if launcher == "srun":
        # Slurm's own, where the site has MpiParams=ports=...: it gives no port twice.
        if reserved := re.match(r"\d+", environ.get("SLURM_STEP_RESV_PORTS", "")):
            return int(reserved[0])
        job, step = (_number(environ, name, "srun") for name in ("SLURM_JOB_ID", "SLURM_STEP_ID"))
        return FIRST_PORT + (STEPS * job + step) % PORTS
    # The number of the launcher's own server, or what Open MPI and PMIx call this start.
    names = ("HOROVOD_GLOO_RENDEZVOUS_PORT", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")
    token = next((environ[name] for name in names if environ.get(name)), "")
    if not token:
        return 0
    digest = int.from_bytes(blake2b(token.encode(), digest_size=8).digest())
    return FIRST_PORT + digest % PORTS
