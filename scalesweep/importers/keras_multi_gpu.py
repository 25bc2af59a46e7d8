"""Runs of keras-multi-gpu's benchmark_inception3_resnet50.py from its logs.

The callback SamplesPerSec prints, after every epoch, the median of batch size over batch time
over all batches since training began; the program prints it once more at the end
(rossumai/keras-multi-gpu, keras_tf_multigpu/callbacks.py and examples/).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.compute.log_lines import Line
from scalesweep.core.files import digest_of
from scalesweep.importers.command_echo import Echo, is_damaged, read_echo
from scalesweep.importers.imported_run import GPU, ImportedRun, ImportRefusedError, Refusal
from scalesweep.importers.tf_timestamps import TensorFlowLog, is_startup

BENCHMARK = "keras_multi_gpu"
PROGRAMS = ("benchmark_inception3_resnet50.py",)
METHOD = ("method", "parameter_device")
# Line of the header -> parameter, and the flags that set it.
HEADER = {
    "architecture": ("model", "a", "arch"),
    "number of GPUs": ("devices_per_rank", "g", "gpus"),
    "parameter server": ("parameter_device", "p", "parameter-server"),
    "parallelization method": ("method", "m", "method"),
    "epochs": ("epochs", "e", "epochs"),
    "batch_size": ("global_batch_size", "b", "batch-size"),
}
_HEADER = re.compile(rf"({'|'.join(HEADER)}): (\w{{1,40}})\s*", re.ASCII)
_PARAMETERS = re.compile(r"Number of parameters: (\d{1,15})\s*", re.ASCII)
_EPOCH = re.compile(r"Epoch (\d{1,7})/(\d{1,7})\s*", re.ASCII)
# Printed with two decimals, often behind a progress bar; TensorFlow may write right behind it.
_RATE = re.compile(r"Samples/sec: (\d{1,12}\.\d\d)\s*(?=$|\d{4}-\d\d-\d\d )", re.ASCII)
_OTHER_PROGRAM = re.compile(r"\++\s(?:[^\s=]+=\S*\s+)*\S*python[\d.]*\s")


@dataclass
class _Job:
    """The lines of one run."""

    first_line: int
    echo: Echo | None = None
    tensorflow: TensorFlowLog = field(default_factory=TensorFlowLog)
    header: dict[str, str] = field(default_factory=dict)
    parameters: int | None = None
    epochs: set[int] = field(default_factory=set)
    rates: list[tuple[int, str]] = field(default_factory=list)
    broken: int | None = None
    last_line: int = 0

    @property
    def empty(self) -> bool:
        """Whether the program has not printed anything."""
        return not (self.header or self.rates)

    @property
    def complete(self) -> bool:
        """Whether the median of every epoch is there."""
        epochs = self.header.get("epochs", "")
        return epochs.isdigit() and len(epochs) < 10 and len(self.rates) >= int(epochs)


def read_jobs(lines: Callable[[], Iterable[Line]], file: Path) -> Iterator[ImportedRun | Refusal]:
    """The runs of a log and the refusals in order; ``lines()`` are those of ``file``."""
    for job in _split(lines()):
        try:
            yield _run(job, file)
        except ImportRefusedError as error:
            words = [job.header[key] for key in ("architecture",) if key in job.header]
            name = f"{', '.join(words)} (from line {job.first_line}): " if words else ""
            reason = str(error)
            yield Refusal(file, f"{name}{reason}", error.line, BENCHMARK, kind=reason)


def _split(lines: Iterable[Line]) -> Iterator[_Job]:
    """The runs of a log in order, cut ones too."""
    job = _Job(1)
    for line in lines:
        text = line.text
        echo = read_echo(text, PROGRAMS, line.number)
        if echo or _OTHER_PROGRAM.match(text) or _begins(job, text):
            if not job.empty:
                yield job
            job = _Job(line.number, echo)
        _add_line(job, line, text)
    if not job.empty:
        yield job


def _begins(job: _Job, text: str) -> bool:
    """Whether a line is of another run than the one at hand."""
    if text.startswith("architecture: "):
        return "architecture" in job.header or bool(job.rates)
    return bool(job.rates) and (text.startswith("Using TensorFlow") or is_startup(text))


def _add_line(job: _Job, line: Line, text: str) -> None:
    job.tensorflow.add(line)
    if job.empty and job.echo is None:
        job.first_line = line.number
    if header := _HEADER.fullmatch(text):
        job.header.setdefault(header[1], header[2])
    elif parameters := _PARAMETERS.fullmatch(text):
        job.parameters = int(parameters[1])
    elif epoch := _EPOCH.fullmatch(text):
        job.epochs.add(int(epoch[2]))
    elif rate := _RATE.search(text):
        job.rates.append((line.number, rate[1]))
    else:
        if "Samples/sec:" in text or (is_damaged(text) and not job.complete):
            job.broken = job.broken or line.number
        return
    job.last_line = line.number


def _run(job: _Job, file: Path) -> ImportedRun:
    """The run of one job in a log; its dates are those of TensorFlow's lines, else the file's own.

    Raises ImportRefusedError if a line is missing in the header.
    """
    if missing := [key for key in HEADER if key not in job.header]:
        raise ImportRefusedError(f"the header lacks {', '.join(missing)}", job.first_line)
    point, differences = _point(job)
    rates = _rates(job, point["epochs"])
    modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    stamps = job.tensorflow.stamps or [modified]
    gpu = job.tensorflow.gpu_model(point["devices_per_rank"])
    evidence = [job.header, job.parameters, [text for _, text in job.rates]]
    notes: dict[str, Any] = {
        "importer": "keras-multi-gpu log",
        "lines": [job.first_line, job.last_line],
        "header": job.header,
        "dates": job.tensorflow.dates,
    }
    if differences:
        notes["command_differs"] = differences
    return ImportedRun(
        benchmark=BENCHMARK,
        point=point,
        file=file,
        line=job.first_line,
        source_digest=digest_of([evidence, [str(stamp) for stamp in job.tensorflow.stamps]]),
        started=min(stamps),
        ended=max(stamps),
        variant={GPU: gpu} if gpu else {},
        samples={"median_images_per_second": np.array(rates, np.float64)},
        metrics=_metrics(rates[-1], job.parameters),
        environment={"node": job.tensorflow.node(point["devices_per_rank"])},
        notes=notes,
        command=job.echo.words if job.echo else (),
    )


def _point(job: _Job) -> tuple[dict[str, Any], dict[str, str]]:
    """Parameters by the header, and where the command says something else."""
    point: dict[str, Any] = {}
    differences: dict[str, str] = {}
    for key, (name, *flags) in HEADER.items():
        text = job.header[key]
        point[name] = int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else text
        for flag in flags:
            passed = job.echo.flags.get(flag) if job.echo else None
            if passed not in (None, text):
                differences[name] = f"-{flag} {passed}, the header says {text}"
    return point, differences


def _rates(job: _Job, epochs: int) -> list[float]:
    """The median after every epoch; raises ImportRefusedError unless all are there."""
    if job.broken is not None and (job.complete or job.broken <= job.last_line):
        raise ImportRefusedError("a damaged line", job.broken)
    if others := job.epochs - {epochs}:
        raise ImportRefusedError(f"{min(others)} epochs, the header says {epochs}", job.last_line)
    count = len(job.rates)
    if count < epochs:
        raise ImportRefusedError(f"cut: Samples/sec of {count} epochs of {epochs}", job.last_line)
    # One more is the program's last word, of the same batches as the last epoch's.
    if count > epochs + 1:
        raise ImportRefusedError(f"Samples/sec {count} times in {epochs} epochs", job.rates[-1][0])
    rates = [float(text) for _, text in job.rates]
    if not all(rate > 0 for rate in rates):
        raise ImportRefusedError("Samples/sec of 0", job.last_line)
    return rates


def _metrics(rate: float, parameters: int | None) -> dict[str, dict[str, Any]]:
    metrics = {
        "median_images_per_second": {
            "value": rate, "unit": "images/s", "better": "higher", "scope": "total",
        }
    }  # fmt: skip
    if parameters is not None:
        metrics["model_parameters"] = {
            "value": parameters, "unit": "parameters", "better": "lower", "scope": "rank",
        }  # fmt: skip
    return metrics
