"""Start the ranks of a program on this host.

    local_ranks.py RANKS PROGRAM [WORD]...

Each rank gets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which
torch.distributed reads (``env://``). Lines come out with the rank in front, as horovodrun's do:
``[1]<stdout>:text``. When a rank fails the others are ended, a line on standard error says which
one it was, and the exit code is its own, 128 + N after signal N. Nothing is started again. Ranks
end with this process, however it ends. Standard library only.
"""

import ctypes
import os
import random
import selectors
import signal
import socket
import subprocess
import sys
import time
from typing import NoReturn

USAGE = "local_ranks.py RANKS PROGRAM [WORD]..."
# Above those of harness/rendezvous.py, below those that Linux gives to connections.
PORTS = range(29973, 32768)
GRACE_S = 3.0  # from SIGTERM to SIGKILL
REST_S = 1.0  # for what is still in a pipe that a rank's own children hold open
LONGEST = 1 << 20  # bytes of a line; longer ones are cut
STREAMS = {1: "stdout", 2: "stderr"}
_PR_SET_PDEATHSIG = 1


def fail(message: str) -> NoReturn:
    """End with one line on standard error."""
    print(f"error: local_ranks: {message}", file=sys.stderr)
    sys.exit(2)


def take_port() -> tuple[int, socket.socket]:
    """Return a free port, and what keeps other launchers from taking it while it is open.

    Ranks import PyTorch for seconds before the first of them listens there.
    """
    for port in random.sample(PORTS, len(PORTS)):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0scalesweep-port-{port}")
            with socket.socket() as probe:
                probe.bind(("", port))
        except OSError:
            claim.close()
            continue
        return port, claim
    fail(f"no port of {PORTS.start} to {PORTS.stop - 1} is free for the ranks to meet")


def start(rank: int, ranks: int, port: int, words: list[str]) -> "subprocess.Popen[bytes]":
    """Start a rank, which ends with this process; raises OSError."""
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks}
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    environ = {name: str(value) for name, value in {**place, **meeting}.items()}
    parent = os.getpid()

    def end_with_parent() -> None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        # Gloo would look up the name of this host, which need not have an address.
        env={"GLOO_SOCKET_IFNAME": "lo", **os.environ, **environ},
        preexec_fn=end_with_parent,  # noqa: PLW1509 (no threads)
    )  # fmt: skip


class Ranks:
    """All ranks, until the last of them has ended."""

    def __init__(self, processes: "list[subprocess.Popen[bytes]]") -> None:
        """Watch these, by their ranks; from now on signals end them."""
        self.processes = processes
        self.code = 0  # of the first that has failed
        self.kill_at: float | None = None
        self.begun = {(rank, to): b"" for rank in range(len(processes)) for to in STREAMS}
        self._woken, writer = os.pipe()
        for end in (self._woken, writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: self.end(128 + number))
        self._pipes = selectors.DefaultSelector()
        self._pipes.register(self._woken, selectors.EVENT_READ)
        for rank, process in enumerate(processes):
            for to, name in STREAMS.items():
                self._pipes.register(getattr(process, name), selectors.EVENT_READ, (rank, to))

    def end(self, code: int, number: int = signal.SIGTERM) -> None:
        """End all ranks that still run; ``code`` is what this program ends with."""
        self.code = self.code or code
        self.kill_at = self.kill_at or time.monotonic() + GRACE_S
        for process in self.processes:
            process.send_signal(number)  # none to one that has ended

    def wait(self) -> int:
        """Copy what ranks print until all have ended; the exit code."""
        while any(process.poll() is None for process in self.processes):
            left_s = None if self.kill_at is None else self.kill_at - time.monotonic()
            if left_s is not None and left_s <= 0:
                self.end(0, signal.SIGKILL)
                left_s = None
            self._copy(left_s)
            self._look()
        self._look()
        until = time.monotonic() + REST_S
        while len(self._pipes.get_map()) > 1 and (left_s := until - time.monotonic()) > 0:
            self._copy(left_s)
        for rank, to in self.begun:
            self._put(rank, to, b"")
        return self.code

    def _look(self) -> None:
        """Say which rank failed first and which had ended well before, and end the others."""
        codes = [process.poll() for process in self.processes]
        rank = next((rank for rank, code in enumerate(codes) if code), None)
        if self.code or rank is None:
            return
        self._copy(0)  # what it has said comes before what is said of it
        code, left = codes[rank] or 0, [str(n) for n, code in enumerate(codes) if code == 0]
        if left:
            who = f"rank{'s' * (len(left) > 1)} {', '.join(left)}"
            os.write(2, f"local_ranks: {who} had ended with exit code 0 before\n".encode())
        ended = signal.strsignal(-code) or f"Signal {-code}" if code < 0 else ""
        how = ended or f"Exited with exit code {code}"
        line = f"local_ranks: error: {socket.gethostname()}: rank {rank}: {how}\n"
        os.write(2, line.encode())
        self.end(code if code > 0 else 128 - code)

    def _copy(self, seconds: float | None) -> None:
        """Copy what there is to read, or comes within so many seconds."""
        for key, _ in self._pipes.select(seconds):
            chunk = os.read(key.fd, 1 << 16)
            if key.data:
                self._put(*key.data, chunk)
                if not chunk:
                    self._pipes.unregister(key.fileobj)

    def _put(self, rank: int, to: int, chunk: bytes) -> None:
        """Copy whole lines to a stream of this process, labelled; at the end the rest."""
        *lines, rest = (self.begun[rank, to] + chunk).split(b"\n")
        if rest and (not chunk or len(rest) > LONGEST):
            lines, rest = [*lines, rest], b""
        self.begun[rank, to] = rest
        label = f"[{rank}]<{STREAMS[to]}>:".encode()
        text = b"".join(label + line + b"\n" for line in lines)
        while text:
            text = text[os.write(to, text) :]


def main(words: list[str]) -> int:
    """Start the ranks and wait for them."""
    number, program = "".join(words[:1]), words[1:]
    if not number.isdecimal() or int(number) < 1 or not program:
        fail(f"usage: {USAGE}")
    ranks = int(number)
    port, claim = take_port()
    with claim:
        try:
            processes = [start(rank, ranks, port, program) for rank in range(ranks)]
        except OSError as error:  # those that were started end with this process
            print(f"cannot start {program[0]}: {error.strerror}", file=sys.stderr)
            return 127
        return Ranks(processes).wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
