"""What sampling power costs: slowdown of the program, CPU time of the sampler, and the launch.

(a) A CPU-bound program, one process on each core, with and without a sampler that reads a made
sysfs tree of 14 counters ten times a second, in turn and in a new order each round: ratio of the
program's own seconds, with / without; the median over rounds, and that of the fastest of either,
which a busy machine disturbs less. (b) CPU seconds of a sampler to start, and for each sample.
(c) Milliseconds by which a launch is longer where there is nothing to read, and where there is.

    python -m bench.power [--rounds N] [--interval S]
"""

import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, ratio, run

ROOT = Path(__file__).resolve().parents[1]
from scalesweep.compute.job_spec import Order, PowerOrder
from scalesweep.compute.power_sampling import Sampling
from tests.fakes.sysfs import described, write, zone

SOURCES = ["rapl", "pm_counters", "hwmon"]
# As many processes as cores, each with the same work; prints seconds from the first to the last.
PROGRAM = """
import os, sys, time
begin = time.perf_counter()
children = []
for _ in os.sched_getaffinity(0):
    child = os.fork()
    if child == 0:
        total = 0
        for i in range(int(sys.argv[1])):
            total += i * i
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
print(time.perf_counter() - begin)
"""
PROGRAM_S = 0.7


def make_tree(root: Path) -> None:
    """Two packages with their parts, a node's pm_counters and two sensors."""
    for package in range(2):
        zone(root, f"intel-rapl:{package}", f"package-{package}")
        for number, name in enumerate(("core", "uncore", "dram")):
            zone(root, f"intel-rapl:{package}/intel-rapl:{package}:{number}", name)
    for name in ("energy", "cpu_energy", "memory_energy", "accel0_energy"):
        write(root / "cray" / "pm_counters" / name, "1234567 J 1582312345678901 us")
    for number in range(2):
        write(root / "class" / "hwmon" / f"hwmon{number}" / "name", "amdgpu")
        write(root / "class" / "hwmon" / f"hwmon{number}" / "power1_average", 250_000_000)


def order(sysfs: Path, interval_s: float) -> Order:
    """A launcher's order of a run with samplers."""
    power = PowerOrder(interval_s=interval_s, sources=SOURCES, sysfs=str(sysfs), nodes=1)
    return Order(
        run_id="run", profile="none", benchmark="bench", version=1,
        params={"ranks": 1, "ranks_per_node": 1}, repeat=0,
        site="here", folder="run", data=None, node_local="/tmp", argv=[], env={}, prologue=[],
        time_limit_s=60.0, asked=None, power=power,
    )  # fmt: skip


def program_seconds(loops: int) -> float:
    """Seconds of the CPU-bound program, as it says itself."""
    words = [sys.executable, "-c", PROGRAM, str(loops)]
    return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def sampled_loop(sysfs: Path, interval_s: float, loops: int) -> float:
    """The same while a sampler runs."""
    with tempfile.TemporaryDirectory() as work, Sampling(order(sysfs, interval_s), Path(work)):
        return program_seconds(loops)


def sampler_cpu(sysfs: Path, samples: int) -> tuple[float, int]:
    """CPU seconds of a sampler for about so many samples, 10 ms apart, and how many they were."""
    with tempfile.TemporaryDirectory() as work:
        with Sampling(order(sysfs, 0.01), Path(work)):
            time.sleep(samples * 0.01)
        said = described(Path(work))
    return said["cpu_s"], said["samples"]


def launch_ms(sysfs: Path, count: int) -> float:
    """Median milliseconds of starting and stopping, without a program."""
    taken = []
    for _ in range(count):
        with tempfile.TemporaryDirectory() as work:
            begin = time.perf_counter()
            with Sampling(order(sysfs, 1.0), Path(work)):
                pass
            taken.append(1000 * (time.perf_counter() - begin))
    return statistics.median(taken)


def measure(rounds: int = 15, interval: float = 0.1) -> Iterator[dict[str, Any]]:
    """Of so many rounds, with a sample each so many seconds."""
    with tempfile.TemporaryDirectory() as folder:
        made, empty = Path(folder) / "made", Path(folder) / "empty"
        make_tree(made)
        empty.mkdir()
        loops = int(2_000_000 * PROGRAM_S / program_seconds(2_000_000))
        alone, sampled = [], []
        for _ in range(rounds):
            for way in random.sample((True, False), 2):
                if way:
                    sampled.append(sampled_loop(made, interval, loops))
                else:
                    alone.append(program_seconds(loops))
        yield figure("a program with a sampler / alone", ratio(sampled, alone), "x")
        yield figure("the same, of the fastest", min(sampled) / min(alone), "x")
        few, many = sampler_cpu(made, 20), sampler_cpu(made, 300)
        per_sample = (many[0] - few[0]) / (many[1] - few[1])
        yield figure("a sampler's CPU per sample", 1000 * per_sample, "ms")
        yield figure("a launch with nothing to read, more", launch_ms(empty, 200), "ms")
        yield figure("a launch with a sampler, more", launch_ms(made, 10), "ms")


if __name__ == "__main__":
    run(measure)
