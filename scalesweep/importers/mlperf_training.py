"""Runs of MLPerf Training and of MLPerf HPC's DeepCAM, OpenFold and OC20, from their logs.

CosmoFlow's logs become runs of our own benchmark (``mlperf_runs``), all others those of a benchmark
that an import makes: the parameters are what the logs state, the ranks the accelerators of the
log or of the system's description beside it. A run lasts from run_start to run_stop; its score is
that of several runs (``aspects/score``), times the factor of ``scaling.json``.
"""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.core.files import digest_of
from scalesweep.importers.imported_run import GPU, ImportedRun, ImportRefusedError
from scalesweep.importers.made_benchmark import Made, parameter_entry
from scalesweep.importers.mlperf_beside import System, score_factor, system_of
from scalesweep.importers.mlperf_log import Event, Job, is_number
from scalesweep.importers.mlperf_outcome import (
    SCORE,
    TRAINED,
    date_of,
    outcome,
    submission_kind,
    unfinished,
)

BENCHMARK = "mlperf_training"
BATCHES = ("global_batch_size", "gradient_accumulation_steps")
MADE = Made(
    "Trainings of MLPerf Training and MLPerf HPC, by the logs of their submissions.",
    {
        "task": parameter_entry("string", "MLPerf's benchmark as its logs call it.", None, True),
        "global_batch_size": parameter_entry("integer", "Of all ranks.", "samples", False),
        "gradient_accumulation_steps": parameter_entry(
            "integer", "Batches of a rank in a step of the optimiser.", None, False
        ),
        "max_sequence_length": parameter_entry("integer", "Of a sample.", "tokens", True),
    },
    {
        "time_to_target": "run_start to run_stop of a run that reached the target",
        "run_time": "run_start to run_stop",
        "step_time": "median of the steps' (or blocks') times that the log tracks",
        "throughput": "median of the rates that the log tracks, of all ranks together",
        "samples_to_target": "samples trained when the target was reached",
    },
)
# Direction of what eval_accuracy (in MLPerf HPC also eval_error) is, by benchmark: MLPerf Training
# and MLPerf HPC training rules, "Benchmarks" (metrics and targets).
_HIGHER = frozenset(
    ("bert", "dlrm", "dlrm_dcnv2", "gnn", "rgat", "resnet", "ssd", "retinanet", "unet3d",
     "maskrcnn", "deepcam", "openfold")
)  # fmt: skip
_LOWER = frozenset(("gpt3", "llama2_70b_lora", "llama31_8b", "llama31_405b", "oc20"))
# Runs that MLPerf asks of a submission, where not this many, and those dropped at either end where
# not one (mlcommons/logging: benchmark_meta.py and rules/*; result_summarizer.py).
_RUNS = {
    "gpt3": 3, "llama31_405b": 3, "resnet": 5, "ssd": 5, "retinanet": 5, "maskrcnn": 5,
    "unet3d": 40, "bert": 10, "dlrm": 5, "dlrm_dcnv2": 10, "gnn": 10, "rgat": 10,
    "llama2_70b_lora": 10, "llama31_8b": 10, "stable_diffusion": 10, "flux1": 10, "rnnt": 10,
    "deepcam": 5, "oc20": 5, "openfold": 10,
}  # fmt: skip
_DROPPED = {"unet3d": 4}
_HPC = ("deepcam", "oc20", "openfold")
# Their train_samples counts batches (train_samples x global_batch_size is the data set's size).
_BATCHES = ("ssd", "retinanet")
# Its epoch_num counts tokens.
_TOKENS = ("gpt3",)
# An epoch_num above this counts samples: no benchmark trains so many epochs.
_MOST_EPOCHS = 10_000
_STEP_TIMES = ("train_step_time", "train_step_timing in s")
_PLACEHOLDER = "PLACEHOLDER"
_COUNT = re.compile(r"^(?:\d{1,7}x)+")
# A rate that was written down agrees with one from the clock within this, either way: evaluations
# that overlap training and the first steps are in one and not in the other.
_AGREES = 1.5
_HYPERPARAMETERS = ("opt_", "seed")


class _Progress(NamedTuple):
    """How far a run had come: samples, at which time (ms)."""

    samples: float
    ms: float


def run_of(
    job: Job, name: str, file: Path, ranks: int | None, submission: Mapping[str, Any]
) -> ImportedRun:
    """The run of a job of MLPerf's benchmark ``name``; an unfinished one ends with its last event.

    ``ranks`` is the number of ranks where neither log nor description tells it; ``submission`` is
    what ``submission_*`` lines state. Raises ImportRefusedError if nothing tells the ranks, or what
    lies beside the log cannot be read.
    """
    start, stop = job.moment("run_start"), job.moment("run_stop")
    assert start is not None
    system = system_of(file)
    assumed: dict[str, str] = {}
    point = {"task": name, **_ranks(job, system, ranks, assumed), **_settings(job)}
    status, reached = outcome(job, None)
    # MLPerf Training has no weak submissions, of models that are trained at the same time.
    kind = submission_kind(file) if name in _HPC else None
    steps = _step_times(job)
    notes: dict[str, Any] = {
        "importer": "MLPerf log",
        "lines": [job.first_line, job.last_line],
        "submission": dict(submission),
        "hyperparameters": _hyperparameters(job),
        "assumed": assumed,
        "status": status,
        "dates": "started is init_start, ended run_stop or the last line",
        "time_to_target": "from run_start to run_stop, as MLPerf counts it",
        **({"system": system.file, "framework": system.framework} if system.file else {}),
    }
    metrics = _metrics(job, name, start, stop, reached, point, steps, notes)
    if stop is not None:
        notes[TRAINED] = {
            "start": start / 1000, "stop": stop / 1000,
            "submission": kind if name in _HPC else "strong",
        }  # fmt: skip
        notes[SCORE] = {
            "factor": score_factor(file), "runs": _RUNS.get(name), "dropped": _DROPPED.get(name, 1),
        }  # fmt: skip
    variant = _variant(submission, system, kind)
    begin = job.moment("init_start")
    evaluated = [[event.ms, repr(event.value)] for event in _evaluations(job)]
    return ImportedRun(
        benchmark=BENCHMARK,
        made=MADE,
        point=point,
        file=file,
        line=job.first_line,
        # The same run is submitted in several rounds, under other names of platform and file.
        source_digest=digest_of([name, start, stop, evaluated]),
        started=date_of(start if begin is None else min(begin, start)),
        ended=date_of(stop or max(event.ms for event in job.events)),
        variant=variant,
        samples={"train_step_times": steps[:, None]} if steps.size else {},
        samples_per_epoch=0,
        metrics=metrics,
        phases=_phases(spans := _spans(job)),
        phase_spans=spans,
        notes={**notes, "variant": variant} if variant else notes,
        unfinished=unfinished(job, status),
    )


def _ranks(job: Job, system: System, given: int | None, assumed: dict[str, str]) -> dict[str, int]:
    """Ranks and ranks of a node: as the log states them, else the system's description."""
    stated, nodes = _whole(job, "number_of_ranks"), _whole(job, "number_of_nodes")
    each = _whole(job, "accelerators_per_node")
    if stated:
        ranks = stated
    elif nodes and each:
        ranks, assumed["ranks"] = nodes * each, "one for each accelerator"
    elif system.ranks:
        ranks, nodes = system.ranks, system.nodes
        assumed["ranks"] = f"the accelerators of systems/{system.file}"
    elif given:
        ranks, assumed["ranks"] = given, "--ranks"
    else:
        raise ImportRefusedError(
            "neither the log nor systems/NAME.json of its submission states the number of ranks: "
            "add --ranks N",
            job.first_line,
        )
    if given not in (None, ranks):
        assumed["ranks"] = f"{assumed.get('ranks', 'the log')}, not --ranks {given}"
    counts = {"ranks": ranks}
    if nodes and ranks % nodes == 0:
        counts["ranks_per_node"] = ranks // nodes
    return counts


def _whole(job: Job, key: str) -> int | None:
    """A whole number above 0 that the log states; 24.0 is one. None where it states none."""
    value = job.value(key)
    if value is None:
        return None
    if not is_number(value) or not 0 < value < 2**53 or value != int(value):
        raise ImportRefusedError(
            f"{key} {str(value)[:40]!a} is not a whole number above 0", job.find(key)[0].line
        )
    return int(value)


def _settings(job: Job) -> dict[str, int]:
    """The parameters that the log states."""
    keys = {
        "global_batch_size": ("global_batch_size",),
        "gradient_accumulation_steps": (
            "gradient_accumulation_steps", "gradient_accumulation_frequency",
        ),
        "max_sequence_length": ("max_sequence_length",),
    }  # fmt: skip
    settings = {}
    for name, alternatives in keys.items():
        value = next((it for key in alternatives if (it := _whole(job, key)) is not None), None)
        if value is not None:
            settings[name] = value
    return settings


def _hyperparameters(job: Job) -> dict[str, Any]:
    """What ``opt_*`` lines and the seed say; the first of several values (seeds of ranks)."""
    said: dict[str, Any] = {}
    for event in job.events:
        if event.key.startswith(_HYPERPARAMETERS) and isinstance(
            event.value, str | int | float | bool
        ):
            said.setdefault(event.key, event.value)
    return {key: said[key] for key in sorted(said)}


def _variant(submission: Mapping[str, Any], system: System, kind: str | None) -> dict[str, str]:
    """Who measured on what: organisation, division, platform without its count, accelerator."""
    words = {key: str(submission.get(f"submission_{key}") or "") for key in
             ("org", "division", "platform")}  # fmt: skip
    words["platform"] = _COUNT.sub("", words["platform"])
    if _PLACEHOLDER in words["org"] or not words["org"]:
        words["org"] = system.submitter
    variant = {
        f"submission_{key}": word[:80]
        for key, word in words.items()
        if word and _PLACEHOLDER not in word
    }
    if system.accelerator:
        variant[GPU] = system.accelerator
    if kind:
        variant["MLPerf's scaling"] = kind
    return variant


def _evaluations(job: Job) -> list[Event]:
    return [event for event in job.events if event.key in ("eval_accuracy", "eval_error")]


def _tracked(job: Job) -> list[Mapping[str, Any]]:
    """What ``tracked_stats`` lines say; programs that evaluate later go on behind run_stop."""
    return [event.value for event in job.find("tracked_stats") if isinstance(event.value, dict)]


def _step_times(job: Job) -> Floats:
    """Seconds of the steps that the log has a line for, in order; else the means of its blocks.

    Where both are there, lines with a rate beside the time are the means of blocks of steps.
    """
    single: list[float] = []
    blocks: list[float] = []
    for said in _tracked(job):
        value = next((said[key] for key in _STEP_TIMES if key in said), None)
        if is_number(value) and 0 < value < math.inf:
            (blocks if "throughput" in said else single).append(float(value))
    return np.array(single or blocks, np.float64)


def _metrics(
    job: Job,
    name: str,
    start: float,
    stop: float | None,
    reached: bool,
    point: Mapping[str, Any],
    steps: Floats,
    notes: dict[str, Any],
) -> dict[str, dict[str, Any]]:
    """Metrics of a run; ``notes`` get what is to be known of them."""
    progress = _progress(job, name, point, stop)
    seconds = None if stop is None else (stop - start) / 1000
    rate = _rate(job, point, progress, steps, notes)
    values: dict[str, tuple[float | None, str, str]] = {
        "time_to_target": (seconds if reached else None, "s", "lower"),
        "run_time": (seconds, "s", "lower"),
        "step_time": (median(steps.tolist()) if steps.size else None, "s", "lower"),
        "throughput": (rate, "samples/s", "higher"),
        "samples_to_target": (
            progress.samples if progress is not None and reached else None, "samples", "lower",
        ),
    }  # fmt: skip
    evaluations = _evaluations(job)
    if evaluations and name in _HIGHER | _LOWER and is_number(evaluations[-1].value):
        better = "higher" if name in _HIGHER else "lower"
        values["final_quality"] = (float(evaluations[-1].value), "1", better)
    return {
        metric: {"value": value, "unit": unit, "better": better, "scope": "total"}
        for metric, (value, unit, better) in values.items()
        if value is not None and math.isfinite(value)
    }


def _progress(
    job: Job, name: str, point: Mapping[str, Any], stop: float | None
) -> _Progress | None:
    """The samples trained by the last event that says it and is not behind run_stop.

    ``samples_count`` counts samples. ``epoch_num`` counts samples where it ever is large (of GPT-3
    tokens), else epochs or parts of one, of ``train_samples``.
    """
    last: _Progress | None = None
    epochs = [event.metadata.get("epoch_num") for event in job.events]
    samples = any(is_number(epoch) and epoch > _MOST_EPOCHS for epoch in epochs)
    for event in job.events:
        if event.key not in ("eval_accuracy", "eval_error", "epoch_stop", "block_stop", "run_stop"):
            continue
        if stop is not None and event.ms > stop:
            continue
        count = event.metadata.get("samples_count")
        if not is_number(count):
            epoch = event.metadata.get("epoch_num")
            count = _of_epochs(epoch, samples, job, name, point)
        if is_number(count) and 0 < count < math.inf and (last is None or count >= last.samples):
            last = _Progress(float(count), event.ms)
    return last


def _of_epochs(
    epoch: Any, is_samples: bool, job: Job, name: str, point: Mapping[str, Any]
) -> float | None:
    """Samples of so many epochs, or of what ``epoch_num`` counts; None where nothing says it."""
    if not is_number(epoch) or not 0 < epoch < math.inf:
        return None
    if name in _TOKENS:
        length = point.get("max_sequence_length")
        return epoch / length if length else None
    if is_samples:
        return float(epoch)
    if name in _BATCHES:
        return None  # numbered from 0, so that the last one counts before it has begun
    samples = job.find("train_samples")
    size = samples[0].value if samples else None
    return epoch * size if is_number(size) and 0 < size < math.inf else None


def _whole_epochs(job: Job, batch: int | None) -> _Progress | None:
    """Samples of the epochs that ended within the run, where train_samples counts batches."""
    samples, stop = job.find("train_samples"), job.moment("run_stop")
    ends = [event for event in job.find("epoch_stop") if stop is None or event.ms < stop]
    size = samples[0].value if samples else None
    if not ends or not batch or not is_number(size) or not 0 < size < math.inf:
        return None
    return _Progress(float(len(ends) * size * batch), ends[-1].ms)


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
    rates = [
        float(said["throughput"])
        for said in _tracked(job)
        if is_number(said.get("throughput")) and 0 < said["throughput"] < math.inf
    ]
    batch = point.get("global_batch_size")
    by_clock: float | None = None
    if steps.size and batch:
        by_clock = batch / median(steps.tolist())
    elif (progress := progress or _whole_epochs(job, batch)) is not None:
        seconds = _training_seconds(job, progress.ms)
        by_clock = progress.samples / seconds if seconds > 0 else None
    if not rates:
        if steps.size and by_clock is not None:
            notes["throughput"] = "global_batch_size over step_time"
            return by_clock
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


def _spans(job: Job) -> list[tuple[str, float, float]]:
    """Initialisation, staging and evaluations with begin and end in Unix seconds, in order."""
    spans: list[tuple[str, float, float]] = []
    for name, key in (("init", "init"), ("data_staging", "staging")):
        start, stop = job.moment(f"{key}_start"), job.moment(f"{key}_stop")
        if start is not None and stop is not None and stop >= start:
            spans.append((name, start / 1000, stop / 1000))
    begun: float | None = None
    for event in job.events:
        if event.key == "eval_start" and begun is None:
            begun = event.ms
        elif event.key == "eval_stop" and begun is not None:
            if event.ms >= begun:
                spans.append(("validation", begun / 1000, event.ms / 1000))
            begun = None
    return spans


def _phases(spans: Sequence[tuple[str, float, float]]) -> dict[str, float]:
    """Seconds by phase, to the millisecond of the log."""
    totals: dict[str, float] = {}
    for name, start, stop in spans:
        totals[name] = round(totals.get(name, 0.0) + stop - start, 3)
    return totals
