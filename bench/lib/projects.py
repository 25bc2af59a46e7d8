"""Projects to time Snakemake in: copies of this one, and an empty one; and how a call is timed."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
from tests.conftest import make_project

CAMPAIGN = """\
campaign: large
site: {site}
experiments:
  grid:
    benchmark: toy
    axes:
      size: {{from: 1, to: {sizes}, step: 1}}
      rate: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
      threads: [null, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    repeats: {repeats}
    extra: {extra}
"""


class Cost(NamedTuple):
    """What a process and its children took: seconds, CPU seconds, bytes of the largest of them."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def project(folder: Path) -> Path:
    """A copy of this project with the tests' toy benchmark, which takes odd sizes here, too."""
    make_project(folder)
    file = folder / "workflow" / "benchmarks" / "toy" / "benchmark.yaml"
    text = file.read_text()
    rule = "size if size > 500 else 2"
    assert rule in text
    file.write_text(text.replace(rule, "size if size < 0 else 2"))
    return folder


def empty_project(folder: Path) -> Path:
    """A Snakefile with nothing to do; same profile, so same scheduler, settings and plugins."""
    shutil.copytree(ROOT / "profiles", folder / "profiles")
    (folder / "Snakefile").write_text('rule all:\n    input: "there"\n')
    (folder / "there").touch()
    return folder


def campaign(
    folder: Path, name: str, points: int, repeats: int = 1, extra: int = 0, site: str = "local"
) -> str:
    """Write a campaign file into a project; its name. ``points``: hundreds, to 100,000."""
    beside = [{"size": size, "rate": 10, "threads": 10} for size in range(1, extra + 1)]
    text = CAMPAIGN.format(
        site=site, sizes=points // 100, repeats=repeats, extra=json.dumps(beside)
    )
    (folder / name).write_text(text)
    return name


def environment() -> dict[str, str]:
    """As a user has it: Python keeps what it has compiled."""
    return {name: v for name, v in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def snakemake(*words: str) -> list[str]:
    """Command line of a Snakemake call."""
    return [sys.executable, "-m", "snakemake", *words]


def timed(
    command: Sequence[str], folder: Path, says: str = "", until: Callable[[], bool] | None = None
) -> Cost:
    """Run a command and tell what it cost; it has to succeed and to say ``says``.

    With ``until`` it is killed, with all its children, once that is true.
    """
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=output, env=environment(),
            start_new_session=until is not None,
        )  # fmt: skip
        reached = until is not None and _wait_for(until, process.pid)
        wall_s = time.perf_counter() - began
        if reached:
            os.killpg(process.pid, 9)
        _, status, usage = os.wait4(process.pid, 0)
        if until is None:
            wall_s = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read().decode(errors="replace")
    if says not in said or not (reached if until else process.returncode == 0):
        raise SystemExit(f"{folder}: {' '.join(command)}: {process.returncode}\n{said[-3000:]}")
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def _wait_for(condition: Callable[[], bool], pid: int) -> bool:
    """Wait until the condition is true or the process has ended; whether it is true."""
    while not condition():
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return condition()
        time.sleep(0.002)
    return True
