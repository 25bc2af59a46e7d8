"""What stamps of steps cost (docs/reference/stamps.md): to read those of a run, and to print them.

Reading: 1,000 steps of 64 ranks with 6 spans each, in one log, into arrays on disk. Printing: the
process's CPU time a step, its writing thread included, less that of the same loop without stamps,
in turn; as a share of a step of 100 ms.

    python -m bench.spans_protocol [--rounds N]
"""

import importlib.util
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.lib.pairs import figure, run
from scalesweep.compute.job_spec import StampsOrder
from scalesweep.compute.stamp_arrays import read_stamps
from scalesweep.core.record import write_npz
from tests.fakes.stamps import UNIX
from tests.fakes.stamps import line as stamp

STEPS, RANKS = 1000, 64
SPANS = ("input", "forward", "backward", "communication", "optimizer", "logging")
READ_S, STEP_S, SHARE = 1.0, 0.1, 0.002
PRINTED = 5000  # steps in a round
MODULE = Path(__file__).parents[1] / "resources" / "spans" / "scalesweep_spans.py"


def write_log(path: Path) -> None:
    """The log of the run that is read."""
    rng = np.random.default_rng(1)
    seconds = rng.uniform(0.01, 0.02, (STEPS, RANKS, len(SPANS))).round(7)
    with path.open("w") as file:
        for step in range(STEPS):
            for rank in range(RANKS):
                spans = dict(zip(SPANS, seconds[step, rank].tolist(), strict=True))
                begin = UNIX + 0.1 * step
                file.write(
                    stamp(rank=rank, step=step, begin=begin, s=0.0995, spans=spans, samples=64)
                )


def reading(folder: Path, rounds: int) -> tuple[list[float], list[float]]:
    """Wall and CPU seconds of each reading."""
    write_log(folder / "stdout.log")
    order: StampsOrder = {"source": "stdout", "warmup": 10}
    walls, cpus = [], []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        stamped = read_stamps(order, folder, RANKS, False)
        write_npz(folder / "samples.npz", stamped.arrays)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        if stamped.warnings or stamped.arrays["step_times"].shape != (STEPS - 10, RANKS):
            raise RuntimeError(f"the log was not read as it was written: {stamped.warnings}")
    return walls, cpus


def printing(folder: Path, rounds: int) -> list[float]:
    """CPU seconds a step that stamps add, by round."""
    os.environ["SCALESWEEP_SPANS"] = str(folder)
    spec = importlib.util.spec_from_file_location("scalesweep_spans", MODULE)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{MODULE} cannot be imported")
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    spans = module.Spans()
    costs = []
    for _ in range(rounds):
        used: list[float] = []
        for batches in (iter(range(PRINTED)), spans.steps(range(PRINTED), samples=64, epoch=0)):
            began = time.process_time()
            _loop(batches, spans.at if used else None)
            spans.flush()
            used.append(time.process_time() - began)
        costs.append((used[1] - used[0]) / PRINTED)
    return costs


def _loop(batches: Iterator[int], at: Any) -> None:
    for _ in batches:
        for name in SPANS[1:]:
            if at is not None:
                at(name)


def measure(rounds: int = 9) -> Iterator[dict[str, Any]]:
    """Medians of so many rounds."""
    with tempfile.TemporaryDirectory() as name:
        walls, cpus = reading(Path(name), rounds)
        printed = statistics.median(printing(Path(name), rounds))
    size = f"{STEPS:,} steps x {RANKS} ranks x {len(SPANS)} spans"
    yield figure(f"read {size}", statistics.median(walls), "s")
    yield figure(f"read {size}, CPU", statistics.median(cpus), "s", READ_S)
    yield figure("print a step of 6 spans, CPU", 1e6 * printed, "us")
    yield figure("print a step, share of 100 ms", 100 * printed / STEP_S, "%", 100 * SHARE)


if __name__ == "__main__":
    run(measure)
