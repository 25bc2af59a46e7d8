"""Runs from MLPerf's logs: CosmoFlow's of our own benchmark, all others of one that the import
makes. A run lasts from run_start to run_stop (MLPerf HPC training rules, "Run Results").

A submission is ``ORG/results/SYSTEM/BENCHMARK/result_N.txt`` (in MLPerf HPC with ``strong`` or
``weak`` before the benchmark) and ``ORG/systems/SYSTEM.json`` (MLPerf submission rules, "Directory
structure").
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from scalesweep.compute.log_lines import Line
from scalesweep.importers import mlperf_cosmoflow, mlperf_training
from scalesweep.importers.imported_run import ImportedRun, ImportRefusedError, Refusal
from scalesweep.importers.mlperf_log import SCALING, Job, read_runs
from scalesweep.importers.write_campaign import Rules

RULES = {
    mlperf_cosmoflow.BENCHMARK: Rules(along=("validation_samples_per_rank",)),
    mlperf_training.BENCHMARK: Rules(along=mlperf_training.BATCHES),
}


def is_beside(file: Path) -> bool:
    """Whether a file describes the logs that it lies beside: no log itself."""
    folder = file.absolute().parent
    if folder.parent.name == "power":  # power/RESULT/node_*.txt, which is not read
        return True
    described = folder.name == "systems" and (folder.parent / "results").is_dir()
    return file.name == SCALING or (described and file.suffix == ".json")


def read_jobs(
    lines: Callable[[], Iterable[Line]], file: Path, ranks: int | None = None
) -> Iterator[ImportedRun | Refusal]:
    """The runs of a log and the refusals in order; ``lines()`` are those of ``file``.

    ``ranks`` is the number of ranks where the log does not tell it.
    """
    if is_beside(file):
        return
    submission: dict[str, Any] = {}
    reader: Any = mlperf_cosmoflow
    try:
        jobs = read_runs(lines())
    except ImportRefusedError as error:
        yield Refusal(file, str(error), error.line, reader.BENCHMARK)
        return
    for job in jobs:
        try:
            # A run that was started again after it was killed may not say all of it once more.
            keys = {event.key for event in job.events if event.key.startswith("submission_")}
            said = {key: job.value(key) for key in sorted(keys)}
            submission |= {key: value for key, value in said.items() if value is not None}
            name = str(submission.get("submission_benchmark", "cosmoflow")).lower()
            reader = mlperf_cosmoflow if name == "cosmoflow" else mlperf_training
            _check(job, "submission_benchmark" in submission)
            yield reader.run_of(job, file, ranks, submission)
        except ImportRefusedError as error:
            yield Refusal(file, str(error), error.line, reader.BENCHMARK)


def _check(job: Job, named: bool) -> None:
    """Raise ImportRefusedError for a job without a benchmark's name or a run_start, with a damaged
    line of what is needed within it, or with a run_stop before its run_start."""
    first, last = job.lines
    if not named:
        raise ImportRefusedError("no submission_benchmark line names the benchmark", first)
    if job.began is None:
        raise ImportRefusedError("no run_start", last)
    for it in job.damaged:
        if it.line < last or job.ended:
            raise ImportRefusedError(f"a damaged line: {it.value!a}", it.line)
    stop = job.moment("run_stop")
    if stop is not None and stop <= job.began:
        raise ImportRefusedError("run_stop is not after run_start", job.find("run_stop")[0].line)
