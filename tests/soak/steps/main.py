"""The soak's program: ranks in step, each telling in `rank-<n>.txt` which phase it is in."""

import io
import json
import os
import random
import sys
import time
from pathlib import Path

PHASES = ("import", "init", "warmup", "timed", "teardown")
EPOCHS = 3
PIECES = 8

rank, ranks = int(os.environ["STEPS_RANK"]), int(os.environ["STEPS_RANKS"])
run = json.loads(Path(sys.argv[2]).read_text())
out, params = Path(run["out"]), run["params"]
spans: list[tuple[str, float]] = []


def start_time(pid: int) -> str:
    """When a process was started, in ticks since boot; empty if it is gone."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else fields[18]


def lines(path: Path) -> list[list[str]]:
    """What a rank has told so far: phase, pid and start time."""
    try:
        return [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return []


def alone() -> None:
    """Leave `beside.txt` if a rank of any other attempt is alive: this one is disturbed."""
    for path in out.parents[1].glob("*/attempt-*/rank-*.txt"):
        told = lines(path)
        if path.parent != out and told and start_time(int(told[0][1])) == told[0][2]:
            with (out / "beside.txt").open("a") as file:
                file.write(f"{path.relative_to(out.parents[1])}, in {told[-1][0]}\n")


def held() -> bool:
    """Whether a test wants no more records than the file ``hold`` says (in Snakemake's folder)."""
    try:
        most = int(Path("hold").read_text())
    except (OSError, ValueError):
        return False
    return len(list(out.parents[1].glob("*/record.json"))) >= most


def enter(phase: str) -> None:
    """Tell of a phase, and wait until every rank is in it, as collective operations do."""
    with (out / f"rank-{rank}.txt").open("a") as file:
        file.write(f"{phase} {os.getpid()} {start_time(os.getpid())}\n")
    for other in range(ranks):
        while not any(told[0] == phase for told in lines(out / f"rank-{other}.txt")):
            time.sleep(0.002)
    while Path(f"hold-{phase}").exists() or held():  # a test wants it to wait
        time.sleep(0.01)
    spans.append((phase, time.time()))


def write_slowly(path: Path, content: bytes) -> None:
    """Write under the last name, piece by piece: who dies here leaves half a file."""
    size = len(content) // PIECES + 1
    with path.open("wb") as file:
        for start in range(0, len(content), size):
            file.write(content[start : start + size])
            file.flush()
            time.sleep(params["pause"] / PIECES)


def result() -> tuple[bytes, bytes]:
    """samples.npz and native.json; the times follow from the point and the repeat alone."""
    import numpy as np

    epoch, number = np.arange(EPOCHS)[:, None], np.arange(ranks)[None, :]
    local = 0.1 * params["size"] + 0.01 * number + 0.001 * epoch + 0.0001 * run["repeat"]
    arrays = {"local_times": local, "global_times": np.repeat(local.max(1)[:, None], ranks, 1)}
    samples = io.BytesIO()
    np.savez(samples, **arrays)
    ends = [*(begin for _, begin in spans[1:]), time.time()]
    facts = {"host": os.uname().nodename, "affinity": "0", "pid": os.getpid()}
    native = {
        "phases": {phase: end - begin for (phase, begin), end in zip(spans, ends, strict=True)},
        "metrics": {},
        "work": {"samples_per_epoch": params["size"] * ranks, "bytes_per_epoch": 1000 * ranks},
        "resources": {"hosts": [facts["host"]] * ranks, "slurm_nodes": [None] * ranks},
        "environment": {"ranks": [facts] * ranks, "versions": {}, "variables": {}},
        "notes": {},
    }
    return samples.getvalue(), json.dumps(native).encode()


for phase in PHASES:
    enter(phase)
    if rank == 0 and phase == "init":
        alone()
    if rank == 0 and phase == "teardown":
        alone()
        for name, content in zip(("samples.npz", "native.json"), result(), strict=True):
            write_slowly(out / name, content)
    time.sleep(params["pause"] * random.uniform(0.8, 1.2))
