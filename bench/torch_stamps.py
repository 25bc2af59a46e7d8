"""What do the time stamps of torch_training cost?

The benchmark's loop with its stamps against the same loop, network and optimiser without: in one
process, three steps of each in turn, in a new order each round. A ratio is the median over rounds
of the CPU seconds with / without, with a 95 % interval of it (order statistics); the bound is the
1 % that stamps may cost, for what the interval begins at: one that holds 1 % says nothing against
it. One thread, synthetic batches. Needs `make torch`, and Linux.

    python -m bench.torch_stamps [--rounds N]
"""

import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, median_interval, run, take_turns
from bench.torch_loop import CASES, Loops, defaults, torch_python

BOUND = 1.01
STEPS = 3  # of a turn: short, so that both loops meet the same disturbances


def cpu_s(process: int) -> float:
    """CPU seconds of a process's first thread, which alone computes; up to date while it waits."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def measure(rounds: int = 100) -> Iterator[dict[str, Any]]:
    """Medians of so many rounds."""
    python = torch_python("bench.torch_stamps")
    for name, params, _ in CASES:
        with ExitStack() as ended:
            loops = Loops(python, "torch_loops.py", defaults() | params, ended)
            jobs = {loop: loops.job(loop, STEPS) for loop in ("own", "bare")}
            seconds = take_turns(jobs, rounds, STEPS, partial(cpu_s, loops.process.pid))
        ratios = [a / b for a, b in zip(seconds["own"], seconds["bare"], strict=True)]
        low, high = median_interval(ratios)
        bare = statistics.median(seconds["bare"])
        yield figure(f"{name}: with stamps / without", statistics.median(ratios), "x")
        yield figure(f"{name}: from, 95 % interval", low, "x", BOUND)
        yield figure(f"{name}: to, 95 % interval", high, "x")
        yield figure(f"{name}: CPU time of a step without stamps", 1e3 * bare, "ms")


if __name__ == "__main__":
    run(measure)
