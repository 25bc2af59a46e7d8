"""Runs of tf_cnn_benchmarks from its logs. What is not whole is refused with its line.

Of a Horovod job every rank prints lines of progress of its own and the job's total, which is
taken once: from rank 0 where labels tell the ranks, else the first in the log.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.compute.log_lines import Line
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of
from scalesweep.importers.imported_run import GPU, ImportedRun, ImportRefusedError, Refusal
from scalesweep.importers.tf_cnn_log import Job, Process, Step, Value, split_jobs
from scalesweep.importers.tf_cnn_point import TfCnnPoint, complete, read_point

BENCHMARK = "tf_cnn_benchmarks"
METHOD = ("variable_update", "parameter_device", "all_reduce_spec")
# Totals of one job's ranks differ by less; more are of several jobs.
AGREE = 0.05
# Time between the steps is in the total alone, but there is little.
UNLIKE = 2.0


def read_jobs(lines: Callable[[], Iterable[Line]], file: Path) -> Iterator[ImportedRun | Refusal]:
    """The runs of a log and the refusals in order.

    ``lines`` gives the lines of ``file`` from its beginning, as often as it is called.
    """
    # Seldom more than the first job is read for this.
    echoed = any(job.echo for job in split_jobs(lines()))
    for job in split_jobs(lines()):
        try:
            if echoed and job.echo is None and job.has_header:
                raise ImportRefusedError(
                    "no command before it, as other runs of this log have: what its header does "
                    "not state is unknown",
                    job.first_line,
                )
            yield _run(job, file)
        except ImportRefusedError as error:
            reason = str(error)
            yield Refusal(file, f"{_named(job)}{reason}", error.line, BENCHMARK, kind=reason)


def _named(job: Job) -> str:
    """The job in words, as far as its header goes."""
    processes = list(job.processes.values())
    words = [processes[0].first(key) for key in ("Model", "Data format", "Variables")]
    words = [word[:40] for word in words if word]
    if devices := processes[0].first("Devices"):
        words.insert(1, f"{devices.count(chr(39)) // 2} devices")
    return f"{', '.join(words)} (from line {job.first_line}): " if words else ""


def _run(job: Job, file: Path) -> ImportedRun:
    """The run of one job in a log, its images per second from the lines of progress of each rank.

    Raises ImportRefusedError if the header, the lines of progress and the total do not agree.
    """
    header = _header(job)
    ranks = _ranks(job)
    printed = _parameters(job)
    try:
        point = read_point(header, job.echo, printed, len(job.processes))
    except UserError as error:
        raise ImportRefusedError(str(error), job.first_line) from None
    streams = _streams(job, ranks)
    total = _total(job, point, streams)
    try:
        by_default = job.echo is not None and "num_epochs" not in job.echo.flags
        complete(point, [step.step for step in streams[0]], by_default)
    except UserError as error:
        raise ImportRefusedError(str(error), streams[0][-1].line) from None
    modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    stamps = job.tensorflow.stamps or [modified]
    if gpu := job.tensorflow.gpu_model(point.values["devices_per_rank"]):
        point.variant[GPU] = gpu
    return ImportedRun(
        benchmark=BENCHMARK,
        point=point.values,
        file=file,
        line=job.first_line,
        source_digest=digest_of([job.evidence, [str(stamp) for stamp in job.tensorflow.stamps]]),
        started=min(stamps),
        ended=max(stamps),
        variant=point.variant,
        samples=_samples(streams),
        metrics=_metrics(streams, float(total.text), printed),
        environment={
            "versions": {"tensorflow": header.get("TensorFlow")},
            "node": job.tensorflow.node(point.values["devices_per_rank"]),
        },
        notes=_notes(job, header, point, total, streams),
        command=job.echo.words if job.echo else (),
    )


def _header(job: Job) -> dict[str, str]:
    """The one header of all processes; raises ImportRefusedError if there is none or they
    differ."""
    header: dict[str, str] = {}
    for process in job.processes.values():
        for key, values in process.headers.items():
            for value in values:
                if header.setdefault(key, value.text) != value.text:
                    raise ImportRefusedError(
                        f"another {key} ({value.text[:40]}) within one header: "
                        "the lines of several jobs are mixed",
                        value.line,
                    )
    if not header:
        what = "lines of progress" if job.stepped else "a total"
        raise ImportRefusedError(f"{what} without a header", job.first_line)
    return header


def _ranks(job: Job) -> int:
    """How many ranks print lines of their own; raises ImportRefusedError if the log does not show
    it."""
    expected = max(1, job.horovod_ranks)
    labelled = [rank for rank in job.processes if rank is not None]
    horovod = any(process.first("Variables") == "horovod" for process in job.processes.values())
    if labelled and None in job.processes:
        raise ImportRefusedError("some lines have a rank's label, others have none", job.first_line)
    if len(labelled) > 1 and not horovod:
        raise ImportRefusedError(
            f"{len(labelled)} separate processes, none of which trains with the others",
            job.first_line,
        )
    if len(labelled) > 1 and job.horovod_ranks and len(labelled) != expected:
        raise ImportRefusedError(
            f"{len(labelled)} of {expected} ranks are in the log", job.last_line
        )
    return expected if horovod else 1


def _parameters(job: Job) -> int | None:
    """Parameters of one copy of the model: what was printed while the first was built."""
    first = next(iter(job.processes.values())).parameters
    return int(first[0].text) if first else None


def _streams(job: Job, ranks: int) -> list[list[Step]]:
    """Lines of progress by rank, or, without labels, in the order in which each was printed.

    Raises ImportRefusedError if lines are damaged, mixed or lost.
    """
    if broken := [value for value in job.broken if not _is_end(job, value)]:
        raise ImportRefusedError(f"a damaged line: {broken[0].text!a}", broken[0].line)
    streams = []
    for rank, process in sorted(job.processes.items(), key=lambda item: item[0] or 0):
        whose = "" if rank is None else f"rank {rank}: "
        if not process.steps:
            raise ImportRefusedError(f"{whose}cut: no line of progress", job.last_line)
        if not process.totals:
            last = process.steps[-1]
            raise ImportRefusedError(
                f"{whose}cut: no 'total images/sec' behind step {last.step}", last.line
            )
        streams += _by_occurrence(process, 1 if rank is not None else ranks)
    steps = [step.step for step in streams[0]]
    for stream in streams[1:]:
        if [step.step for step in stream] != steps:
            raise ImportRefusedError("ranks printed different steps", stream[-1].line)
    return streams


def _is_end(job: Job, broken: Value) -> bool:
    """Whether a line that cannot be read is where a log was cut."""
    missing = not all(process.totals for process in job.processes.values())
    return missing and broken.line > job.last_line


def _by_occurrence(process: Process, ranks: int) -> list[list[Step]]:
    """The first line of every step, the second of every step, and so on."""
    streams: list[list[Step]] = []
    seen: dict[int, int] = {}
    for step in process.steps:
        place = seen.get(step.step, 0)
        seen[step.step] = place + 1
        if place == len(streams):
            streams.append([])
        streams[place].append(step)
    if len(streams) > 1 and ranks == 1:
        raise ImportRefusedError(
            f"step {streams[1][0].step} comes twice: the lines of several processes are mixed",
            streams[1][0].line,
        )
    for stream in streams:
        for before, after in pairwise(stream):
            if after.step <= before.step:
                raise ImportRefusedError(
                    f"step {after.step} follows step {before.step}", after.line
                )
    counts = set(seen.values())
    if len(counts) > 1 or counts - {1, ranks}:
        raise ImportRefusedError(
            f"{min(counts)} to {max(counts)} lines of each step, of {ranks} ranks",
            process.steps[-1].line,
        )
    return streams


def _total(job: Job, point: TfCnnPoint, streams: list[list[Step]]) -> Value:
    """The total of the job; raises ImportRefusedError if several, or its steps, contradict it."""
    count = len(streams)
    lowest = min(job.processes, key=lambda rank: rank or 0)
    totals = job.processes[lowest].totals
    different = {total.text for total in totals}
    labelled = lowest is not None
    if len(different) > 1 and (labelled or count == 1):
        second = next(total for total in totals if total.text != totals[0].text)
        raise ImportRefusedError(f"two totals, {totals[0].text} and {second.text}", second.line)
    if not labelled and (len(totals) % count or (len(different) > 1 and len(totals) != count)):
        raise ImportRefusedError(f"{len(totals)} totals of {count} ranks", totals[-1].line)
    numbers = [float(total.text) for process in job.processes.values() for total in process.totals]
    if not all(number > 0 for number in numbers):
        raise ImportRefusedError("a total of 0 images/sec", totals[0].line)
    if max(numbers) - min(numbers) > AGREE * max(numbers):
        raise ImportRefusedError(
            f"totals from {min(numbers):g} to {max(numbers):g}: not of one job", totals[-1].line
        )
    _check_rate(point, float(totals[0].text), streams, totals[0].line)
    return totals[0]


def _check_rate(point: TfCnnPoint, total: float, streams: list[list[Step]], line: int) -> None:
    """The total and the last lines are of the same steps: a factor between them is damage."""
    ranks = point.values["ranks"]
    if ranks > 1 and point.values["variable_update"] != "horovod":
        return  # some of TensorFlow's own distributed modes print lines of all workers
    rate = ranks * (_mean([stream[-1].mean for stream in streams]) or 0.0)
    if not rate / UNLIKE < total < rate * UNLIKE:
        raise ImportRefusedError(
            f"a total of {total:g} images/sec does not go with {rate:g} in the lines above it", line
        )


def _samples(streams: list[list[Step]]) -> dict[str, Floats]:
    """Lines of progress as arrays [line, rank]; ``steps`` is [line]."""

    def array(name: str) -> Floats:
        values = [[getattr(step, name) for step in stream] for stream in streams]
        return np.array(values, np.float64).T

    return {
        "steps": np.array([step.step for step in streams[0]], np.float64),
        "images_per_second": array("mean"),
        "images_per_second_uncertainty": array("uncertainty"),
        "images_per_second_jitter": array("jitter"),
        "losses": array("loss"),
    }


def _metrics(
    streams: list[list[Step]], total: float, parameters: int | None
) -> dict[str, dict[str, Any]]:
    """Metrics of a record; of what every rank prints, the mean over ranks."""
    last = [stream[-1] for stream in streams]
    metrics: dict[str, tuple[float | None, str, str, str]] = {
        "total_images_per_second": (total, "images/s", "higher", "total"),
        "images_per_second": (_mean([s.mean for s in last]), "images/s", "higher", "rank"),
        "images_per_second_uncertainty": (
            _mean([s.uncertainty for s in last]), "images/s", "lower", "rank",
        ),
        "images_per_second_jitter": (_mean([s.jitter for s in last]), "images/s", "lower", "rank"),
        "final_loss": (_mean([s.loss for s in last]), "1", "lower", "rank"),
        "model_parameters": (parameters, "parameters", "lower", "rank"),
    }  # fmt: skip
    return {
        name: {"value": value, "unit": unit, "better": better, "scope": scope}
        for name, (value, unit, better, scope) in metrics.items()
        if value is not None
    }


def _mean(values: list[float | None]) -> float | None:
    """The mean; None if a value is missing or no number."""
    array = np.array(values, np.float64)
    return float(array.mean()) if np.isfinite(array).all() else None


def _notes(
    job: Job,
    header: dict[str, str],
    point: TfCnnPoint,
    total: Value,
    streams: list[list[Step]],
) -> dict[str, Any]:
    """What the record says of how the log was read: its header, the lines, and what was assumed."""
    notes: dict[str, Any] = {
        "importer": "tf_cnn_benchmarks log",
        "lines": [job.first_line, job.last_line],
        "header": header,
        "assumed": point.assumed,
        "total_line": total.line,
        "dates": job.tensorflow.dates,
    }
    totals = [value.text for process in job.processes.values() for value in process.totals]
    if len(totals) > 1:
        notes["totals"] = totals
        notes["totals_meaning"] = "each is of the whole job and is printed once per rank"
    if len(streams) > 1:
        notes["ranks"] = "what every rank prints is the mean over ranks; arrays are [line, rank]"
    if point.differences:
        notes["command_differs"] = point.differences
    if point.variant:
        notes["variant"] = point.variant
    if job.echo and "CUDA_VISIBLE_DEVICES" in job.echo.variables:
        notes["visible_gpus"] = job.echo.variables["CUDA_VISIBLE_DEVICES"]
    if any(
        not np.isfinite(s.loss) for stream in streams for s in stream[-1:] if s.loss is not None
    ):
        notes["final_loss"] = "not a finite number"
    return notes | _parameter_notes(job)


def _parameter_notes(job: Job) -> dict[str, Any]:
    """What was printed of the model's parameters, if more than one number was."""
    numbers = [int(v.text) for process in job.processes.values() for v in process.parameters]
    if len(set(numbers)) < 2:
        return {}
    of_one = next(iter(job.processes.values())).parameters
    first = [int(value.text) for value in of_one]
    # The count runs on from device to device; the global step, one of the first count, once.
    running = [(index + 1) * first[0] - index for index in range(len(first))]
    meaning = (
        "counted while each device's copy was built; model_parameters is the first, one copy"
        if first == running
        else "the numbers do not fit copies of one model; model_parameters is the first as printed"
    )
    return {"printed_parameters": numbers, "printed_parameters_meaning": meaning}
