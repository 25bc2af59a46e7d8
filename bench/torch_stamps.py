"""What do the time stamps of torch_training cost?

The benchmark's loop with its stamps against the same loop, network and optimiser without: in one
process, three steps of each in turn, in a new order each round. A ratio is the median over rounds
of the CPU seconds with / without, with a 95 % interval of it (order statistics); the bound is the
1 % that stamps may cost, for what the interval begins at: one that holds 1 % says nothing against
it. One thread, synthetic batches. Needs `make torch`, and Linux.

    python -m bench.torch_stamps [--json FILE] [--rounds N]
"""

import argparse
import statistics
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, line, median_interval, take_turns, write_json
from bench.torch_loop import CASES, Loops, defaults, torch_python

BOUND = 1.01
STEPS = 3  # of a turn: short, so that both loops meet the same disturbances


def cpu_s(process: int) -> float:
    """CPU seconds of a process's first thread, which alone computes; up to date while it waits."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def main() -> int:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=100)
    arguments = parser.parse_args()
    python = torch_python("bench.torch_stamps")
    figures: list[dict[str, Any]] = []
    cases: list[dict[str, Any]] = []
    for name, params, _ in CASES:
        with ExitStack() as ended:
            loops = Loops(python, "torch_loops.py", defaults() | params, ended)
            jobs = {loop: loops.job(loop, STEPS) for loop in ("own", "bare")}
            seconds = take_turns(jobs, arguments.rounds, STEPS, partial(cpu_s, loops.process.pid))
        ratios = [a / b for a, b in zip(seconds["own"], seconds["bare"], strict=True)]
        low, high = median_interval(ratios)
        cases.append({"case": name, "rounds": seconds, "interval": [low, high]})
        median = statistics.median(seconds["bare"])
        first = len(figures)
        ratio = statistics.median(ratios)
        figures.append(figure(f"{name}: with stamps / without", ratio, "x"))
        figures.append(figure(f"{name}: from, 95 % interval", low, "x", BOUND))
        figures.append(figure(f"{name}: to, 95 % interval", high, "x"))
        figures.append(figure(f"{name}: CPU time of a step without stamps", 1e3 * median, "ms"))
        for row in figures[first:]:
            print(line(row).replace(f"{row['value']:9.2f}", f"{row['value']:9.3f}"), flush=True)
    write_json({"figures": figures, "cases": cases}, arguments.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
