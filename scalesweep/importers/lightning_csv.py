"""Rates that Lightning's ThroughputMonitor left in metrics.csv of its CSVLogger.

Rows are sparse: each logger's call fills its own columns. ``train/device/...`` is a rolling mean of
the first rank's device, ``train/...`` the same times the world size, and is there only where that
is above 1 (lightning, fabric/utilities/throughput.py, pytorch/callbacks/throughput_monitor.py): it
tells the ranks. The first windows have the start-up in them.
"""

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.compute.log_lines import Line
from scalesweep.core.files import digest_of
from scalesweep.importers.imported_run import (
    ImportedRun,
    ImportRefusedError,
    Refusal,
    file_dates,
    shown,
)
from scalesweep.importers.json_file import metric
from scalesweep.importers.made_benchmark import Made, parameter_entry
from scalesweep.importers.repeat_names import plain_name

BENCHMARK = "lightning_trainer"
MADE = Made(
    "Trainings of Lightning's Trainer, by the rates that its ThroughputMonitor left.",
    {
        "training": parameter_entry(
            "string", "Name of the logger's folder, without the number of a repeat.", None, True
        )
    },
    {
        "batches_per_second": "median of the monitor's rolling means, batches of one device",
        "samples_per_second": "the same of samples, of all devices together",
        "items_per_second": "the same of items (tokens), of all devices together",
        "mfu": "median of the monitor's model FLOP utilisation of a device",
        "run_time": "the last train/time: evaluations are not in it",
    },
)
# Column names are f"{stage}{separator}{key}"; the separator may be another.
SIGN = re.compile(
    r'^(?=.*(?:^|,)"?step"?(?:,|$))(?:.*,)?"?train(?P<mark>[^\w,"])device[^,]*per_sec'
)
_INNER = re.compile(r"version_\d{1,6}|lightning_logs|csv(?:_logs)?|logs?")
_LONGEST = 100_000
_MOST_ROWS = 5_000_000
# At least so many windows, or the start-up may be most of what is known.
_FEW = 3
# A time that grows by so many times more a batch in one place is not the training's: Lightning
# 2.2 adds a time up again with every evaluation (throughput_monitor.py, on_validation_end).
_JUMP = 20
_WHOLE = 0.02


def read_rows(
    lines: Callable[[], Iterable[Line]], file: Path, ranks: int | None = None
) -> Iterator[ImportedRun | Refusal]:
    """The training of a metrics.csv, or its refusal; ``ranks`` where the file tells none."""
    try:
        yield _run(*_columns(lines()), file, ranks)
    except ImportRefusedError as error:
        yield Refusal(file, str(error), error.line, BENCHMARK)


def _columns(lines: Iterable[Line]) -> tuple[dict[str, list[float]], int]:
    """The numbers in each column, without empty cells, and the rows read; a cut last row is none.

    The column names have "/" for their separator.
    """
    names: list[str] = []
    columns: dict[str, list[float]] = {}
    rows, broken = 0, None
    for line in lines:
        text = line.text.strip("\r\n")
        if not text or len(text) > _LONGEST:
            continue
        if broken is not None:
            raise ImportRefusedError(broken[0], broken[1])
        if match := SIGN.match(text):
            if names:
                raise ImportRefusedError("a second header: of several trainings?", line.number)
            mark = match["mark"]
            names = [name.strip().replace(mark, "/") for name in next(csv.reader([text]))]
            if len(set(names)) < len(names):
                raise ImportRefusedError("a column is named twice", line.number)
            columns = {name: [] for name in names}
            continue
        if not names:
            raise ImportRefusedError("a line in front of the header", line.number)
        cells = next(csv.reader([text]))
        if len(cells) != len(names):
            broken = f"{len(cells)} fields, not {len(names)}: a cut line?", line.number
            continue
        rows += 1
        if rows > _MOST_ROWS:
            raise ImportRefusedError(f"more than {_MOST_ROWS:,} rows", line.number)
        for name, cell in zip(names, cells, strict=True):
            if name.startswith("train/") and (value := _value(name, cell, line.number)) is not None:
                columns[name].append(value)
    return columns, rows


def _value(name: str, cell: str, line: int) -> float | None:
    if not cell.strip():
        return None
    try:
        value = float(cell)
    except ValueError:
        raise ImportRefusedError(f"{name} {cell[:30]!a} is not a number", line) from None
    return value if math.isfinite(value) else None


def _run(
    columns: Mapping[str, Sequence[float]], rows: int, file: Path, ranks: int | None
) -> ImportedRun:
    batches = _positive(columns, "train/device/batches_per_sec")
    if len(batches) < _FEW:
        raise ImportRefusedError(
            f"{len(batches)} rates of ThroughputMonitor: too few to tell the start-up from the rest"
        )
    world, origin = _world(columns, ranks)
    device = {
        "samples_per_second": ("train/device/samples_per_sec", "samples/s"),
        "items_per_second": ("train/device/items_per_sec", "items/s"),
    }
    metrics = {
        "batches_per_second": metric(float(np.median(batches)), "batches/s", "higher", "rank")
    }
    for name, (column, unit) in device.items():
        if len(values := _positive(columns, column)):
            metrics[name] = metric(float(np.median(values)) * world, unit, "higher")
    if len(mfu := _positive(columns, "train/device/mfu")):
        metrics["mfu"] = metric(float(np.median(mfu)), "1", "higher", "rank")
    times = _positive(columns, "train/time")
    wrong = _jumps(columns)
    if len(times) and not wrong:
        metrics["run_time"] = metric(float(times.max()), "s", "lower")
    modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    numbers = [[name, list(values)] for name, values in sorted(columns.items()) if values]
    notes: dict[str, Any] = {
        "importer": "Lightning CSVLogger",
        "rates": "rolling means of the first rank's device; all devices: times the ranks",
        "rows": rows,
        "dates": file_dates("the file"),
        "assumed": {"ranks": origin},
        **({"run_time": wrong} if wrong else {}),
    }
    return ImportedRun(
        benchmark=BENCHMARK,
        made=MADE,
        point={"ranks": world, "training": _name(file)},
        variant={} if origin != _UNKNOWN else {"ranks": "not stated"},
        file=file,
        source_digest=digest_of(numbers),
        started=modified,
        ended=modified,
        samples={"batch_rates": batches[:, None]},
        samples_per_epoch=0,
        metrics=metrics,
        notes=notes,
    )


_UNKNOWN = "one, as none are named (--ranks N)"


def _world(columns: Mapping[str, Sequence[float]], ranks: int | None) -> tuple[int, str]:
    """The ranks, and from where they are known."""
    both = [_positive(columns, f"train/{part}batches_per_sec") for part in ("", "device/")]
    if len(both[0]) and len(both[0]) == len(both[1]):
        ratio = float(np.median(both[0] / both[1]))
        if round(ratio) < 1 or abs(ratio / round(ratio) - 1) > _WHOLE:
            raise ImportRefusedError(f"all devices' batches/s are {ratio:g} times one device's")
        return round(ratio), "all devices' batches/s over one device's"
    return (ranks, "--ranks") if ranks else (1, _UNKNOWN)


def _jumps(columns: Mapping[str, Sequence[float]]) -> str:
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


def _positive(columns: Mapping[str, Sequence[float]], name: str) -> Floats:
    values = np.array(columns.get(name, []), np.float64)
    return values[values > 0]


def _name(file: Path) -> str | None:
    """The nearest folder whose name says something of the training."""
    for folder in file.absolute().parents:
        if folder.name and not _INNER.fullmatch(folder.name):
            return plain_name(shown(folder.name))[:100] or None
    return None
