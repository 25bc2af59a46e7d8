"""Traces of PyTorch's profiler: our numbers beside what was planted, and what reading costs.

Two made ranks of GPUs of which each part is known, with whole microseconds and with nanoseconds;
then one large trace, read in a process of its own.

    python -m bench.traces [--megabytes N]
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, run
from bench.lib.planted_traces import COMPUTATION, COPIES, EXPOSED, OVERLAPPED, STEP, write_planted
from bench.lib.projects import ROOT
from scalesweep.analysis.kineto_stream import read_stream
from scalesweep.analysis.trace_account import TraceAccount, account_of_rank
from scalesweep.compute.log_lines import open_packed

STEPS, LATE_MS = 6, 0.5
MOST_MIB, LEAST_RATE = 400.0, 60.0
_READ = (
    "import resource,sys,time;from bench.traces import account_of;from pathlib import Path;"
    "begin=time.process_time();account_of(Path(sys.argv[1]));"
    "print(time.process_time()-begin,resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
)


def account_of(file: Path) -> TraceAccount:
    """The account of a file."""
    with open_packed(file) as stream:
        account = account_of_rank(read_stream(stream))
    assert account is not None
    return account


def furthest(folder: Path) -> float:
    """The largest difference of any part to what was planted in it, as a share."""
    worst = 0.0
    for kernels in (60, 700):  # their times are whole microseconds, or not
        write_planted(folder / str(kernels), STEPS, kernels, LATE_MS)
        for rank in (0, 1):
            late = rank * LATE_MS
            hidden = max(OVERLAPPED - late, 0.0)
            exposed = EXPOSED + OVERLAPPED - late - hidden
            account = account_of(folder / str(kernels) / f"rank{rank}.json")
            idle = STEP - COMPUTATION - exposed - COPIES
            parts = (STEP, COMPUTATION, exposed, hidden, COPIES, idle)
            for seconds, planted in zip(account.seconds.values(), parts, strict=True):
                worst = max(worst, abs(1e3 * seconds / STEPS / planted - 1))
    return worst


def reading(folder: Path, megabytes: int) -> tuple[float, float, float]:
    """Megabytes of a trace, seconds of CPU to read it, and MiB of the process."""
    write_planted(folder / "large", max(int(megabytes * 1e6 / 289_000), 1), 600, 0.0)
    file = folder / "large" / "rank0.json"
    words = [sys.executable, "-c", _READ, str(file)]
    done = subprocess.run(words, check=True, cwd=ROOT, capture_output=True, text=True)
    seconds, kibibytes = map(float, done.stdout.split())
    return file.stat().st_size / 1e6, seconds, kibibytes / 1024


def measure(megabytes: int = 300) -> Iterator[dict[str, Any]]:
    """Of a trace of so many megabytes."""
    with tempfile.TemporaryDirectory() as name:
        apart = furthest(Path(name))
        size, seconds, mebibytes = reading(Path(name), megabytes)
    yield figure("made traces: largest difference to what was planted", 100 * apart, "%", 0.1)
    yield figure(f"reading {size:.0f} MB: memory of the process", mebibytes, "MiB", MOST_MIB)
    yield figure("reading, MB of text in a second of CPU", size / seconds, "", LEAST_RATE, "higher")


if __name__ == "__main__":
    run(measure)
