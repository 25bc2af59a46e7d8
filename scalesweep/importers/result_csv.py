"""Results of CSV: histories of Keras's CSVLogger, rates of Lightning's."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.compute.log_lines import Line
from scalesweep.importers.imported_run import ImportRefusedError, shown
from scalesweep.importers.repeat_names import plain_name
from scalesweep.importers.result_files import (
    Result,
    cell_value,
    named_by_folder,
    plain_file_name,
    positive,
    rows_of,
)

# A row per epoch; Lightning's CSVLogger has a column of steps, and several rows in an epoch.
KERAS_SIGN = re.compile(
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


def keras(lines: Callable[[], Iterable[Line]], file: Path) -> Iterator[Result]:
    """Each training of a history: it begins at epoch 0, also where it was appended."""
    name = plain_file_name(file)
    for end in (".csv", ".log", ".txt", ".tsv"):
        name = name.removesuffix(end)
    history = plain_name(shown(name))[:100] or None
    rows: list[dict[str, float]] = []
    first = 0
    unread: list[str] = []
    for line, cells in rows_of(lines(), KERAS_SIGN):
        if not cells:
            continue
        text = cells["epoch"]
        if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
            raise ImportRefusedError(f"epoch {text[:20]!a} is not a whole number", line)
        if int(text) == 0:
            if rows:
                yield _history(rows, first, history, unread)
            rows, first = [], line
        if int(text) != len(rows) or not first:
            raise ImportRefusedError(f"epoch {text} where {len(rows)} is expected", line)
        known = [column for column in cells if column in _COLUMNS]
        if len({_COLUMNS[column] for column in known}) < len(known):
            raise ImportRefusedError("a column is named twice", line)
        unread = [column for column in cells if column not in (*known, "epoch")]
        rows.append({_COLUMNS[it]: cell_value(it, cells[it], line) for it in known})
    if not rows:
        raise ImportRefusedError("a header without an epoch", 1)
    yield _history(rows, first, history, unread)


def _history(
    rows: list[dict[str, float]], line: int, history: str | None, unread: list[str]
) -> Result:
    arrays = {name: np.array([[row[name]] for row in rows]) for name in rows[0]}
    samples = {name: array for name, array in arrays.items() if np.isfinite(array).any()}
    if not samples:
        raise ImportRefusedError("no loss and no accuracy in any epoch", line)
    values = {f"final_{name}": float(array[-1, 0]) for name, array in samples.items()}
    notes = {"times": "a history has none", **({"columns_not_read": unread} if unread else {})}
    return Result(
        {**values, "epochs_run": len(rows)}, {"history": history}, samples, notes, rows, line
    )


# Rates of Lightning's ThroughputMonitor in metrics.csv. Rows are sparse. ``train/device/...`` is a
# rolling mean of the first rank's device, ``train/...`` the same times the world size, and is there
# only where that is above 1 (fabric/utilities/throughput.py): it tells the ranks. Column names are
# f"{stage}{separator}{key}"; the separator may be another.
LIGHTNING_SIGN = re.compile(
    r'^(?=.*(?:^|,)"?step"?(?:,|$))(?:.*,)?"?train(?P<mark>[^\w,"])device[^,]*per_sec'
)
# At least so many windows, or the start-up may be most of what is known.
_FEW = 3
# A time that grows by so many times more a batch in one place is not the training's: Lightning
# 2.2 adds a time up again with every evaluation (throughput_monitor.py, on_validation_end).
_JUMP = 20
_WHOLE = 0.02


def lightning(lines: Callable[[], Iterable[Line]], file: Path) -> Iterator[Result]:
    """The training of a metrics.csv."""
    columns: dict[str, list[float]] = {}
    rows, headers = 0, 0
    for line, cells in rows_of(lines(), LIGHTNING_SIGN):
        headers += not cells
        if headers > 1:
            raise ImportRefusedError("a second header: of several trainings?", line)
        rows += bool(cells)
        for name, cell in cells.items():
            if name.startswith("train") and cell:
                plain = "train/" + re.sub(r"^device\W", "device/", name[6:])
                columns.setdefault(plain, []).append(cell_value(name, cell, line))
    batches = positive(columns.get("train/device/batches_per_sec", ()))
    if len(batches) < _FEW:
        raise ImportRefusedError(
            f"{len(batches)} rates of ThroughputMonitor: too few to tell the start-up from the rest"
        )
    world = _world(columns, batches)
    times = positive(columns.get("train/time", ()))
    wrong = _jumps(columns)
    result = Result({}, {"training": named_by_folder(file)}, {"batch_rates": batches[:, None]})
    result.values = {
        name: _median(columns, f"train/device/{key}")
        for name, key in (
            ("batches_per_second", "batches_per_sec"), ("samples_per_second", "samples_per_sec"),
            ("items_per_second", "items_per_sec"), ("mfu", "mfu"),
        )
    }  # fmt: skip
    result.values["run_time"] = float(times.max()) if len(times) and not wrong else None
    result.notes = {"rows": rows, **({"run_time": wrong} if wrong else {})}
    if world:
        result.point["ranks"] = world
        result.notes["ranks"] = "all devices' batches/s over one device's"
    result.per_rank = ("samples_per_second", "items_per_second")
    result.evidence = sorted(columns.items())
    yield result


def _median(columns: Mapping[str, list[float]], name: str) -> float | None:
    values = positive(columns.get(name, ()))
    return float(np.median(values)) if len(values) else None


def _world(columns: Mapping[str, list[float]], batches: Floats) -> int | None:
    """The ranks, where columns of all devices tell them."""
    every = positive(columns.get("train/batches_per_sec", ()))
    if not len(every) or len(every) != len(batches):
        return None
    ratio = float(np.median(every / batches))
    if round(ratio) < 1 or abs(ratio / round(ratio) - 1) > _WHOLE:
        raise ImportRefusedError(f"all devices' batches/s are {ratio:g} times one device's")
    return round(ratio)


def _jumps(columns: Mapping[str, list[float]]) -> str:
    """Why train/time is no time; empty where it is one, or nothing shows that it is none."""
    times, batches = (np.array(columns.get(f"train/{it}", [])) for it in ("time", "batches"))
    if len(times) != len(batches) or len(times) < 2 * _FEW:
        return ""
    done = np.diff(batches)
    each = (np.diff(times)[done > 0]) / done[done > 0]
    usual = float(np.median(each)) if len(each) else 0.0
    if usual > 0 and each.max() > _JUMP * usual:
        return (
            f"left out: train/time grows by {each.max():.3g} s a batch in one place and by "
            f"{usual:.3g} s else: it stood still, or evaluations are added up, as by Lightning 2.2"
        )
    return ""
