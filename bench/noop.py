"""What Snakemake costs where little or nothing is to be done, against an empty Snakefile.

Pairs in one run, in turn: a call in a project whose campaign of N made-up runs is all finished,
and the same call with an empty Snakefile that finds the same profiles and plugins. Wall seconds,
and CPU seconds, which a busy machine disturbs less; medians of the pairs' ratios or differences.

(a) `snakemake -n` and `snakemake` with 10,000 finished runs. (b) Parsing alone (`--list-rules`),
as `snakemake` does it and as each job of a cluster does. (c) Ten points more: until the first
job's shell is there, against a whole call with the empty Snakefile. Every run is a point of its
own: repeats of a point would cost less. `tests/acceptance/test_noop.py` holds the bound of (a).

    python -m bench.noop [--rounds N] [--runs N]
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, run
from bench.lib.projects import Cost, empty_project, snakemake, timed
from scalesweep.core.orphans import marked
from tests.acceptance.made import Program, write_campaign
from tests.conftest import Project, make_project

NEW = 10
NOTHING = "Nothing to be done"
# At this many runs.
BOUND_RUNS, BOUND, START_BOUND, PARSE_BOUND_S = 10_000, 1.5, 2.0, 0.3
MB = 1e6
PROGRAM = Program(
    "finished", {"size": 1}, {"rate": {"unit": "items/s", "better": "higher", "scope": "total"}}
)
# Starts the new runs of (c), which are killed at once.
SITE = "site: made\nnodes: 4\ncores_per_node: 64\nlaunch: {single: [sleep], multi: [sleep]}\n"

Pairs = Sequence[tuple[Cost, Cost]]
Figures = list[dict[str, Any]]


def in_turn(ours: Callable[[], Cost], empty: Callable[[], Cost], rounds: int) -> Pairs:
    """Pairs of costs, the one first and the other first in turn; each is done once before."""
    ours()
    empty()
    pairs = []
    for turn in range(rounds):
        if turn % 2:
            here, there = ours(), empty()
        else:
            there, here = empty(), ours()
        pairs.append((here, there))
    return pairs


def medians(pairs: Pairs) -> dict[str, float]:
    """Medians over pairs."""

    def median(value: Callable[[Cost, Cost], float]) -> float:
        return statistics.median(value(here, there) for here, there in pairs)

    return {
        "seconds": median(lambda here, _: here.wall_s),
        "empty_seconds": median(lambda _, there: there.wall_s),
        "ratio": median(lambda here, there: here.wall_s / there.wall_s),
        "more_seconds": median(lambda here, there: here.wall_s - there.wall_s),
        "cpu_seconds": median(lambda here, _: here.cpu_s),
        "empty_cpu_seconds": median(lambda _, there: there.cpu_s),
        "cpu_ratio": median(lambda here, there: here.cpu_s / there.cpu_s),
        "more_cpu_seconds": median(lambda here, there: here.cpu_s - there.cpu_s),
        "peak_bytes": median(lambda here, _: here.peak_bytes),
        "empty_peak_bytes": median(lambda _, there: there.peak_bytes),
    }


def finished(folder: Path, count: int) -> Project:
    """A project with a finished campaign of so many points, and one of ten more."""
    project = make_project(folder)
    PROGRAM.write(project)
    project.write("config/sites/made.yaml", SITE)
    for name, last in (("all", count), ("more", count + NEW)):
        axes = {"size": {"from": 1, "to": last, "step": 1}}
        experiments = {"e": {"benchmark": PROGRAM.name, "axes": axes}}
        write_campaign(project, name, experiments, results="results")
    for size in range(1, count + 1):
        PROGRAM.record(folder / "results", {"size": size}, 0, {"rate": 1 + size / 7})
    timed(snakemake("-c2", "--configfile", "all.yaml"), folder)
    return project


def noops(folder: Path, empty: Path, count: int, rounds: int) -> Iterator[tuple[str, Any, Figures]]:
    """Nothing to be done: name, medians and figures of each call."""
    for words in (("-n",), ()):
        pairs = in_turn(
            partial(timed, snakemake("-c1", "--configfile", "all.yaml", *words), folder, NOTHING),
            partial(timed, snakemake("-c1", *words), empty, NOTHING),
            rounds,
        )
        row, name = medians(pairs), f"{' '.join(('snakemake', *words))}, {count:,} finished runs"
        yield name, row, [
            figure(name, row["ratio"], "x empty", BOUND if count == BOUND_RUNS else None),
            figure(f"{name}, CPU", row["cpu_ratio"], "x empty"),
        ]  # fmt: skip


def parsing(
    folder: Path, empty: Path, count: int, rounds: int
) -> Iterator[tuple[str, Any, Figures]]:
    """Parsing alone, likewise."""
    lists = ("-c1", "--list-rules")
    for where, words in (("", ()), (" in a job", ("--mode", "remote"))):
        pairs = in_turn(
            partial(timed, snakemake(*lists, "--configfile", "all.yaml", *words), folder, "run"),
            partial(timed, snakemake(*lists, *words), empty, "all"),
            rounds,
        )
        row, name = medians(pairs), f"parsing{where}, {count:,} points"
        memory = (row["peak_bytes"] - row["empty_peak_bytes"]) / MB
        bound = PARSE_BOUND_S if count == BOUND_RUNS else None
        yield name, row, [
            figure(name, row["more_seconds"], "s over empty", bound),
            figure(f"{name}, CPU", row["more_cpu_seconds"], "s over empty"),
            figure(f"{name}, peak memory", memory, "MB over empty"),
        ]  # fmt: skip


def ten_more(
    folder: Path, empty: Path, count: int, rounds: int
) -> Iterator[tuple[str, Any, Figures]]:
    """Ten more points, until the first job is there."""
    sizes = range(count + 1, count + NEW + 1)
    ids = [PROGRAM.run_id({**PROGRAM.defaults, "size": size}, 0) for size in sizes]
    new = [folder / "results" / "runs" / "made" / run_id for run_id in ids]
    pairs = in_turn(
        partial(first_job, folder, "more.yaml", new),
        partial(timed, snakemake("-c1"), empty, NOTHING),
        rounds,
    )
    row, name = medians(pairs), f"{NEW} points more than {count:,}, to the first job"
    bound = START_BOUND if count == BOUND_RUNS else None
    yield name, row, [
        figure(name, row["ratio"], "x empty", bound),
        figure(f"{name}, CPU", row["cpu_ratio"], "x empty"),
    ]  # fmt: skip


def first_job(folder: Path, name: str, new: Sequence[Path]) -> Cost:
    """What a call costs until the shell of its first job is there; what it began is undone.

    ``new``: folders of the runs to do, one of which is the first. Snakemake makes the folder, and
    the job's shell opens the log in it.
    """
    logs = [path / "launcher.log" for path in new]
    command = snakemake("-c1", "--configfile", name)
    cost = timed(command, folder, until=lambda: any(log.exists() for log in logs))
    while marked(new[0].parent):  # the next call would wait for their end
        time.sleep(0.01)
    for path in new:
        shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree(folder / ".snakemake" / "incomplete")
    return cost


def measure(runs: int = BOUND_RUNS, rounds: int = 7) -> Iterator[dict[str, Any]]:
    """Medians of so many pairs, of so many finished runs."""
    with tempfile.TemporaryDirectory() as scratch:
        empty = empty_project(Path(scratch) / "empty")
        folder = finished(Path(scratch) / "ours", runs).path
        for concern in (noops, parsing, ten_more):
            for name, row, figures in concern(folder, empty, runs, rounds):
                yield figure(f"{name}: seconds", row["seconds"], "s")
                yield from figures


if __name__ == "__main__":
    run(measure)
