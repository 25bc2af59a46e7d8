"""One rank of bench/gather.py: gather made-up times from all ranks, and write them on rank 0.

gather_ranks.py REPORT FOLDER RANKS VALUES_PER_RANK [VALUES_PER_RANK ...]
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "workflow" / "benchmarks"))

import numpy as np

from harness import ranks
from harness.phases import Phases
from harness.result import write_result

STEPS, RANKS = 1000, 1024
NONE = ("versions", "variables", "work", "metrics", "notes")


def memory(field: str) -> int:
    """Bytes that the kernel tells of this process: VmRSS is now, VmHWM the most so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def forget_peak() -> None:
    """Reset VmHWM."""
    Path("/proc/self/clear_refs").write_text("5")


def main() -> None:
    """Gather once for every number of values; rank 0 writes the report."""
    report, folder = Path(sys.argv[1]), Path(sys.argv[2])
    ranks.use("tensorflow")
    ranks.start(int(sys.argv[3]))
    draw = np.random.default_rng(ranks.rank())
    measured = []
    for count in map(int, sys.argv[4:]):
        mine = draw.lognormal(-2.0, 0.1, count)
        ranks.barrier()
        forget_peak()
        before, began = memory("VmRSS"), time.perf_counter()
        whole = ranks.gather(mine)
        seconds = time.perf_counter() - began
        growth = ranks.gather_json(memory("VmHWM") - before)
        measurement = {"values": count, "seconds": seconds, "growth_bytes": growth}
        if whole is not None and whole.size == STEPS * RANKS:
            # As from 1,024 ranks: there are as many values, and the shape makes no difference.
            measurement |= written(whole.reshape(STEPS, RANKS), folder)
        measured.append(measurement)
        del mine, whole
    if ranks.rank() == 0:
        report.write_text(json.dumps({"piece_bytes": ranks.GATHER_BYTES, "gathered": measured}))
    ranks.stop()


def written(times: np.ndarray, folder: Path) -> dict[str, float]:
    """Write a result with these step times; its size and what writing took."""
    forget_peak()
    before, began = memory("VmRSS"), time.perf_counter()
    none: dict[str, Any] = {name: {} for name in NONE}
    write_result(folder, {"step_times": times}, phases=Phases(), ranks=[], **none)
    seconds = time.perf_counter() - began
    growth = memory("VmHWM") - before
    with np.load(folder / "samples.npz") as arrays:
        np.testing.assert_array_equal(arrays["step_times"], times)
    size = (folder / "samples.npz").stat().st_size
    return {
        "raw_bytes": times.nbytes,
        "file_bytes": size,
        "write_seconds": seconds,
        "write_growth_bytes": growth,
    }


if __name__ == "__main__":
    main()
