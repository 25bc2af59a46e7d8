"""Runs from MLPerf's logs, and CosmoFlow's from those of MLPerf HPC and of our own program.

A run lasts from run_start to run_stop, staging included (MLPerf HPC training rules, "Run
Results"). The logs tell one time for the whole job, so that arrays are [epoch, 1].
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.compute.log_lines import Line
from scalesweep.core.files import digest_of
from scalesweep.core.formatting import counted
from scalesweep.importers import mlperf_training
from scalesweep.importers.imported_run import ImportedRun, ImportRefusedError, Refusal, shown
from scalesweep.importers.mlperf_beside import is_beside
from scalesweep.importers.mlperf_log import OLD, Epoch, Event, Job, epochs_of, is_number, read_runs
from scalesweep.importers.mlperf_outcome import (
    TRAINED,
    date_of,
    outcome,
    submission_kind,
    unfinished,
)
from scalesweep.importers.mlperf_point import MlperfPoint
from scalesweep.importers.write_campaign import Rules

BENCHMARK = "cosmoflow_training"
# Weak submissions, of models that are trained at the same time, are there since v1.0 (2021).
_WEAK_FROM_MS = 1_609_459_200_000  # 2021-01-01
RULES = {
    BENCHMARK: Rules(along=("validation_samples_per_rank",)),
    mlperf_training.BENCHMARK: Rules(along=mlperf_training.BATCHES),
}
# The benchmark as its logs call it.
NAME = "cosmoflow"


def read_jobs(
    lines: Callable[[], Iterable[Line]], file: Path, ranks: int | None = None
) -> Iterator[ImportedRun | Refusal]:
    """The runs of a log and the refusals in order; ``lines()`` are those of ``file``.

    ``ranks`` is the number of ranks where the log does not tell it.
    """
    if is_beside(file):
        return
    watched = _Watch(lines())
    try:
        jobs = read_runs(watched)
    except ImportRefusedError as error:
        yield Refusal(file, str(error), error.line, BENCHMARK)
        return
    if watched.old is not None and not jobs:
        reason = "a log of MLPerf Training v0.6 or older, whose lines are not read"
        yield Refusal(file, reason, watched.old, BENCHMARK)
    submission: dict[str, Any] = {}
    for job in jobs:
        try:
            # A run that was started again after it was killed may not say all of it once more.
            submission |= _submission(job)
            run = _run(job, file, ranks, submission)
            if skipped := [it.line for it in job.damaged if not it.needed]:
                run = replace(run, notes={**run.notes, "damaged_lines": skipped})
            yield run
        except ImportRefusedError as error:
            yield Refusal(file, str(error), error.line, _benchmark(submission))


class _Watch:
    """Lines as they come, and the first that is of an older format."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.lines = lines
        self.old: int | None = None

    def __iter__(self) -> Any:
        for line in self.lines:
            if self.old is None and OLD.search(line.text):
                self.old = line.number
            yield line


def _benchmark(submission: Mapping[str, Any]) -> str:
    """The benchmark that a refused run would be of."""
    name = str(submission.get("submission_benchmark", NAME)).lower()
    return BENCHMARK if name == NAME else mlperf_training.BENCHMARK


def _submission(job: Job) -> dict[str, Any]:
    keys = {event.key for event in job.events if event.key.startswith("submission_")}
    return {key: value for key in sorted(keys) if (value := job.value(key)) is not None}


def _run(job: Job, file: Path, ranks: int | None, submission: Mapping[str, Any]) -> ImportedRun:
    """The run of one job; an unfinished one ends with its last event.

    ``submission``: what ``submission_*`` lines state. Raises ImportRefusedError if the job names no
    benchmark, has no run_start, a damaged line of what is needed within it, or a run_stop before
    its run_start.
    """
    name = submission.get("submission_benchmark")
    if name is None:
        raise ImportRefusedError("no submission_benchmark line names the benchmark", job.first_line)
    if job.began is None:
        raise ImportRefusedError("no run_start", job.last_line)
    for line, text, needed in job.damaged:
        if needed and (line < job.last_line or job.ended):
            raise ImportRefusedError(f"a damaged line: {text!a}", line)
    start, stop = job.moment("run_start"), job.moment("run_stop")
    assert start is not None
    if stop is not None and stop <= start:
        raise ImportRefusedError("run_stop is not after run_start", job.find("run_stop")[0].line)
    if str(name).lower() != NAME:
        return mlperf_training.run_of(job, shown(str(name)[:40]), file, ranks, submission)
    return _cosmoflow(job.of_cosmoflow(), file, ranks, submission)


def _cosmoflow(
    job: Job, file: Path, ranks: int | None, submission: Mapping[str, Any]
) -> ImportedRun:
    """The run of one job of CosmoFlow's that has a run_start."""
    start, stop = job.moment("run_start"), job.moment("run_stop")
    assert start is not None
    point = MlperfPoint(job)
    point.read(ranks, submission)
    epochs = epochs_of(job)
    target = point.values.get("target_mae")
    error = epochs[-1].error if epochs else None
    status, reached = outcome(job, is_number(target) and error is not None and error <= target)
    begin = job.moment("init_start")
    kind = submission_kind(file)
    variant = {**point.variant, **({"MLPerf's scaling": kind} if kind else {})}
    notes = _notes(job, epochs, point, status, submission)
    if stop is not None:
        strong = "strong" if stop < _WEAK_FROM_MS else None
        trained = {"start": start / 1000, "stop": stop / 1000}
        notes[TRAINED] = {**trained, "submission": kind or strong}
    return ImportedRun(
        benchmark=BENCHMARK,
        point=point.values,
        file=file,
        line=job.first_line,
        source_digest=digest_of([[e.ms, *_said(e)] for e in job.events]),
        started=date_of(start if begin is None else min(begin, start)),
        ended=date_of(stop or max(event.ms for event in job.events)),
        variant=variant,
        samples=_samples(epochs),
        samples_per_epoch=point.train_samples,
        metrics=_metrics(epochs, point.train_samples, start, stop, reached),
        phases=_totals(spans := _spans(job, epochs)),
        phase_spans=spans,
        notes={**notes, "variant": variant} if variant else notes,
        unfinished=_unfinished(job, status, len(epochs)),
    )


def _unfinished(job: Job, status: str, epochs: int) -> str:
    """As ``unfinished``; one that ran all epochs that it was to run has finished, whatever it calls
    itself."""
    if job.find("run_stop") and job.value("epochs") == epochs:
        return ""
    return unfinished(job, status, f" after {counted(epochs, 'epoch')}")


def _said(event: Event) -> list[str]:
    """What an event says, as text that JSON can hold."""
    metadata = {k: v for k, v in event.metadata.items() if k not in ("file", "lineno")}
    return [event.key, repr(event.value), repr(sorted(metadata.items(), key=str))]


def _samples(epochs: Sequence[Epoch]) -> dict[str, Floats]:
    """Arrays [epoch, 1] of the whole job; NaN where an epoch was not evaluated."""
    if not epochs:
        return {}
    first = epochs[0].start or 0.0
    columns: dict[str, list[float | None]] = {
        "training_times": [_seconds(epoch.start, epoch.trained) for epoch in epochs],
        "epoch_ends": [_seconds(first, epoch.end) for epoch in epochs],
        "validation_times": [_seconds(epoch.eval_start, epoch.eval_stop) for epoch in epochs],
        "validation_mae": [epoch.error for epoch in epochs],
        "learning_rate": [epoch.rate for epoch in epochs],
    }
    return {
        name: np.array(values, np.float64)[:, None]
        for name, values in columns.items()
        if any(value is not None for value in values)
    }


def _seconds(start: float | None, stop: float | None) -> float | None:
    return None if start is None or stop is None else (stop - start) / 1000


def _metrics(
    epochs: Sequence[Epoch], samples: int, start: float, stop: float | None, reached: bool
) -> dict[str, dict[str, Any]]:
    metrics: dict[str, tuple[float | None, str, str]] = {
        "run_time": (_seconds(start, stop), "s", "lower"),
        "time_to_target": (_seconds(start, stop) if reached else None, "s", "lower"),
        "epochs_run": (len(epochs), "epochs", "lower"),
    }
    if epochs:
        time = sum(_seconds(epoch.start, epoch.trained) or 0.0 for epoch in epochs)
        rate = len(epochs) * samples / time if time else None
        metrics["training_time"] = (time, "s", "lower")
        metrics["training_samples_per_second"] = (rate, "samples/s", "higher")
        metrics["final_validation_mae"] = (epochs[-1].error, "1", "lower")
    return {
        name: {"value": value, "unit": unit, "better": better, "scope": "total"}
        for name, (value, unit, better) in metrics.items()
        if value is not None and math.isfinite(value)
    }


def _spans(job: Job, epochs: Sequence[Epoch]) -> list[tuple[str, float, float]]:
    """Phases with their begin and end in Unix seconds, in order."""
    spans: list[tuple[str, float | None, float | None]] = [
        ("init", job.moment("init_start"), job.moment("init_stop")),
        ("data_staging", job.moment("staging_start"), job.moment("staging_stop")),
    ]
    for epoch in epochs:
        spans.append(("training", epoch.start, epoch.trained))
        spans.append(("validation", epoch.eval_start, epoch.eval_stop))
    return [
        (name, start / 1000, stop / 1000)
        for name, start, stop in spans
        if start is not None and stop is not None and stop >= start
    ]


def _totals(spans: Sequence[tuple[str, float, float]]) -> dict[str, float]:
    """Seconds by phase, to the millisecond of the log."""
    totals: dict[str, float] = {}
    for name, start, stop in spans:
        totals[name] = round(totals.get(name, 0.0) + stop - start, 3)
    return totals


def _notes(
    job: Job,
    epochs: Sequence[Epoch],
    point: MlperfPoint,
    status: str,
    submission: Mapping[str, Any],
) -> dict[str, Any]:
    """What the record says of how the log was read: hyperparameters, assumptions, and what
    contradicts."""
    keys = sorted({e.key for e in job.events if e.key.startswith("opt_") or e.key == "seed"})
    notes: dict[str, Any] = {
        "importer": "MLPerf log",
        "lines": [job.first_line, job.last_line],
        "submission": dict(submission),
        "hyperparameters": {key: job.value(key) for key in keys},
        "assumed": point.assumed,
        "status": status,
        "dates": "started is init_start, ended run_stop or the last line",
        "time_to_target": "from run_start to run_stop, staging included, as MLPerf counts it",
        "training_times": "from the start of an epoch to its evaluation, of the whole job",
        "seed": "repeats of a point may have other seeds; the point has the default",
    }
    if epochs:
        notes["epochs"] = f"numbered {epochs[0].number} to {epochs[-1].number} in the log"
    stop = job.moment("run_stop")
    later = [e for e in job.find("epoch_start") if stop is not None and e.ms >= stop]
    if later:
        notes["after_run_stop"] = f"{counted(len(later), 'epoch')} behind run_stop: not of the run"
    errors = [epoch.error for epoch in epochs if epoch.error is not None]
    target = point.values.get("target_mae")
    if status == "success" and is_number(target) and errors and not min(errors) <= target:
        notes["target"] = f"the log tells of success, but no eval_error is {target} or less"
    if job.damaged:
        notes["cut"] = f"line {job.damaged[0][0]} is not whole"
    if any(event.metadata.get("lr") is not None for event in job.find("epoch_start")):
        notes["learning_rate"] = "at the start of each epoch"
    return notes
