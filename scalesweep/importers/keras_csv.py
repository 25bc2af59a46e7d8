"""Histories that Keras's CSVLogger left: a row per epoch with its losses and accuracies.

A history states neither program, model, ranks nor times (keras/callbacks/csv_logger.py). It becomes
a run of a benchmark that an import makes, ``keras_history``, whose only parameters are the name of
its file and the ranks; no time is made up.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.compute.log_lines import PACKED, Line
from scalesweep.core.files import digest_of
from scalesweep.importers.imported_run import (
    ImportedRun,
    ImportRefusedError,
    Refusal,
    file_dates,
    shown,
)
from scalesweep.importers.made_benchmark import Made, parameter_entry
from scalesweep.importers.repeat_names import plain_name

BENCHMARK = "keras_history"
MADE = Made(
    "Trainings by the histories that Keras's CSVLogger left: losses and accuracies by epoch.",
    {
        "history": parameter_entry(
            "string", "Name of the history's file, without the number of a repeat.", None, True
        )
    },
    {
        "final_validation_loss": "val_loss of the last epoch",
        "final_validation_accuracy": "val_acc or val_accuracy of the last epoch",
        "final_validation_mae": "val_mae or val_mean_absolute_error of the last epoch",
        "final_loss": "loss of the last epoch",
        "final_accuracy": "acc or accuracy of the last epoch",
        "final_mae": "mae or mean_absolute_error of the last epoch",
        "epochs_run": "epochs in the history",
    },
)
# Lightning's CSVLogger has a column of steps, and several rows in an epoch.
SIGN = re.compile(
    r'^\ufeff?"?epoch"?[,;\t](?!.*\btrain\Wdevice)(?!(?:.*[,;\t])?"?step"?(?:[,;\t]|\s*$))'
    r"(?=.*\b(?:val_)?(?:loss|acc|accuracy)\b)"
)

# Column -> array, and the metric's direction.
_COLUMNS = {
    "loss": ("loss", "lower"), "val_loss": ("validation_loss", "lower"),
    "acc": ("accuracy", "higher"), "accuracy": ("accuracy", "higher"),
    "val_acc": ("validation_accuracy", "higher"),
    "val_accuracy": ("validation_accuracy", "higher"),
    "mae": ("mae", "lower"), "mean_absolute_error": ("mae", "lower"),
    "val_mae": ("validation_mae", "lower"),
    "val_mean_absolute_error": ("validation_mae", "lower"),
    "lr": ("learning_rate", ""), "learning_rate": ("learning_rate", ""),
}  # fmt: skip
_MISSING = ("", "na", "nan", "none")
_NUMBER = re.compile(
    r"[+-]?(?:(?:\d{1,30}\.?\d{0,40}|\.\d{1,40})(?:[eE][+-]?\d{1,4})?|inf)", re.ASCII
)
_EPOCH = re.compile(r"\d{1,9}", re.ASCII)


@dataclass
class _History:
    """Rows of one training: values by column, an entry per epoch."""

    first_line: int
    names: Sequence[str]
    last_line: int = 0
    rows: list[list[float]] = field(default_factory=list)


def read_runs(
    lines: Callable[[], Iterable[Line]], file: Path, ranks: int | None = None
) -> Iterator[ImportedRun | Refusal]:
    """The trainings of a history and the refusals in order; ``lines()`` are those of ``file``."""
    try:
        for history in _histories(lines()):
            yield _run(history, file, ranks)
    except ImportRefusedError as error:
        yield Refusal(file, str(error), error.line, BENCHMARK)


def _histories(lines: Iterable[Line]) -> Iterator[_History]:
    """Each training: it begins at epoch 0, also where it was appended to the one before."""
    history: _History | None = None
    names: list[str] = []
    separator = ","
    for line in lines:
        text = line.text.strip()
        if not text:
            continue
        if SIGN.match(text):
            separator = next(mark for mark in ",;\t" if mark in text)
            names = _header(text, separator, line.number)
        elif names:
            epoch, values = _row(text, separator, names, line.number)
            if epoch == 0:
                if history:
                    yield history
                history = _History(line.number, names)
            if history is None or history.names != names or epoch != len(history.rows):
                expected = 0 if history is None else len(history.rows)
                raise ImportRefusedError(f"epoch {epoch} where {expected} is expected", line.number)
            history.rows.append(values)
            history.last_line = line.number
        else:
            raise ImportRefusedError("not CSV with a header", line.number)
    if history is None:
        raise ImportRefusedError("a header without an epoch", 1)
    yield history


def _header(text: str, separator: str, line: int) -> list[str]:
    names = [name.strip().strip('"\ufeff') for name in text.split(separator)]
    arrays = [_COLUMNS[name][0] for name in names if name in _COLUMNS]
    if len(set(arrays)) < len(arrays):
        raise ImportRefusedError("a column is named twice", line)
    return names


def _row(text: str, separator: str, names: Sequence[str], line: int) -> tuple[int, list[float]]:
    """The epoch and the values of all columns; NaN for those that are missing or not read."""
    cells = [cell.strip().strip('"') for cell in text.split(separator)]
    if len(cells) != len(names):
        raise ImportRefusedError(f"{len(cells)} fields, not {len(names)}: a cut line?", line)
    if not _EPOCH.fullmatch(cells[0]):
        raise ImportRefusedError(f"epoch {cells[0][:20]!a} is not a whole number", line)
    return int(cells[0]), [
        _value(name, cell, line) for name, cell in zip(names, cells, strict=True)
    ]


def _value(name: str, cell: str, line: int) -> float:
    if name not in _COLUMNS or cell.lower() in _MISSING:
        return math.nan
    if not _NUMBER.fullmatch(cell):
        raise ImportRefusedError(f"{name} {cell[:30]!a} is not a number", line)
    return float(cell)


def _run(history: _History, file: Path, ranks: int | None) -> ImportedRun:
    """One history of epochs as a run of ``ranks`` (one if None), each of its columns as ``[epoch,
    1]``.

    Raises ImportRefusedError if no epoch has a loss or an accuracy.
    """
    columns = np.array(history.rows, np.float64)
    samples = {
        _COLUMNS[name][0]: columns[:, [place]]
        for place, name in enumerate(history.names)
        if name in _COLUMNS and np.isfinite(columns[:, place]).any()
    }
    if not samples:
        raise ImportRefusedError("no loss and no accuracy in any epoch", history.first_line)
    count = ranks or 1
    epochs = len(history.rows)
    # The history's own age is the only date that there is.
    modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    unread = [name for name in history.names[1:] if name not in _COLUMNS]
    assumed = {"ranks": "--ranks" if ranks else "one, as none are named (--ranks N)"}
    return ImportedRun(
        benchmark=BENCHMARK,
        made=MADE,
        point={"ranks": count, "history": plain_name(shown(_stem(file)))[:100] or None},
        variant={} if ranks else {"ranks": "not stated"},
        file=file,
        line=history.first_line,
        source_digest=digest_of([list(history.names), repr(history.rows)]),
        started=modified,
        ended=modified,
        samples=samples,
        samples_per_epoch=0,
        metrics=_metrics(samples, epochs),
        notes={
            "importer": "Keras history",
            "lines": [history.first_line, history.last_line],
            "assumed": assumed,
            "dates": file_dates("the history"),
            "times": "a history has none",
            **({"columns_not_read": unread} if unread else {}),
        },
    )


def _stem(file: Path) -> str:
    name = file.name
    for end in (*PACKED, ".csv", ".log", ".txt", ".tsv"):
        name = name.removesuffix(end)
    return name


def _metrics(samples: Mapping[str, Any], epochs: int) -> dict[str, dict[str, Any]]:
    metrics = {
        "epochs_run": {
            "value": epochs, "unit": "epochs", "better": "lower", "scope": "total",
        }
    }  # fmt: skip
    for name, better in _COLUMNS.values():
        value = float(samples[name][-1, 0]) if better and name in samples else math.nan
        if math.isfinite(value):
            metrics[f"final_{name}"] = {
                "value": value, "unit": "1", "better": better, "scope": "total",
            }  # fmt: skip
    return metrics
