"""The launcher of ranks on one machine: what ranks get, what comes out, and how they end."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scalesweep.compute.failure_cause import Said
from tests.conftest import ROOT
from tests.soak.launching import alive, wait_until

SCRIPT = ROOT / "workflow" / "launchers" / "local_ranks.py"
PROGRAM = r"""
import os, signal, sys, time
rank, (how, *words) = os.environ["RANK"], sys.argv[1:]
print(" ".join(os.environ[f"{name}"] for name in
      ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")))
sys.stderr.write(f"half {rank}" + "\n" * (how == "children"))
sys.stderr.flush()
if how == "children" and rank == "1" and os.fork() == 0:
    time.sleep(3)  # and holds the pipe
    os._exit(0)
if how == "wait":
    print("pid", os.getpid(), flush=True)
    time.sleep(60)
if how in ("exit", "kill", "stubborn"):
    if rank == "1":
        open(words[0] + "1", "w").close()
        while not os.path.exists(words[0]):
            time.sleep(0.01)
        sys.stderr.write("\nwhy\n")
        sys.exit(7) if how == "exit" else os.kill(os.getpid(), signal.SIGKILL)
    if how == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("pid", os.getpid(), flush=True)
    open(words[0], "w").close()
    time.sleep(60)
"""


def start(*words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-S", str(SCRIPT), "2", sys.executable, "-uSc", PROGRAM, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def pid_of(out: str) -> int:
    found = re.search(r"\[0\]<stdout>:pid (\d+)", out)
    assert found
    return int(found[1])


def test_ranks_know_their_place_and_lines_have_their_number() -> None:
    process = start("children")
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    lines = sorted(out.splitlines())
    heads = [f"[{rank}]<stdout>:{rank} {rank} 2 2 127.0.0.1 " for rank in (0, 1)]
    assert [line[: len(head)] for line, head in zip(lines, heads, strict=True)] == heads
    assert len({line.split()[-1] for line in lines}) == 1
    assert sorted(err.splitlines()) == ["[0]<stderr>:half 0", "[1]<stderr>:half 1"]


@pytest.mark.parametrize(
    ("how", "code", "first", "said"),
    [
        ("exit", 7, 7, "Exited with exit code 7"),
        ("kill", 137, -signal.SIGKILL, "Killed"),
        # The other rank does not listen to the signal that is to end it.
        pytest.param("stubborn", 137, -signal.SIGKILL, "Killed", marks=pytest.mark.slow),
    ],
)
def test_the_first_rank_that_fails_ends_all_and_is_named(
    tmp_path: Path, how: str, code: int, first: int, said: str
) -> None:
    process = start(how, str(tmp_path / "go"))
    out, err = process.communicate(timeout=30)
    assert process.returncode == code
    host = os.uname().nodename
    assert err.splitlines()[-2:].count("[0]<stderr>:half 0") == 1  # ended before its line was
    assert err.splitlines()[-2] == f"local_ranks: error: {host}: rank 1: {said}"
    wait_until(lambda: not alive(pid_of(out)), "the end of rank 0")
    log = tmp_path / "stderr.log"
    log.write_text(err)
    said = Said.read(log, labelled=False)
    assert said.ends == [("1", host, first)]
    assert said.of(said.ends[0]) == ["half 1", "why"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_ranks_end_with_their_launcher(number: signal.Signals) -> None:
    process = start("wait")
    assert process.stdout is not None
    out = ""
    while "[0]<stdout>:pid" not in out:
        out += process.stdout.readline()
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == (143 if number == signal.SIGTERM else -number)
    wait_until(lambda: not alive(pid_of(out)), "the end of rank 0")


def test_what_cannot_be_started_is_said() -> None:
    def say(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-S", SCRIPT, *words], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stderr

    assert say("2", "no-such-program") == (
        127, "cannot start no-such-program: No such file or directory\n",
    )  # fmt: skip
    usage = "error: local_ranks: usage: local_ranks.py RANKS PROGRAM [WORD]...\n"
    assert say("0", "true") == say("2") == say("x", "true") == (2, usage)


def test_a_process_of_the_prologue_is_none_of_the_ranks() -> None:
    """The shell that has started it becomes the launcher, and it ends before the ranks."""
    program = [sys.executable, "-Sc", "import time; time.sleep(0.6)"]
    words = shlex.join([sys.executable, "-S", str(SCRIPT), "2", *program])
    script = f"sleep 0.2 &\nexec {words}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_ranks_whose_lines_cannot_be_kept_fail() -> None:
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-S", SCRIPT, "2", sys.executable, "-Sc", "print(1)"]
        assert subprocess.run(words, stdout=full, check=False).returncode == 1
