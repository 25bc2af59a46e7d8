"""Launchers in processes of their own, as tests need them."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from scalesweep.compute.job_spec import write_order
from tests.conftest import ROOT
from tests.slurm import cluster


def order(folder: Path, script: str, **changes: Any) -> dict[str, Any]:
    """An order to run a Python script, the words behind it being the run file and its folder."""
    return {
        "run_id": folder.name, "benchmark": "toy", "version": 1,
        "params": {"ranks": 1, "ranks_per_node": 1},
        "repeat": 0, "site": "here", "folder": str(folder), "data": None, "node_local": "/tmp",
        "argv": [sys.executable, "-c", script, "{run_file}", "{out}"], "env": {}, "prologue": [],
        "time_limit_s": 120.0, "asked": None, "profile": "none", **changes,
    }  # fmt: skip


def start(spec: dict[str, Any]) -> "subprocess.Popen[bytes]":
    """Start a launcher."""
    path = Path(spec["folder"]).with_suffix(".order")
    write_order(path, spec)
    script = ROOT / "workflow" / "scripts" / "step.py"
    return subprocess.Popen(
        [sys.executable, script, "launch", "--order", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def alive(pid: int) -> bool:
    """Whether a process has not ended."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def wait_until(true: Callable[[], bool], what: str) -> None:
    """Wait for a condition; fails if it does not come true."""
    assert cluster.wait_until(true, 60), f"{what}: not within 60 s"
