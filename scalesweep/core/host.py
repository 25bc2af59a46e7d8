"""Facts about the machine a launcher runs on, read from /proc and /sys (standard library only).

What cannot be read is null, never guessed.
"""

import os
import re
import subprocess
from collections.abc import Sequence
from itertools import groupby, product
from pathlib import Path
from typing import Any

_GPU_FIELDS = ("name", "memory.total", "driver_version")


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _proc_value(path: str, key: str) -> str | None:
    """The first value of a key in a file of lines such as ``model name : EPYC``."""
    match = re.search(rf"^{key}\s*:?\s+(.*\S)", _read(path) or "", re.MULTILINE)
    return match and match[1]


def cpu_set(cpus: set[int]) -> str:
    """A set of CPU numbers in the kernel's list form: ``0-3,7``."""
    groups = groupby(enumerate(sorted(cpus)), lambda pair: pair[1] - pair[0])
    spans = [[cpu for _, cpu in group] for _, group in groups]
    return ",".join(f"{s[0]}-{s[-1]}" if len(s) > 1 else str(s[0]) for s in spans)


def node_names(names: str) -> tuple[str, ...]:
    """The nodes of a list as Slurm abbreviates it (``node[1-3,07],login``), in their order.

    Not by ``scontrol show hostnames``: that needs Slurm's configuration.
    """
    nodes: list[str] = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", names):
        texts = re.split(r"\[(.*?)\]", part)  # every other one is of brackets
        of = [_numbers(text) if place % 2 else [text] for place, text in enumerate(texts)]
        nodes += map("".join, product(*of))
    return tuple(nodes)


def _numbers(ranges: str) -> list[str]:
    """What brackets stand for: numbers that keep the leading zeros of the first."""
    pairs = (piece.split("-") for piece in ranges.split(","))
    return [f"{n:0{len(of[0])}}" for of in pairs for n in range(int(of[0]), int(of[-1]) + 1)]


def _gpus() -> list[dict[str, str]]:
    query = ["nvidia-smi", f"--query-gpu={','.join(_GPU_FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        text = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [line.split(", ") for line in text.splitlines() if line.strip()]
    return [dict(zip(_GPU_FIELDS, row, strict=False)) for row in rows]


def host_facts() -> dict[str, Any]:
    """CPU model, cores, affinity, frequency governor, memory (bytes), kernel, GPUs."""
    memory = _proc_value("/proc/meminfo", "MemTotal")
    governor = _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return {
        "host": os.uname().nodename,
        "cpu_model": _proc_value("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "affinity": cpu_set(os.sched_getaffinity(0)),
        "governor": governor,
        "memory_bytes": int(memory.split()[0]) * 1024 if memory else None,
        "kernel": os.uname().release,
        "gpus": _gpus(),
    }


def git_state(folder: Path, untracked: Sequence[str] = ()) -> dict[str, Any] | None:
    """Commit and whether tracked files differ from it; None outside a repository.

    In the folders ``untracked`` a file that is in no commit counts as a difference too.
    """

    def git(*words: str) -> str:
        # Without the optional lock: `git status` refreshes the index under one, which a launcher
        # that is killed would leave behind in the user's repository.
        command = ["git", "--no-optional-locks", "-C", str(folder), *words]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=20, check=True
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        if untracked and not changed:
            changed = git("status", "--porcelain", "--", *untracked)
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(changed)}
    except (OSError, subprocess.SubprocessError):
        return None


def oom_kills() -> int | None:
    """Processes this kernel has killed for lack of memory since boot."""
    count = _proc_value("/proc/vmstat", "oom_kill")
    return int(count) if count else None
