"""Nothing that a launcher has started outlives it, and nothing is measured beside what did."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scalesweep.compute.launcher import launch
from scalesweep.compute.program import stop_on_signal
from scalesweep.core.orphans import MARK, end_orphans, mark, marked
from scalesweep.core.record import read_failure
from tests.conftest import ROOT
from tests.soak.launching import alive, order, start, wait_until

# A rank with a session of its own that does not listen to SIGTERM, and what has started it.
RANK = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); "
STUBBORN = f"""
import subprocess, sys, time
words = [sys.executable, "-c", {RANK + "time.sleep(600)"!r}]
rank = subprocess.Popen(words, start_new_session=True, stdout=subprocess.PIPE)
rank.stdout.readline()
with open(sys.argv[2] + "/pid", "w") as file:
    file.write(f"{{rank.pid}}\\n")
time.sleep(600)
"""


def rank_of(work: Path) -> int:
    """Process id of the stubborn rank, once it is there."""
    path = work / "pid"
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), "the program's start")
    return int(path.read_text())


def test_leftovers_of_a_killed_launcher_end_before_the_next_run(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    launcher = start(order(runs / "a", STUBBORN))
    rank = rank_of(runs / "a" / "attempt-1")
    launcher.kill()
    launcher.communicate(timeout=30)
    assert alive(rank)
    # Another run of the folder: its program finds nothing beside itself.
    script = f"import os, sys; sys.exit(3 if os.path.exists('/proc/{rank}/exe') else 4)"
    assert launch(order(runs / "b", script), ROOT) == 1
    failure = read_failure(runs / "b")
    assert failure is not None and failure["exit_code"] == 4


class CalledOffAgain(subprocess.Popen[bytes]):
    """A program whose launcher is told once more to stop while it waits for it."""

    def _try_wait(self, flags: int) -> tuple[int, int]:
        signal.raise_signal(signal.SIGTERM)
        return super()._try_wait(flags)  # type: ignore[misc,no-any-return]


@pytest.mark.timeout(60)
def test_a_launcher_that_is_called_off_twice_ends_its_program(tmp_path: Path) -> None:
    # Of a Snakemake that is killed the kernel sends a signal for each thread.
    program = CalledOffAgain(["sleep", "600"], start_new_session=True)
    with (
        pytest.raises(SystemExit, match=str(128 + signal.SIGTERM)),
        stop_on_signal(program, tmp_path / "runs" / "a" / "attempt-1"),
    ):
        signal.raise_signal(signal.SIGTERM)
    assert program.returncode == -signal.SIGTERM


def test_only_what_has_lost_its_launcher_is_ended(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    work = runs / "a" / "attempt-1"
    here = mark(work)
    gone = here.replace(f"|{os.getpid()}|", f"|{_gone()}|")
    marks = {
        "of a launcher at work": here,
        "of another host": gone.replace(os.uname().nodename, "elsewhere", 1),
        "of another folder": gone.replace(str(runs), str(tmp_path / "more")),
        "orphan": gone,
    }
    processes = {
        name: subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: value})
        for name, value in marks.items()
    }
    try:
        wait_until(lambda: len(marked(runs)) == 2, "two that belong to this folder")
        end_orphans(runs)
        assert processes.pop("orphan").wait(10) == -signal.SIGKILL
        assert all(process.poll() is None for process in processes.values())
        (left,) = marked(runs)
        assert (left.launcher, left.launcher_alive, left.run_id) == (os.getpid(), True, "a")
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def _gone() -> int:
    """Id of a process that has ended."""
    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as process:
        return process.pid
