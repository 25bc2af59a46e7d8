"""What summaries of 10,000 runs cost.

The summarise step, as the workflow calls it: seconds, and the memory of all its processes together.

    python -m bench.summaries [--repeats 10] [--largest 1024]
"""

import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.lib.made_runs import make
from bench.lib.pairs import figure, run
from bench.lib.projects import Cost
from bench.lib.steps import take_steps
from scalesweep.core.record import RECORD

COLD_S, PEAK_MB, RECORD_KB = 30.0, 1000.0, 60.0


def peak_of(step: Callable[[], Cost]) -> tuple[Cost, float]:
    """Cost of a step, and the most that its processes had in memory together, in MB.

    Looked at ten times a second; what processes share counts once (Pss).
    """
    sizes = [0.0]
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            sizes.append(sum(map(_memory, _descendants("self"))))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        cost = step()
    finally:
        over.set()
        watcher.join()
    return cost, max(*sizes, cost.peak_bytes) / 1e6


def _descendants(pid: str) -> list[str]:
    below = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = tasks.read_text().split()
        except OSError:
            continue
        for child in children:
            below += [child, *_descendants(child)]
    return below


def _memory(pid: str) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return 1024.0 * next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def measure(repeats: int = 10, largest: int = 1024) -> Iterator[dict[str, Any]]:
    """A tenth of 10,010 runs a repeat, of up to so many ranks."""
    with tempfile.TemporaryDirectory() as scratch:
        made = make(Path(scratch) / "large", repeats, largest)
        made.plan()
        cold, peak_mb = peak_of(lambda: take_steps(made, "summarise")["summarise"])
        largest_kb = max((made.runs / i / RECORD).stat().st_size for i in made.done) / 1e3
    count = len(made.done)
    yield figure(f"summary of {count:,} runs", cold.wall_s, "s", COLD_S)
    yield figure(f"summary of {count:,} runs, memory of all processes", peak_mb, "MB", PEAK_MB)
    yield figure(f"largest record ({largest:,} ranks)", largest_kb, "kB", RECORD_KB)


if __name__ == "__main__":
    run(measure)
