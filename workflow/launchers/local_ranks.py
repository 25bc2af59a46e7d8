"""Start the ranks of a program on this host.

    local_ranks.py RANKS PROGRAM [WORD]...

Each rank gets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which
torch.distributed reads (``env://``). Lines come out with the rank in front, as horovodrun's do:
``[1]<stdout>:text``. When a rank fails the others are ended, a line on standard error says which
one it was, and the exit code is its own, 128 + N after signal N. Nothing is started again. Ranks
end with this process, however it ends. Standard library only.
"""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from threading import Thread
from typing import IO

USAGE = "local_ranks.py RANKS PROGRAM [WORD]..."
GRACE_S = 3  # from SIGTERM to SIGKILL
REST_S = 1.0  # for what is still in a pipe that a rank's own children hold open
LONGEST = 1 << 20  # bytes of a line; longer ones are cut
_PR_SET_PDEATHSIG = 1


def free_port() -> int:
    """Return a port on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


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
        preexec_fn=end_with_parent,  # noqa: PLW1509 (no threads yet)
    )  # fmt: skip


def copy(label: str, pipe: IO[bytes], to: int) -> None:
    """Copy whole lines to a stream of this process, labelled, until the pipe is closed."""
    try:
        while line := pipe.readline(LONGEST):
            text = label.encode() + line.rstrip(b"\n") + b"\n"
            while text:
                text = text[os.write(to, text) :]
    except OSError:  # a full disk: no result may come of a log that lacks lines
        os._exit(1)


class Ranks:
    """All ranks, until the last of them has ended."""

    def __init__(self, processes: "list[subprocess.Popen[bytes]]") -> None:
        """Copy what these print; from now on signals end them."""
        self.running = {process.pid: rank for rank, process in enumerate(processes)}
        self.code = 0  # of the first that has failed
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: self.end(128 + number))
        signal.signal(signal.SIGALRM, lambda *_: self.send(signal.SIGKILL))
        self.copies = []
        for rank, each in enumerate(processes):
            streams = [
                (f"[{rank}]<stdout>:", each.stdout, 1),
                (f"[{rank}]<stderr>:", each.stderr, 2),
            ]
            self.copies.append([Thread(target=copy, args=args, daemon=True) for args in streams])
            for thread in self.copies[rank]:
                thread.start()

    def send(self, number: int) -> None:
        """Send a signal to the ranks that still run."""
        for pid in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def end(self, code: int) -> None:
        """End all ranks that still run; ``code`` is what this program ends with."""
        if not self.code:
            self.code = code
            signal.alarm(GRACE_S)
            self.send(signal.SIGTERM)

    def wait(self) -> int:
        """Wait until all ranks have ended, and name the first that failed; the exit code."""
        well, copies = list[str](), list[Thread]()
        while self.running:
            pid, status = os.wait()
            if (rank := self.running.pop(pid, None)) is None:
                continue  # a process of the prologue's, whose shell this program has replaced
            copies += self.copies[rank]
            code, last = os.waitstatus_to_exitcode(status), time.monotonic() + REST_S
            if (code and not self.code) or not self.running:
                for thread in copies:  # what it has said comes before what is said of it
                    thread.join(max(0.0, last - time.monotonic()))
            if code and not self.code:
                if well:
                    who = f"rank{'s' * (len(well) > 1)} {', '.join(well)}"
                    print(f"local_ranks: {who} had ended with exit code 0 before", file=sys.stderr)
                ended = signal.strsignal(-code) or f"Signal {-code}" if code < 0 else ""
                where = f"local_ranks: error: {socket.gethostname()}: rank {rank}"
                print(f"{where}: {ended or f'Exited with exit code {code}'}", file=sys.stderr)
                self.end(code if code > 0 else 128 - code)
            well += [] if code else [str(rank)]
        return self.code


def main(words: list[str]) -> int:
    """Start the ranks and wait for them."""
    number, program = "".join(words[:1]), words[1:]
    if not number.isdecimal() or int(number) < 1 or not program:
        print(f"error: local_ranks: usage: {USAGE}", file=sys.stderr)
        return 2
    ranks, port = int(number), free_port()
    try:
        processes = [start(rank, ranks, port, program) for rank in range(ranks)]
    except OSError as error:  # those that were started end with this process
        print(f"cannot start {program[0]}: {error.strerror}", file=sys.stderr)
        return 127
    return Ranks(processes).wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
