"""What is at work in a campaign: launchers, scripts, ranks and the phase they are in."""

import contextlib
import subprocess
from functools import partial
from pathlib import Path

import psutil

from scalesweep.core.record import read_failure
from tests.soak.campaign import RANKS, number_of, wait_until

# What belonged to something that was killed is gone so soon.
GONE_S = 20.0


def launcher_of(snakemake: "subprocess.Popen[bytes]") -> psutil.Process | None:
    """The launcher that a Snakemake has at work."""
    with contextlib.suppress(psutil.Error):
        for process in psutil.Process(snakemake.pid).children():
            if "--order" in process.cmdline():
                return process
    return None


def run_of(launcher: psutil.Process) -> Path:
    """Folder of a launcher's run, as seen from its working folder."""
    words = launcher.cmdline()
    return Path(words[words.index("--order") + 1]).parent


def words_of(process: psutil.Process) -> str:
    """The command line of a process, empty if it is gone."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def child_of(launcher: psutil.Process, name: str) -> psutil.Process | None:
    """A child of a launcher: `mpirun`, `tee`, or the `guard`, which is a fork with its words."""
    for child in launcher.children():
        words = child.cmdline()
        named = any(Path(word).stem == name for word in words[:2])
        if words == launcher.cmdline() if name == "guard" else named:
            return child
    return None


def script_of(snakemake: "subprocess.Popen[bytes]", name: str) -> psutil.Process | None:
    """A script that a Snakemake has at work."""
    with contextlib.suppress(psutil.Error):
        for process in psutil.Process(snakemake.pid).children():
            if any(word.endswith(f"scripts/{name}.py") for word in process.cmdline()[:2]):
                return process
    return None


def last_attempt(folder: Path) -> Path | None:
    return max(folder.glob("attempt-*"), key=number_of, default=None)


def phase_of(folder: Path) -> str:
    """The phase that rank 0 of a run's last attempt is in; empty before the first."""
    attempt = last_attempt(folder)
    words = told(attempt, 0) if attempt else []
    return words[-1][0] if words else ""


def told(attempt: Path, rank: int) -> list[list[str]]:
    """Phase, process id and start time, for each phase that a rank has reached."""
    try:
        lines = (attempt / f"rank-{rank}.txt").read_text().splitlines()
    except OSError:
        return []
    return [line.split() for line in lines if len(line.split()) == 3]


def await_end(launcher: psutil.Process, attempt: Path | None) -> None:
    """Wait for the end of a launcher, and of the ranks of an attempt of its."""
    wait_until(lambda: gone(launcher), "the end of a launcher", GONE_S)
    for rank in range(RANKS if attempt else 0):
        assert attempt is not None
        for _, pid, _ in told(attempt, rank)[:1]:
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(int(pid))
                wait_until(partial(gone, process), f"{attempt}: the end of rank {rank}", GONE_S)


def gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


def outcome_of(folder: Path, attempt: Path | None) -> str:
    """What has become of the run whose attempt was hit."""
    if (folder / "record.json").exists():
        return "done all the same"
    failure = read_failure(folder)
    if failure is None or attempt is None or failure["attempt"] != number_of(attempt):
        return "pending"
    return f"failed: {failure['cause']}: {failure['detail']}"
