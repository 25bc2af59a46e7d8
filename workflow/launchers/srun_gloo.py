"""Horovod on Gloo under Slurm's own srun: no mpirun, no ssh.

    srun_gloo.py [--interface NAME] srun [WORD]... -- PROGRAM [WORD]...

Called in a batch step, it serves what Gloo's ranks have to tell each other before they can
connect, and becomes srun: exit code and signals are srun's. A shell in each task of the step
derives the rank's HOROVOD_* from the task's SLURM_* and becomes PROGRAM. Of its own environment it
needs SLURM_JOB_ID, and SLURM_JOB_NODELIST spares a question to Slurm; neither with --interface, the
network that the ranks are to use.

A rank that fails ends all (srun's --kill-on-bad-exit=0 undoes that). A rank waits up to
HOROVOD_GLOO_TIMEOUT_SECONDS, here 300, until the others are there. Every rank asks for the
addresses of every other: about 1 ms for each pair, 15 s for 128 ranks. MPI suits more of them.
"""

import contextlib
import ctypes
import fcntl
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import ClassVar, NoReturn

USAGE = "srun_gloo.py [--interface NAME] srun [WORD]... -- PROGRAM [WORD]..."
HOLD_S = 1.0
_SIOCGIFADDR = 0x8915
_PR_SET_PDEATHSIG = 1

# Words: address, port, interface, program. Tasks per node are, say, 2(x3),1: three nodes of two,
# then one of one. Cross size: how many nodes have a rank of this local rank; ours is the cross
# rank-th of them.
TASK = """\
local_size=0 cross_rank=0 cross_size=0 first=0
IFS=,
for part in $SLURM_STEP_TASKS_PER_NODE; do
    tasks=${part%%(*} nodes=1
    case $part in *x*) nodes=${part##*x} nodes=${nodes%)} ;; esac
    before=$((SLURM_NODEID - first)) first=$((first + nodes))
    if [ $before -ge 0 ] && [ $before -lt $nodes ]; then local_size=$tasks; fi
    if [ $SLURM_LOCALID -lt $tasks ]; then
        cross_size=$((cross_size + nodes))
        if [ $before -gt $nodes ]; then before=$nodes; fi
        if [ $before -gt 0 ]; then cross_rank=$((cross_rank + before)); fi
    fi
done
export HOROVOD_RANK=$SLURM_PROCID HOROVOD_SIZE=$SLURM_STEP_NUM_TASKS \\
    HOROVOD_LOCAL_RANK=$SLURM_LOCALID HOROVOD_LOCAL_SIZE=$local_size \\
    HOROVOD_CROSS_RANK=$cross_rank HOROVOD_CROSS_SIZE=$cross_size \\
    HOROVOD_HOSTNAME=$SLURMD_NODENAME HOROVOD_CONTROLLER=gloo HOROVOD_CPU_OPERATIONS=gloo \\
    HOROVOD_GLOO_RENDEZVOUS_ADDR=$1 HOROVOD_GLOO_RENDEZVOUS_PORT=$2 HOROVOD_GLOO_IFACE=$3 \\
    HOROVOD_GLOO_TIMEOUT_SECONDS=${HOROVOD_GLOO_TIMEOUT_SECONDS:-300}
shift 3
exec "$@"
"""


class Server(ThreadingMixIn, TCPServer):
    """Keeps what ranks put: values by scope (all ranks, the ranks of a node...) and key."""

    request_queue_size = 1024  # every rank connects at about the same time
    daemon_threads = True
    scopes: ClassVar[dict[str, dict[str, bytes]]] = {}
    finished: ClassVar[Counter[str]] = Counter()
    changed = threading.Condition()


class Handler(BaseHTTPRequestHandler):
    """One request of Horovod's HTTPStore: PUT, GET or DELETE of /scope/key."""

    server: Server
    timeout = 10

    def do_PUT(self) -> None:
        """Keep a value."""
        value = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.changed:
            self._scope()[self.path] = value
            self.server.changed.notify_all()
        self._answer(200)

    def do_GET(self) -> None:
        """Answer with a value, or 404.

        A rank asks for another's addresses, the key being its number, every 10 ms until they are
        there: such an answer waits a while. Other keys are asked for once, there or not.
        """
        hold_s = HOLD_S if self.path.rpartition("/")[2].isdigit() else 0
        with self.server.changed:
            self.server.changed.wait_for(lambda: self.path in self._scope(), hold_s)
            value = self._scope().get(self.path)
        self._answer(404 if value is None else 200, value or b"")

    def do_DELETE(self) -> None:
        """Count a rank that is connected to all others of a scope; forget the scope after the last.

        No rank gets as far before every rank has put its addresses.
        """
        with self.server.changed:
            finished, scope = self.server.finished, self.path.rpartition("/")[0]
            finished[scope] += 1
            if finished[scope] == sum(path[-1].isdigit() for path in self._scope()):
                del self.server.scopes[scope], finished[scope]
        self._answer(200)

    def _scope(self) -> dict[str, bytes]:
        return self.server.scopes.setdefault(self.path.rpartition("/")[0], {})

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def fail(message: str, code: int = 1) -> NoReturn:
    """End with one line on standard error."""
    print(f"error: srun_gloo: {message}", file=sys.stderr)
    sys.exit(code)


def output(*words: str) -> str:
    """Return what one of Slurm's commands prints."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"{' '.join(words)}: {' '.join(done.stderr.split())}")
    return done.stdout.strip()


def interfaces() -> dict[str, str]:
    """Return the IPv4 address of each interface that has one."""
    addresses = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()))
                addresses[name] = socket.inet_ntoa(answer[20:24])
    return addresses


def own_address_towards(node: str) -> str | None:
    """Return the address from which packets to a node leave; None when it is this host."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((node, 9))  # sends nothing
        own, other = probe.getsockname()[0], probe.getpeername()[0]
    return None if own == other or own.startswith("127.") else own


def find_interface(addresses: dict[str, str]) -> str:
    """Return the interface that leads to the job's other nodes; without any, the loopback one."""
    if not (job := os.environ.get("SLURM_JOB_ID")):
        fail("SLURM_JOB_ID is not set: not in a Slurm job", 2)
    # Slurm's controller is asked as little as possible: all nodes of the job wait for its answer.
    nodes = os.environ.get("SLURM_JOB_NODELIST") or output("squeue", "-h", "-j", job, "-o", "%N")
    single = not re.search(r"[,\[]", nodes)
    said = "" if single else output("scontrol", "-o", "show", "node", nodes)
    towards = map(own_address_towards, re.findall(r"NodeAddr=(\S+)", said))
    own = next(filter(None, towards), "127.0.0.1")
    for name, address in addresses.items():
        if address == own:
            return name
    fail(f"no interface has {own}, from which the other nodes are reached: use --interface")


def serve(server: Server) -> None:
    """Serve in a child process, which ends with this one."""
    parent = os.getpid()
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:  # else it ended before the line above
            server.serve_forever()
        os._exit(0)


def main(words: list[str]) -> NoReturn:
    """Serve in the background and become srun."""
    interface = None
    if words[:1] == ["--interface"]:
        interface, words = "".join(words[1:2]), words[2:]
    end = words.index("--") if "--" in words else 0
    srun, program = words[:end], words[end + 1 :]
    if not srun or srun[0].startswith("-") or not program:
        fail(f"usage: {USAGE}", 2)
    addresses = interfaces()
    if interface is not None and interface not in addresses:
        fail(f"no interface {interface!r} with an IPv4 address, only {', '.join(addresses)}", 2)
    try:
        interface = interface or find_interface(addresses)
        server = Server((addresses[interface], 0), Handler)
    except OSError as error:
        fail(f"{error.filename or 'network'}: {error.strerror}")
    serve(server)
    network = [*map(str, server.server_address), interface]
    os.environ.setdefault("SLURM_KILL_BAD_EXIT", "1")
    try:
        os.execvp(srun[0], [*srun, "sh", "-c", TASK, "sh", *network, *program])
    except OSError as error:
        fail(f"cannot start {srun[0]}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
