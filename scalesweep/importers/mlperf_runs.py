"""Runs from MLPerf's logs: CosmoFlow's of our own benchmark, all others of one that the import
makes. A run lasts from run_start to run_stop (MLPerf HPC training rules, "Run Results")."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from scalesweep.compute.log_lines import Line
from scalesweep.importers import mlperf_cosmoflow, mlperf_training
from scalesweep.importers.imported_run import ImportedRun, ImportRefusedError, Refusal, shown
from scalesweep.importers.mlperf_beside import is_beside
from scalesweep.importers.mlperf_log import Job, read_runs
from scalesweep.importers.write_campaign import Rules

RULES = {
    mlperf_cosmoflow.BENCHMARK: Rules(along=("validation_samples_per_rank",)),
    mlperf_training.BENCHMARK: Rules(along=mlperf_training.BATCHES),
}


def read_jobs(
    lines: Callable[[], Iterable[Line]], file: Path, ranks: int | None = None
) -> Iterator[ImportedRun | Refusal]:
    """The runs of a log and the refusals in order; ``lines()`` are those of ``file``.

    ``ranks`` is the number of ranks where the log does not tell it.
    """
    if is_beside(file):
        return
    submission: dict[str, Any] = {}
    try:
        jobs = read_runs(lines())
    except ImportRefusedError as error:
        yield Refusal(file, str(error), error.line, mlperf_cosmoflow.BENCHMARK)
        return
    for job in jobs:
        try:
            # A run that was started again after it was killed may not say all of it once more.
            keys = {event.key for event in job.events if event.key.startswith("submission_")}
            said = {key: job.value(key) for key in sorted(keys)}
            submission |= {key: value for key, value in said.items() if value is not None}
            yield _run(job, file, ranks, submission)
        except ImportRefusedError as error:
            benchmark = _reader(submission).BENCHMARK
            yield Refusal(file, str(error), error.line, benchmark)


def _reader(submission: Mapping[str, Any]) -> Any:
    name = str(submission.get("submission_benchmark", "cosmoflow")).lower()
    return mlperf_cosmoflow if name == "cosmoflow" else mlperf_training


def _run(job: Job, file: Path, ranks: int | None, submission: Mapping[str, Any]) -> ImportedRun:
    """The run of one job; an unfinished one ends with its last event.

    ``submission``: what ``submission_*`` lines state. Raises ImportRefusedError if the job names no
    benchmark, has no run_start, a damaged line of what is needed within it, or a run_stop before
    its run_start.
    """
    first, last = job.lines
    name = submission.get("submission_benchmark")
    if name is None:
        raise ImportRefusedError("no submission_benchmark line names the benchmark", first)
    if job.began is None:
        raise ImportRefusedError("no run_start", last)
    for line, text, needed in job.damaged:
        if needed and (line < last or job.ended):
            raise ImportRefusedError(f"a damaged line: {text!a}", line)
    stop = job.moment("run_stop")
    if stop is not None and stop <= job.began:
        raise ImportRefusedError("run_stop is not after run_start", job.find("run_stop")[0].line)
    run: ImportedRun = _reader(submission).run_of(
        job, shown(str(name)[:40]), file, ranks, submission
    )
    return run
