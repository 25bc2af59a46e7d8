"""Logs in MLPerf's format, with made-up numbers."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from scalesweep.importers.imported_run import ImportedRun, Refusal
from tests.fakes.imported_runs import Read

T0 = 1_600_000_000_000  # ms
TRAINING, EVALUATION = 100_500, 20_250
CLOSED = {
    "submission_org": "ORG", "submission_division": "closed", "submission_platform": "Machine",
}  # fmt: skip
HYPERPARAMETERS: dict[str, Any] = {
    "global_batch_size": 64, "train_samples": 4096, "eval_samples": 1024, "opt_name": "SGD",
    "opt_base_learning_rate": 0.002, "opt_learning_rate_warmup_epochs": 4,
    "opt_learning_rate_warmup_factor": 2.0, "opt_learning_rate_decay_boundary_epochs": [32, 64],
    "opt_learning_rate_decay_factor": 0.25,
}  # fmt: skip


def line(key: str, ms: int, value: Any = None, kind: str | None = None, **metadata: Any) -> str:
    """One event."""
    kinds = {"start": "INTERVAL_START", "stop": "INTERVAL_END"}
    content = {
        "namespace": "",
        "time_ms": ms,
        "event_type": kind or kinds.get(key.rpartition("_")[2], "POINT_IN_TIME"),
        "key": key,
        "value": value,
        "metadata": {"file": "train.py", "lineno": 7, **metadata},
    }
    return f":::MLLOG {json.dumps(content)}\n"


def head(ms: int = T0, benchmark: str = "cosmoflow", **told: Any) -> list[str]:
    """Up to run_start, 5 s after ``ms``, and the hyperparameters; a value None is left out."""
    values = {**HYPERPARAMETERS, **told}
    origin = {**CLOSED, **{k: values.pop(k) for k in list(values) if k.startswith("submission_")}}
    return [
        line("cache_clear", ms),
        line("init_start", ms + 1000),
        line("submission_benchmark", ms + 2000, benchmark),
        *(line(key, ms + 2000, value) for key, value in origin.items() if value is not None),
        line("init_stop", ms + 4500),
        line("run_start", ms + 5000),
        *(line(key, ms + 5010, value) for key, value in values.items() if value is not None),
        line("staging_start", ms + 5100),
        line("staging_stop", ms + 9100),
    ]


def epoch(number: int, ms: int, error: float) -> list[str]:
    """An epoch as TensorFlow's reference writes it: its evaluation within, then a rest of 2 s."""
    trained, evaluated = ms + TRAINING, ms + TRAINING + EVALUATION
    return [
        line("epoch_start", ms, epoch_num=number),
        line("eval_start", trained, epoch_num=number),
        line("eval_stop", evaluated, epoch_num=number),
        line("epoch_stop", evaluated + 2000, epoch_num=number),
        line("eval_error", evaluated + 2000, error, epoch_num=number),
    ]


EPOCH = TRAINING + EVALUATION + 2000


def training(
    errors: Sequence[float] = (0.4, 0.2, 0.12),
    ms: int = T0,
    status: str | None = "success",
    first: int = 0,
    **told: Any,
) -> list[str]:
    """Lines of a whole run; with ``status`` None it ends without run_stop."""
    begin = ms + 10_000
    lines = head(ms, **told)
    for place, error in enumerate(errors):
        lines += epoch(first + place, begin + place * EPOCH, error)
    if status is not None:
        lines.append(line("run_stop", begin + len(errors) * EPOCH + 30, status=status))
    return lines


def run_time(epochs: int = 3) -> float:
    """Seconds from run_start to run_stop of ``training``."""
    return (5000 + epochs * EPOCH + 30) / 1000


def one(read: Read, lines: Iterable[str], ranks: int | None = 32) -> ImportedRun:
    (found,), refusals = read(lines, ranks=ranks)
    assert refusals == []
    return found


def why(read: Read, lines: Iterable[str]) -> Refusal:
    runs, (refusal,) = read(lines, ranks=32)
    assert runs == []
    return refusal


def values(run: ImportedRun) -> dict[str, float]:
    return {name: metric["value"] for name, metric in run.metrics.items()}


def swap(lines: list[str], old: str, new: str) -> list[str]:
    assert any(old in text for text in lines)
    return [text.replace(old, new) for text in lines]
