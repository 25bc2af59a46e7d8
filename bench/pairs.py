"""What the benchmarks of this folder share: taking turns, ratios of pairs, and their JSON."""

import json
import random
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def take_turns(
    jobs: Mapping[str, Callable[[], Any]], rounds: int, steps: int = 1
) -> dict[str, list[float]]:
    """Time every job once per round, in a new order each; seconds a step by job.

    Each is done once before, untimed. A job takes `steps` steps.
    """
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for job in jobs.values():
        job()
    for _ in range(rounds):
        for name in random.sample(list(jobs), len(jobs)):
            began = time.perf_counter()
            jobs[name]()
            seconds[name].append((time.perf_counter() - began) / steps)
    return seconds


def ratio(ones: list[float], others: list[float]) -> float:
    """Return the median over rounds of one / other."""
    return statistics.median(a / b for a, b in zip(ones, others, strict=True))


def write_json(report: Any, path: Path | None) -> None:
    """Write what was measured, if a file was named."""
    if path:
        path.write_text(json.dumps(report, indent=1) + "\n")
