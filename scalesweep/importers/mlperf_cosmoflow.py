"""Runs of CosmoFlow from the logs of MLPerf HPC and of our own program.

The logs tell one time for the whole job, so that arrays are [epoch, 1]. What the keys mean: MLPerf
HPC training rules, "Hyperparameters and Optimizer".
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.core.files import digest_of
from scalesweep.core.formatting import counted
from scalesweep.importers.imported_run import ImportedRun, ImportRefusedError, declared_metrics
from scalesweep.importers.mlperf_log import (
    SCORE,
    STRAGGLE_MS,
    Event,
    Job,
    ending,
    is_number,
    notes_of,
    ranks_of,
    span_of,
    submission_kind,
    times_of,
)

BENCHMARK = "cosmoflow_training"
TARGET_MAE = 0.124  # MLPerf HPC training rules, "Benchmarks"
SCORED_RUNS = 10  # MLPerf HPC training rules, "Benchmark Results"
# Key of the log -> parameter, where they mean the same.
_SAME = {
    "dropout": "dropout", "target_mae": "target_mae", "epochs": "epochs",
    "sample_shape": "sample_shape", "opt_learning_rate_warmup_epochs": "warmup_epochs",
}  # fmt: skip
# Key of the log -> what it is of an epoch.
_OF_EPOCH = {
    "epoch_start": "start", "epoch_stop": "stop", "block_start": "start", "block_stop": "stop",
    "eval_start": "eval_start", "eval_stop": "eval_stop", "eval_error": "error",
    "learning_rate": "rate",
}  # fmt: skip


@dataclass
class _Epoch:
    """What a log says of an epoch; times in ms, ``error`` NaN where it is logged as no number."""

    number: int
    line: int
    start: float | None = None
    stop: float | None = None
    eval_start: float | None = None
    eval_stop: float | None = None
    error: float | None = None
    rate: float | None = None

    @property
    def complete(self) -> bool:
        """Whether it ended; a run that stops in an evaluation may leave out epoch_stop."""
        return self.stop is not None or None not in (self.eval_start, self.eval_stop, self.error)

    @property
    def end(self) -> float:
        """When it was over, evaluation included."""
        return max(time for time in (self.stop, self.eval_stop) if time is not None)

    @property
    def trained(self) -> float:
        """When its training part was over: at its evaluation, if that lies within it."""
        return min(time for time in (self.stop, self.eval_start) if time is not None)


def run_of(job: Job, file: Path, ranks: int | None, submission: Mapping[str, Any]) -> ImportedRun:
    """The run of one job; ``ranks`` where the log states none. Raises ImportRefusedError."""
    assumed: dict[str, str] = {}
    variant: dict[str, str] = {}
    point, samples = _point(job, ranks, submission, assumed, variant)
    epochs = _epochs(job)
    target, error = point.get("target_mae"), epochs[-1].error if epochs else None
    met = is_number(target) and error is not None and error <= target
    after = f" after {counted(len(epochs), 'epoch')}"
    status, reached, unfinished = ending(job, met, after)
    kind = submission_kind(file)
    variant |= {"MLPerf's scaling": kind} if kind else {}
    start, stop = job.moment("run_start"), job.moment("run_stop")
    assert start is not None
    notes = {
        **notes_of(job, submission, assumed, status),
        "training_times": "from the start of an epoch to its evaluation, of the whole job",
        "seed": "repeats of a point may have other seeds; the point has the default",
    }
    if stop is not None and kind != "weak":  # a rate of models, no score
        notes[SCORE] = {"factor": 1.0, "runs": SCORED_RUNS, "dropped": 1}
    # One that ran all epochs that it was to run has finished, whatever it calls itself.
    whole = stop is not None and job.value("epochs") == len(epochs)
    spans = [*job.span("init", "init"), *job.span("data_staging", "staging")]
    for epoch in epochs:
        spans += span_of("training", epoch.start, epoch.trained)
        spans += span_of("validation", epoch.eval_start, epoch.eval_stop)
    return ImportedRun(
        benchmark=BENCHMARK,
        point=point,
        file=file,
        line=job.lines[0],
        source_digest=digest_of([repr([e.ms, e.key, e.value, e.metadata]) for e in job.events]),
        variant=variant,
        samples=_samples(epochs),
        samples_per_epoch=samples,
        metrics=_metrics(epochs, samples, _seconds(start, stop), reached),
        notes=notes,
        unfinished="" if whole else unfinished,
        **times_of(job, spans),
    )


def _seconds(start: float | None, stop: float | None) -> float | None:
    return None if start is None or stop is None else (stop - start) / 1000


def _point(
    job: Job,
    ranks: int | None,
    submission: Mapping[str, Any],
    assumed: dict[str, str],
    variant: dict[str, str],
) -> tuple[dict[str, Any], int]:
    """Parameters from a log and the samples of an epoch; what is assumed, and what sets the run
    apart, are added. Raises ImportRefusedError."""
    # How many epochs a run needed is its outcome: runs that needed more are repeats all the same.
    point: dict[str, Any] = {"epochs": None, **ranks_of(job, ranks, assumed, {})}
    shared = {
        "train_samples": "samples_per_rank", "global_batch_size": "batch_size",
        "eval_samples": "validation_samples_per_rank",
    }  # fmt: skip
    for key, name in shared.items():
        total, count = job.count(key), point["ranks"]
        if total is None and key == "eval_samples":
            continue
        if total is None or total % count or not (total or key == "eval_samples"):
            what = f"{key} {total} does not divide evenly among {count:,} ranks"
            raise ImportRefusedError(what, job.find(key)[0].line if total else job.lines[1])
        point[name] = total // count
    stated = {name: job.value(key) for key, name in _SAME.items()}
    point |= {name: value for name, value in stated.items() if value is not None}
    if "target_mae" not in point and "submission_division" in submission:
        point["target_mae"], assumed["target_mae"] = TARGET_MAE, "MLPerf HPC's rules"
    if (optimizer := job.value("opt_name")) is not None:
        point["optimizer"] = str(optimizer).lower()
    point |= _learning_rate(job, point["batch_size"] * point["ranks"], variant)
    point |= _decay(job, assumed, variant)
    if decay := job.value("opt_weight_decay"):
        variant["opt_weight_decay"] = str(decay)
    # A platform's name has the counts of ranks or nodes in it.
    counts = [it for it in (point["ranks"], job.count("number_of_nodes")) if it]
    words = rf"(?<![\d.])(?:{'|'.join(map(str, counts))})(?:\.0)?(?![\d.])"
    for key in ("submission_org", "submission_platform", "submission_division"):
        if key in submission:
            variant[key] = re.sub(words, "N", str(submission[key]))[:80]
    return point, point["samples_per_rank"] * point["ranks"]


def _learning_rate(job: Job, batch: int, variant: dict[str, str]) -> dict[str, Any]:
    """Base and reference batch of the rate.

    opt_base_learning_rate is the peak, base rate times scaling factor, and
    opt_learning_rate_warmup_factor that factor (MLPerf HPC training rules,
    "Hyperparameters and Optimizer").
    """
    of_factor = "opt_learning_rate_warmup_factor"
    peak, factor = job.value("opt_base_learning_rate"), job.value(of_factor)
    if not is_number(peak) or not 0 <= peak < math.inf:
        return {}
    reference = batch / factor if is_number(factor) and factor > 0 else math.nan
    if not (reference >= 1 and reference == int(reference)):
        variant |= {} if factor is None else {of_factor: str(factor)}
        return {"base_learning_rate": float(peak), "learning_rate_reference_batch": batch}
    # Rounded, so that 0.006 / 6 is 0.001 at every batch size.
    rate = float(f"{peak / factor:.9g}")
    return {"base_learning_rate": rate, "learning_rate_reference_batch": int(reference)}


def _decay(job: Job, assumed: dict[str, str], variant: dict[str, str]) -> dict[str, Any]:
    """Epochs and factors of the decay, each factor of the peak."""
    boundaries = job.value("opt_learning_rate_decay_boundary_epochs")
    factors = job.value("opt_learning_rate_decay_factor")
    if isinstance(boundaries, list) and is_number(factors):
        # The reference writes the largest only (utils/optimizers.py of cosmoflow-benchmark).
        if len(boundaries) > 1:
            assumed["decay_factors"] = f"the log states {factors:g}; each next is taken as half"
        factors = [factors / 2**place for place in range(len(boundaries))]
    lists = isinstance(boundaries, list) and isinstance(factors, list)
    if lists and len(factors) == len(boundaries):
        return {"decay_epochs": boundaries, "decay_factors": factors}
    # Steps, or another kind of decay: no parameter says so.
    if (boundaries, factors) != (None, None):
        variant["learning rate decay"] = str([boundaries, factors])
    return {}


def _epochs(job: Job) -> list[_Epoch]:
    """The epochs of a run that were ended, in order; one more may have begun.

    Those that began once the run had stopped are not of it: programs of v3.0 went on training.
    Raises ImportRefusedError, with the line, where they contradict each other or one is missing.
    """
    epochs: dict[int, _Epoch] = {}
    number: int | None = None
    for event in job.find(*_OF_EPOCH):
        stated = event.metadata.get("epoch_num", event.metadata.get("first_epoch_num"))
        several = event.key.startswith("block_") and event.metadata.get("epoch_count", 1) != 1
        if several or (stated is None and _OF_EPOCH[event.key] == "start"):
            raise ImportRefusedError(f"{event.key} of no single epoch", event.line)
        if stated is not None and (not is_number(stated) or stated != int(stated)):
            raise ImportRefusedError(f"{event.key}: epoch {stated!a:.20} is no number", event.line)
        here = number if stated is None else int(stated)
        number = here if _OF_EPOCH[event.key] == "start" else number
        if here is not None:  # else an evaluation before the first epoch
            _take(epochs.setdefault(here, _Epoch(here, event.line)), event)
    stop = job.moment("run_stop")
    begun = [
        epoch
        for _, epoch in sorted(epochs.items())
        if epoch.start is not None and (stop is None or epoch.start < stop)
    ]
    for before, after in pairwise(begun):
        if after.number != before.number + 1:
            raise ImportRefusedError(f"epoch {before.number + 1} is missing", after.line)
        if not before.complete:
            raise ImportRefusedError(f"epoch {before.number} has no end", before.line)
    whole = [epoch for epoch in begun if epoch.complete]
    previous = job.began
    for epoch in whole:
        times = [previous, epoch.start, epoch.trained, epoch.end]
        if sorted(times) != times:  # type: ignore[type-var]
            what = f"epoch {epoch.number}: its end is earlier than its start"
            raise ImportRefusedError(what, epoch.line)
        previous = epoch.start
    if whole and stop is not None and whole[-1].end > stop + STRAGGLE_MS:
        raise ImportRefusedError(f"epoch {whole[-1].number} ends after run_stop", whole[-1].line)
    return whole


def _take(epoch: _Epoch, event: Event) -> None:
    """Take what an event says of its epoch: of several ranks the first to start, the last to stop.
    Raises ImportRefusedError."""
    name = _OF_EPOCH[event.key]
    before = getattr(epoch, name)
    if name not in ("error", "rate"):
        later = max if name.endswith("stop") else min
        setattr(epoch, name, event.ms if before is None else later(before, event.ms))
        rates = event.metadata.get("lr")
        rate = rates[0] if isinstance(rates, list) and rates else rates
        if name == "start" and is_number(rate):
            epoch.rate = float(rate)
        return
    value = math.nan if event.value is None else event.value
    if not is_number(value):
        raise ImportRefusedError(f"{event.key} {str(value)[:40]!a} is no number", event.line)
    if name == "error" and before not in (None, value) and not math.isnan(value):
        raise ImportRefusedError(
            f"{event.key} of epoch {epoch.number} is {before} and {value}: the lines of several "
            "runs or ranks are mixed",
            event.line,
        )
    setattr(epoch, name, float(value))


def _samples(epochs: Sequence[_Epoch]) -> dict[str, Floats]:
    """Arrays [epoch, 1] of the whole job; NaN where an epoch was not evaluated."""
    first = epochs[0].start if epochs else None
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


def _metrics(
    epochs: Sequence[_Epoch], samples: int, seconds: float | None, reached: bool
) -> dict[str, dict[str, Any]]:
    time = sum(_seconds(epoch.start, epoch.trained) or 0.0 for epoch in epochs)
    rate = len(epochs) * samples / time if time else None
    return declared_metrics(BENCHMARK, {
        "run_time": seconds,
        "time_to_target": seconds if reached else None,
        "epochs_run": len(epochs),
        "training_time": time if epochs else None,
        "training_samples_per_second": rate,
        "final_validation_mae": epochs[-1].error if epochs else None,
    })  # fmt: skip
