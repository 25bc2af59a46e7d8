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
from collections.abc import Iterator
from typing import NoReturn

USAGE = "local_ranks.py RANKS PROGRAM [WORD]..."
# Above those of harness/rendezvous.py, below those that Linux gives to connections.
PORTS = range(29973, 32768)
GRACE_S = 3.0  # from SIGTERM to SIGKILL
REST_S = 1.0  # for what is still in a pipe that a rank's own children hold open
LONGEST = 1 << 20  # bytes of a line; longer ones are cut
_PR_SET_PDEATHSIG = 1


def fail(message: str) -> NoReturn:
    """End with one line on standard error."""
    print(f"error: local_ranks: {message}", file=sys.stderr)
    sys.exit(2)


def take_port() -> tuple[int, socket.socket]:
    """Return a free port, and what keeps other launchers from taking it while it is open.

    Ranks import PyTorch for seconds before the first of them listens there.
    """
    ports = list(PORTS)
    random.shuffle(ports)
    for port in ports:
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


class Rank:
    """A rank: its process, and what it has begun to print."""

    def __init__(self, rank: int, ranks: int, port: int, words: list[str]) -> None:
        """Start it; raises OSError if it cannot be started."""
        self.rank = rank
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks}
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        environ = {name: str(value) for name, value in {**place, **meeting}.items()}
        # Gloo would look up the name of this host, which need not have an address.
        environ = {"GLOO_SOCKET_IFNAME": "lo", **os.environ, **environ}
        parent = os.getpid()

        def end_with_parent() -> None:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

        self.process = subprocess.Popen(
            words, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, preexec_fn=end_with_parent,  # noqa: PLW1509 (no threads)
        )  # fmt: skip
        self.begun = {1: b"", 2: b""}

    def copy(self, source: int, target: int) -> bool:
        """Copy whole lines to a stream of this process, labelled; False at the end."""
        chunk = os.read(source, 1 << 16)
        self._put(target, chunk)
        return bool(chunk)

    def end(self) -> None:
        """Copy what it has begun and not ended."""
        for target in self.begun:
            self._put(target, b"")

    def _put(self, target: int, chunk: bytes) -> None:
        *lines, rest = (self.begun[target] + chunk).split(b"\n")
        if rest and (not chunk or len(rest) > LONGEST):
            lines, rest = [*lines, rest], b""
        self.begun[target] = rest
        label = f"[{self.rank}]<{'stdout' if target == 1 else 'stderr'}>:".encode()
        text = b"".join(label + line + b"\n" for line in lines)
        while text:
            text = text[os.write(target, text) :]


class Ranks:
    """All ranks, until the last of them has ended."""

    def __init__(self, ranks: list[Rank]) -> None:
        """Watch these; from now on signals end them."""
        self.ranks = ranks
        self.code = 0  # of the first that has failed
        self.kill_at: float | None = None
        self._woken, writer = os.pipe()
        for end in (self._woken, writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: self.end(128 + number))
        self._pipes = selectors.DefaultSelector()
        self._pipes.register(self._woken, selectors.EVENT_READ)
        for rank in ranks:
            for target, stream in ((1, rank.process.stdout), (2, rank.process.stderr)):
                assert stream is not None
                self._pipes.register(stream.fileno(), selectors.EVENT_READ, (rank, target))

    def end(self, code: int, number: int = signal.SIGTERM) -> None:
        """End all ranks that still run; ``code`` is what this program ends with."""
        self.code = self.code or code
        if self.kill_at is None:
            self.kill_at = time.monotonic() + GRACE_S
        for rank in self.running():
            rank.process.send_signal(number)

    def running(self) -> Iterator[Rank]:
        """The ranks that have not ended."""
        return (rank for rank in self.ranks if rank.process.poll() is None)

    def wait(self) -> int:
        """Copy what ranks print until all have ended; the exit code."""
        seen: set[int] = set()
        while True:
            for rank in self.ranks:
                code = rank.process.poll()
                if code is not None and rank.rank not in seen:
                    seen.add(rank.rank)
                    if code and not self.code:
                        self.copy(0)  # what it has said comes before what is said of it
                        left = [each.rank for each in self.ranks if each.process.poll() == 0]
                        self._tell(rank, code, left)
            if len(seen) == len(self.ranks):
                break
            left_s = None if self.kill_at is None else self.kill_at - time.monotonic()
            if left_s is not None and left_s <= 0:
                self.end(0, signal.SIGKILL)
                left_s = None
            self.copy(left_s)
        until = time.monotonic() + REST_S
        while len(self._pipes.get_map()) > 1 and (left_s := until - time.monotonic()) > 0:
            self.copy(left_s)
        for rank in self.ranks:
            rank.end()
        return self.code

    def copy(self, seconds: float | None) -> None:
        """Copy what there is to read, or comes within so many seconds."""
        for key, _ in self._pipes.select(seconds):
            if key.data is None:
                os.read(self._woken, 1 << 16)
            elif not key.data[0].copy(key.fd, key.data[1]):
                self._pipes.unregister(key.fd)

    def _tell(self, rank: Rank, code: int, left: list[int]) -> None:
        """Say which rank failed first and which had ended well before, and end the others."""
        if left:
            who = f"rank{'s' * (len(left) > 1)} {', '.join(map(str, left))}"
            os.write(2, f"local_ranks: {who} had ended with exit code 0 before\n".encode())
        ended = signal.strsignal(-code) or f"Signal {-code}" if code < 0 else ""
        how = ended or f"Exited with exit code {code}"
        line = f"local_ranks: error: {socket.gethostname()}: rank {rank.rank}: {how}\n"
        os.write(2, line.encode())
        self.end(code if code > 0 else 128 - code)


def main(words: list[str]) -> int:
    """Start the ranks and wait for them."""
    number, program = "".join(words[:1]), words[1:]
    if not number.isdecimal() or int(number) < 1 or not program:
        fail(f"usage: {USAGE}")
    ranks = int(number)
    port, claim = take_port()
    with claim:
        started: list[Rank] = []
        try:
            for rank in range(ranks):
                started.append(Rank(rank, ranks, port, program))
        except OSError as error:
            for rank_ in started:
                rank_.process.kill()
            print(f"cannot start {program[0]}: {error.strerror}", file=sys.stderr)
            return 127
        return Ranks(started).wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
