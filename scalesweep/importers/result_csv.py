"""Results of CSV: histories of Keras's CSVLogger, rates of Lightning's."""

import csv
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.importers.imported_run import ImportRefusedError, shown
from scalesweep.importers.result_files import Kind, Lines, Result, file_name, folder_name
from scalesweep.importers.write_campaign import plain_name

_CELL = re.compile(r"[+-]?(?:(?:\d{1,30}\.?\d{0,40}|\.\d{1,40})(?:[eE][+-]?\d{1,4})?|inf)", re.A)


def _rows(lines: Lines, sign: re.Pattern[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line and cells of each row behind a line that ``sign`` matches (an empty row), by the
    header's names; a cut last row is left out. Raises ImportRefusedError."""
    names: list[str] = []
    separator, broken = ",", ""
    for line in lines():
        text = line.text.strip("\r\n")
        if not text.strip():
            continue
        if broken:
            raise ImportRefusedError(broken, line.number - 1)
        headed = sign.match(text) is not None
        if headed:
            separator = next(mark for mark in ",;\t" if mark in text)
        elif not names:
            raise ImportRefusedError("not CSV with a header", line.number)
        fields = next(csv.reader([text], delimiter=separator))
        cells = [cell.strip().strip('"\ufeff') for cell in fields]
        names = cells if headed else names
        if len(cells) != len(names):
            broken = f"{len(cells)} fields, not {len(names)}: a cut line?"
            continue
        yield line.number, {} if headed else dict(zip(names, cells, strict=True))


def _cell(name: str, cell: str, line: int) -> float:
    """The number in a cell; NaN if it is empty or says so. Raises ImportRefusedError."""
    if cell.lower() in ("", "na", "nan", "none"):
        return math.nan
    if not _CELL.fullmatch(cell):
        raise ImportRefusedError(f"{name} {cell[:30]!a} is not a number", line)
    return float(cell)


# Keras's CSVLogger: a row per epoch; Lightning's has a column of steps, and several rows in one.
_KERAS = re.compile(
    r'^\ufeff?"?epoch"?[,;\t](?!.*\btrain\Wdevice)(?!(?:.*[,;\t])?"?step"?(?:[,;\t]|\s*$))'
    r"(?=.*\b(?:val_)?(?:loss|acc|accuracy)\b)"
)
# Column -> array.
_COLUMNS = {
    "loss": "loss", "val_loss": "validation_loss", "acc": "accuracy", "accuracy": "accuracy",
    "val_acc": "validation_accuracy", "val_accuracy": "validation_accuracy", "mae": "mae",
    "mean_absolute_error": "mae", "val_mae": "validation_mae",
    "val_mean_absolute_error": "validation_mae", "lr": "learning_rate",
    "learning_rate": "learning_rate",
}  # fmt: skip


def _keras(lines: Lines, file: Path) -> Iterator[Result]:
    """Each training of a history: it begins at epoch 0, also if it was appended."""
    name = re.sub(r"\.(?:csv|log|txt|tsv)$", "", file_name(file))
    point = {"history": plain_name(shown(name))[:100] or None}
    rows: list[dict[str, float]] = []
    first, unread = 1, list[str]()
    for line, cells in _rows(lines, _KERAS):
        if not cells:
            continue
        if cells["epoch"] == "0":
            if rows:
                yield _history(rows, first, point, unread)
            rows, first = [], line
        if cells["epoch"] != str(len(rows)):
            raise ImportRefusedError(f"epoch {cells['epoch'][:20]}, not {len(rows)}", line)
        unread = [column for column in cells if column not in (*_COLUMNS, "epoch")]
        rows.append({_COLUMNS[it]: _cell(it, cells[it], line) for it in cells if it in _COLUMNS})
    if not rows:
        raise ImportRefusedError("a header without an epoch", 1)
    yield _history(rows, first, point, unread)


def _history(
    rows: list[dict[str, float]], line: int, point: dict[str, Any], unread: list[str]
) -> Result:
    arrays = {name: np.array([[row[name]] for row in rows]) for name in rows[0]}
    samples = {name: array for name, array in arrays.items() if np.isfinite(array).any()}
    if not samples:
        raise ImportRefusedError("no loss and no accuracy in any epoch", line)
    values: dict[str, float | None] = {
        f"final_{name}": float(array[-1, 0]) for name, array in samples.items()
    }
    notes = {"times": "a history has none", **({"columns_not_read": unread} if unread else {})}
    return Result(values | {"epochs_run": len(rows)}, {**point}, samples, notes, rows, line)


# Rates of Lightning's ThroughputMonitor in metrics.csv. Rows are sparse. ``train/device/...`` is a
# rolling mean of the first rank's device, ``train/...`` the same times the world size, and is there
# only where that is above 1 (fabric/utilities/throughput.py): it tells the ranks. Column names are
# f"{stage}{separator}{key}"; the separator may be another.
_LIGHTNING = re.compile(
    r'^(?=.*(?:^|,)"?step"?(?:,|$))(?:.*,)?"?train(?P<mark>[^\w,"])device[^,]*per_sec'
)
# At least so many windows, or the start-up may be most of what is known.
_FEW = 3
# A time that grows by so many times more a batch in one place is not the training's: Lightning
# 2.2 adds a time up again with every evaluation (throughput_monitor.py, on_validation_end).
_JUMP = 20


def _lightning(lines: Lines, file: Path) -> Iterator[Result]:
    """The training of a metrics.csv."""
    cells: dict[str, list[float]] = {}
    rows = headers = 0
    for line, row in _rows(lines, _LIGHTNING):
        headers += not row
        if headers > 1:
            raise ImportRefusedError("a second header: of several trainings?", line)
        rows += bool(row)
        for name, cell in row.items():
            if name.startswith("train") and cell:
                plain = re.sub(r"^train\W(?:(device)\W)?", r"\1/", name).removeprefix("/")
                cells.setdefault(plain, []).append(_cell(name, cell, line))
    columns = {
        name: np.array([value for value in values if 0 < value < math.inf], np.float64)
        for name, values in cells.items()
    }
    batches = columns.get("device/batches_per_sec", np.array([]))
    if len(batches) < _FEW:
        few = f"{len(batches)} rates of ThroughputMonitor"
        raise ImportRefusedError(f"{few}: too few to tell the start-up from the rest")
    result = Result({}, {"training": folder_name(file)}, {"batch_rates": batches[:, None]})
    for name, key in (
        ("batches_per_second", "batches_per_sec"), ("samples_per_second", "samples_per_sec"),
        ("items_per_second", "items_per_sec"), ("mfu", "mfu"),
    ):  # fmt: skip
        if len(rates := columns.get(f"device/{key}", ())):
            result.values[name] = float(np.median(rates))
    result.notes = {"rows": rows}
    if wrong := _jumps(cells):
        result.notes["run_time"] = wrong
    elif "time" in columns and len(columns["time"]):
        result.values["run_time"] = float(columns["time"].max())
    every = columns.get("batches_per_sec", np.array([]))
    if len(every) == len(batches):
        ratio = float(np.median(every / batches))
        if round(ratio) < 1 or abs(ratio / round(ratio) - 1) > 0.02:
            raise ImportRefusedError(f"all devices' batches/s are {ratio:g} times one device's")
        result.point["ranks"] = round(ratio)
        result.notes["ranks"] = "all devices' batches/s over one device's"
    result.per_rank = ("samples_per_second", "items_per_second")
    result.evidence = sorted(cells.items())
    yield result


def _jumps(cells: Mapping[str, list[float]]) -> str:
    """Why train/time is no time; empty if nothing shows that it is none."""
    times, batches = np.array(cells.get("time", [])), np.array(cells.get("batches", []))
    if len(times) != len(batches) or len(times) < 2 * _FEW:
        return ""
    done = np.diff(batches)
    each = np.diff(times)[done > 0] / done[done > 0]
    usual = float(np.median(each)) if len(each) else 0.0
    if usual <= 0 or each.max() <= _JUMP * usual:
        return ""
    return (
        f"left out: train/time grows by {each.max():.3g} s a batch in one place and by "
        f"{usual:.3g} s else: it stood still, or evaluations are added up, as by Lightning 2.2"
    )


KINDS = (
    Kind("keras_history", _KERAS, _keras),
    Kind("lightning_trainer", _LIGHTNING, _lightning),
)
