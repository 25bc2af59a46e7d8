"""What summaries cost: of 10,000 runs, and against the usual way.

(a) The summarise step, as the workflow calls it: seconds, and the memory of all its processes
together. (b) All that `snakemake` does after ten more runs have ended: plan, summary, tables,
figures and report. (c) One run in twenty is also written as text and read with pandas
(bench/lib/pandas_way.py), in pairs with our reading of the same runs. Both must give equal numbers.

    python -m bench.summaries [--repeats 10] [--largest 1024] [--rounds 3]
"""

import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.lib.made_runs import Made, make, times_of
from bench.lib.pairs import figure, ratio, run, take_turns
from bench.lib.pandas_way import read_histories, write_history
from bench.lib.projects import Cost, snakemake, timed
from bench.lib.steps import PROCESSES, take_steps
from scalesweep.core.record import RECORD
from scalesweep.tables.summary import build_summary

EVERY = 20  # of the runs, as text too
COLD_S, PEAK_MB, FASTER, RECORD_KB = 30.0, 1000.0, 20.0, 60.0


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


def chain(made: Made) -> Cost:
    """The cost of all that snakemake does after ten more runs have ended."""
    timed(snakemake("report", "--configfile", made.campaign), made.folder)
    made.write_new()
    return timed(snakemake("--configfile", made.campaign), made.folder, "Writing")


def against_usual(made: Made, rounds: int) -> dict[str, Any]:
    """Seconds to read the same runs in both ways, in turns, after a look at their numbers."""
    points = {
        run["run_id"]: run["point"]
        for experiment in json.loads((made.results / "plan.json").read_text())["experiments"]
        for run in experiment["runs"]
    }
    texts, names = made.folder / "texts", made.done[::EVERY]
    for name in names:
        write_history(texts / name, *times_of(name, points[name]))
    records = [made.runs / name / RECORD for name in names]
    runs = [(texts / name, points[name]["ranks"], 320 * points[name]["ranks"]) for name in names]
    ours, theirs = build_summary(records), read_histories(runs)
    for column in theirs:
        np.testing.assert_allclose(ours[column], theirs[column], rtol=1e-9, err_msg=column)
    cpu: dict[str, list[float]] = {"usual": [], "ours, one process": []}

    def timed_cpu(name: str, job: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            began = time.process_time()
            job()
            cpu[name].append(time.process_time() - began)

        return run

    seconds = take_turns(
        {
            "usual": timed_cpu("usual", lambda: read_histories(runs)),
            "ours": lambda: build_summary(records, processes=PROCESSES),
            "ours, one process": timed_cpu("ours, one process", lambda: build_summary(records)),
        },
        rounds,
    )
    return {
        "runs": len(names),
        "columns": list(theirs),
        "seconds": {name: statistics.median(times) for name, times in seconds.items()},
        "ratio": ratio(seconds["usual"], seconds["ours"]),
        "cpu_ratio_one_process": ratio(cpu["usual"], cpu["ours, one process"]),
    }


def measure(repeats: int = 10, largest: int = 1024, rounds: int = 3) -> Iterator[dict[str, Any]]:
    """Medians of so many rounds; a tenth of 10,010 runs a repeat, of up to so many ranks."""
    with tempfile.TemporaryDirectory() as scratch:
        made = make(Path(scratch) / "large", repeats, largest)
        made.plan()
        cold, peak_mb = peak_of(lambda: take_steps(made, "summarise")["summarise"])
        largest_kb = max((made.runs / i / RECORD).stat().st_size for i in made.done) / 1e3
        usual = against_usual(made, rounds)
        whole = chain(made)
    count = len(made.done)
    yield figure(f"summary of {count:,} runs", cold.wall_s, "s", COLD_S)
    yield figure(f"summary of {count:,} runs, memory of all processes", peak_mb, "MB", PEAK_MB)
    yield figure(f"largest record ({largest:,} ranks)", largest_kb, "kB", RECORD_KB)
    yield figure("everything after 10 new runs: plan to report", whole.wall_s, "s")
    words = f"reading {usual['runs']:,} of them the usual way / ours"
    yield figure(words, usual["ratio"], "x", FASTER, "higher")
    yield figure("  the same in CPU seconds, one process each", usual["cpu_ratio_one_process"], "x")


if __name__ == "__main__":
    run(measure)
