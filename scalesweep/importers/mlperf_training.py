"""Runs of MLPerf Training and of MLPerf HPC's DeepCAM, OpenFold and OC20, from their logs.

CosmoFlow's logs become runs of our own benchmark (``mlperf_runs``), all others those of a benchmark
that an import makes: the parameters are what the logs state, the ranks the accelerators of the
log or of the system's description beside it. A run lasts from run_start to run_stop; its score is
that of several runs (``aspects/score.py``), times the factor of ``scaling.json``.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.core.files import digest_of
from scalesweep.core.formatting import finite
from scalesweep.core.visible import visible
from scalesweep.importers.imported_run import (
    GPU,
    ImportedRun,
    ImportRefusedError,
    declared_metrics,
    metric,
)
from scalesweep.importers.made_benchmark import declared, made_of
from scalesweep.importers.mlperf_log import (
    SCALING,
    SCORE,
    Job,
    Span,
    beside,
    ending,
    is_number,
    notes_of,
    ranks_of,
    span_of,
    submission_kind,
    system_of,
    times_of,
)

BENCHMARK = "mlperf_training"
BATCHES = ("global_batch_size", "gradient_accumulation_steps")
# An epoch_num above this counts samples: no benchmark trains so many epochs.
_MOST_EPOCHS = 10_000
_STEP_TIMES = ("train_step_time", "train_step_timing in s")
_PLACEHOLDER = "PLACEHOLDER"
_COUNT = re.compile(r"^(?:\d{1,7}x)+")
# A rate that was written down agrees with one from the clock within this, either way: evaluations
# that overlap training and the first steps are in one and not in the other.
_AGREES = 1.5
_QUALITY = ("eval_accuracy", "eval_error")
_Progress = tuple[float, float]  # how far a run had come: samples, at which time (ms)


def run_of(job: Job, file: Path, ranks: int | None, submission: Mapping[str, Any]) -> ImportedRun:
    """The run of a job; an unfinished one ends with its last event.

    ``ranks`` is the number of ranks where neither log nor description tells it; ``submission`` is
    what ``submission_*`` lines state. Raises ImportRefusedError if nothing tells the ranks, or what
    lies beside the log cannot be read.
    """
    start, stop = job.moment("run_start"), job.moment("run_stop")
    assert start is not None
    name = visible(str(submission["submission_benchmark"])[:40])
    system = system_of(file)
    assumed: dict[str, str] = {}
    point = {"task": name, **ranks_of(job, ranks, assumed, system), **_settings(job)}
    status, reached, unfinished = ending(job, None)
    steps = _step_times(job)
    notes = notes_of(job, submission, assumed, status)
    metrics = _metrics(job, reached, point, steps, notes)
    # MLPerf Training has no weak submissions, of models that are trained at the same time.
    task = declared(BENCHMARK)["tasks"].get(name, {})
    kind = submission_kind(file) if "hpc" in task else None
    if stop is not None and kind != "weak":
        runs, dropped = task.get("runs"), task.get("dropped", 1)
        notes[SCORE] = {"factor": _factor(file), "runs": runs, "dropped": dropped}
    evaluated = [[event.ms, repr(event.value)] for event in job.find(*_QUALITY)]
    return ImportedRun(
        benchmark=BENCHMARK,
        made=made_of(declared(BENCHMARK)),
        point=point,
        file=file,
        line=job.lines[0],
        # The same run is submitted in several rounds, under other names of platform and file.
        source_digest=digest_of([name, start, stop, evaluated]),
        variant=_variant(submission, system, kind),
        samples={"train_step_times": steps[:, None]} if steps.size else {},
        metrics=metrics,
        notes=notes,
        unfinished=unfinished,
        **times_of(job, _spans(job)),
    )


def _factor(log: Path) -> float:
    """The factor of the score of the logs in a folder; 1 without ``scaling.json``. Raises
    ImportRefusedError."""
    factor = beside(log.absolute().parent / SCALING).get("scaling_factor", 1.0)
    if not finite(factor) or factor <= 0:
        words = f"{SCALING} beside it: scaling_factor {factor!r} is no factor above 0"
        raise ImportRefusedError(words)
    return float(factor)


def _settings(job: Job) -> dict[str, int]:
    """The parameters that the log states."""
    values = {name: job.count(name, 1) for name in (*BATCHES, "max_sequence_length")}
    values[BATCHES[1]] = values[BATCHES[1]] or job.count("gradient_accumulation_frequency", 1)
    return {name: value for name, value in values.items() if value is not None}


def _variant(
    submission: Mapping[str, Any], system: Mapping[str, Any], kind: str | None
) -> dict[str, str]:
    """Who measured on what: organisation, division, platform without its count, accelerator."""
    said = {key: str(submission.get(f"submission_{key}") or _PLACEHOLDER) for key in
            ("org", "division", "platform")}  # fmt: skip
    if _PLACEHOLDER in said["org"]:
        said["org"] = str(system.get("submitter") or _PLACEHOLDER)
    said["platform"] = _COUNT.sub("", said["platform"])
    variant = {f"submission_{key}": it[:80] for key, it in said.items() if _PLACEHOLDER not in it}
    accelerator = str(system.get("accelerator_model_name") or "").strip()[:80]
    variant |= {GPU: accelerator} if accelerator else {}
    return variant | ({"MLPerf's scaling": kind} if kind else {})


def _tracked(job: Job) -> list[Mapping[str, Any]]:
    """What ``tracked_stats`` lines say; programs that evaluate later go on behind run_stop."""
    return [event.value for event in job.find("tracked_stats") if isinstance(event.value, dict)]


def _step_times(job: Job) -> Floats:
    """Seconds of the steps that the log has a line for, in order; else the means of its blocks.

    Where both are there, lines with a rate beside the time are the means of blocks of steps.
    """
    times: dict[bool, list[float]] = {False: [], True: []}
    for said in _tracked(job):
        value = next((said[key] for key in _STEP_TIMES if key in said), None)
        if finite(value) and value > 0:
            times["throughput" in said].append(float(value))
    return np.array(times[False] or times[True], np.float64)


def _metrics(
    job: Job, reached: bool, point: Mapping[str, Any], steps: Floats, notes: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Metrics of a run; ``notes`` get what is to be known of them."""
    start, stop = job.moment("run_start"), job.moment("run_stop")
    task = declared(BENCHMARK)["tasks"].get(point["task"], {})
    progress = _progress(job, "counts" not in task, stop)
    seconds = None if stop is None or start is None else (stop - start) / 1000
    metrics = declared_metrics(BENCHMARK, {
        "time_to_target": seconds if reached else None,
        "run_time": seconds,
        "step_time": median(steps.tolist()) if steps.size else None,
        "throughput": _rate(job, point, progress, steps, notes),
        "samples_to_target": progress[0] if reached and progress else None,
    })  # fmt: skip
    evaluations = job.find(*_QUALITY)
    if evaluations and "better" in task and is_number(evaluations[-1].value):
        metrics["final_quality"] = metric(float(evaluations[-1].value), "1", task["better"])
    return metrics


def _progress(job: Job, samples: bool, stop: float | None) -> _Progress | None:
    """The samples trained by the last event that says it and is not behind run_stop.

    ``samples_count`` counts samples. Where ``samples`` says so ``epoch_num`` counts samples if it
    ever is large, else epochs or parts of one, of ``train_samples``.
    """
    epochs = [event.metadata.get("epoch_num") for event in job.events]
    sizes = [event.value for event in job.find("train_samples")]  # ranks may state parts of it
    each = float(sizes[0]) if sizes and finite(sizes[0]) and sizes[0] > 0 else None
    if any(is_number(epoch) and epoch > _MOST_EPOCHS for epoch in epochs):
        each = 1
    each = each if samples else None
    reached: list[_Progress] = []
    for event in job.find(*_QUALITY, "epoch_stop", "block_stop", "run_stop"):
        count, epoch = event.metadata.get("samples_count"), event.metadata.get("epoch_num")
        if not is_number(count):
            count = epoch * each if is_number(epoch) and each else None
        if is_number(count) and 0 < count < math.inf and (stop is None or event.ms <= stop):
            reached.append((float(count), event.ms))
    return max(reached, default=None)


def _rate(
    job: Job,
    point: Mapping[str, Any],
    progress: _Progress | None,
    steps: Floats,
    notes: dict[str, Any],
) -> float | None:
    """Samples/s of all ranks: the median of the rates that the log tracks.

    Logs do not say whether a rate is of all ranks or of one (SSD's of v4.0 are of one). It counts
    where it agrees with batch over step time or with what the clock says of the run; else there is
    none.
    """
    tracked = [said.get("throughput") for said in _tracked(job)]
    rates = [float(rate) for rate in tracked if finite(rate) and rate > 0]
    batch = point.get("global_batch_size")
    by_clock: float | None = None
    if steps.size and batch:
        by_clock = batch / median(steps.tolist())
        if not rates:
            notes["throughput"] = "global_batch_size over step_time"
            return by_clock
    elif progress and (seconds := _training_seconds(job, progress[1])) > 0:
        by_clock = progress[0] / seconds
    if not rates:
        return None
    rate, ranks = median(rates), point["ranks"]
    if by_clock is None:
        notes["throughput"] = f"{rate:g} in the log, which does not say of how many ranks: left out"
        return None
    for count, what in ((1, "all ranks"), (ranks, "one rank")):
        if 1 / _AGREES < rate * count / by_clock < _AGREES:
            notes["throughput"] = f"the log's {rate:g} are of {what}, by its own clock"
            return rate * count
    notes["throughput"] = f"{rate:g} in the log, {by_clock:g} by its clock: left out"
    return None


def _training_seconds(job: Job, end: float) -> float:
    """Seconds from run_start to ``end`` (ms) without evaluations that were begun before."""
    start = job.moment("run_start")
    assert start is not None
    evaluated = sum(
        min(stop, end / 1000) - begin
        for kind, begin, stop in _spans(job)
        if kind == "validation" and begin < end / 1000
    )
    return (end - start) / 1000 - evaluated


def _spans(job: Job) -> list[Span]:
    """Initialisation, staging and evaluations, in order."""
    spans = [*job.span("init", "init"), *job.span("data_staging", "staging")]
    begun: float | None = None
    for event in job.find("eval_start", "eval_stop"):
        if event.key == "eval_start":
            begun = event.ms if begun is None else begun
        else:
            spans += span_of("validation", begun, event.ms)
            begun = None
    return spans
