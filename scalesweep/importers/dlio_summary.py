"""Summaries of DLIO, which MLPerf Storage runs: summary.json of a training's reading.

Rates are of all accelerators together; what is called MB is 2^20 bytes (dlio_benchmark,
utils/statscounter.py). The bytes of a sample follow from both rates, and tell workloads apart,
whose names are in no summary.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.core.files import digest_of
from scalesweep.importers.imported_run import ImportedRun, ImportRefusedError, Refusal
from scalesweep.importers.json_file import (
    count_in,
    metric,
    number_in,
    plain_file_name,
    read_object,
)
from scalesweep.importers.made_benchmark import Made, parameter_entry

BENCHMARK = "dlio_training"
MADE = Made(
    "Trainings whose reading DLIO (MLPerf Storage) emulates, by their summaries.",
    {
        "sample_bytes": parameter_entry(
            "integer", "Bytes of a sample: what is read a second over samples a second.",
            "bytes", True,
        ),
        "data_files": parameter_entry("integer", "Files of the training's data set.", None, False),
        "samples_per_file": parameter_entry("integer", "Samples in a file.", "samples", True),
    },
    {
        "throughput": "mean over the epochs of samples per second, of all accelerators together",
        "read_rate": "bytes read per second, of all accelerators together",
        "utilisation": "mean over the epochs of the accelerators' utilisation (AU)",
        "run_time": "start to end of the program",
    },
)  # fmt: skip
SIGN = re.compile(r'"train_au_(?:mean_)?percentage"\s*:')
_FILE = "summary.json"
_MEBI = 2**20
_RATES, _RATE_MEAN = (
    "train_throughput_samples_per_second",
    "train_throughput_mean_samples_per_second",
)
_USES, _USE_MEAN = "train_au_percentage", "train_au_mean_percentage"
_IO = "train_io_mean_MB_per_second"
_MOST_EPOCHS = 100_000
# A stated mean is that of its list within this.
_AGREES = 1e-3
_FAR = 0.1


def has_name(file: Path) -> bool:
    """Whether a file is called as DLIO's summaries are."""
    return plain_file_name(file).endswith(_FILE)


def read_file(file: Path) -> Iterator[ImportedRun | Refusal]:
    """The run of a summary, or its refusal."""
    try:
        yield _run(read_object(file), file)
    except ImportRefusedError as error:
        yield Refusal(file, str(error), benchmark=BENCHMARK)


def _run(content: Mapping[str, Any], file: Path) -> ImportedRun:
    said = content.get("metric")
    if not isinstance(said, dict):
        raise ImportRefusedError("no object 'metric'")
    accelerators, hosts = count_in(content, "num_accelerators"), count_in(content, "num_hosts")
    if accelerators is None:
        raise ImportRefusedError("no num_accelerators")
    start, end = _date(content, "start"), _date(content, "end")
    rates, uses = _by_epoch(said, _RATES), _by_epoch(said, _USES)
    notes: dict[str, Any] = {
        "importer": "DLIO summary",
        "dates": "start and end as the file has them, without a time zone: taken as UTC",
        "expectation": str(said.get("train_au_meet_expectation"))[:40],
    }
    rate = _mean(said, _RATE_MEAN, rates, notes)
    use = _mean(said, _USE_MEAN, uses, notes)
    mebibytes = number_in(said, _IO, 0)
    if rate is None:
        raise ImportRefusedError(f"neither {_RATE_MEAN} nor {_RATES}")
    metrics = {"throughput": metric(rate, "samples/s", "higher")}
    point: dict[str, Any] = {"ranks": accelerators}
    if hosts is not None and accelerators % hosts == 0:
        point["ranks_per_node"] = accelerators // hosts
    if mebibytes is not None:
        metrics["read_rate"] = metric(mebibytes * _MEBI, "bytes/s", "higher")
        point["sample_bytes"] = round(mebibytes * _MEBI / rate)
    if use is not None:
        metrics["utilisation"] = metric(use, "%", "higher")
    if end > start:
        metrics["run_time"] = metric((end - start).total_seconds(), "s", "lower")
    for name, key in (
        ("data_files", "num_files_train"),
        ("samples_per_file", "num_samples_per_file"),
    ):
        if (count := count_in(content, key)) is not None:
            point[name] = count
    samples = {"throughput_by_epoch": rates, "utilisation_by_epoch": uses}
    return ImportedRun(
        benchmark=BENCHMARK,
        made=MADE,
        point=point,
        file=file,
        source_digest=digest_of([content.get("start"), content.get("hostname"), repr(said)]),
        started=start,
        ended=max(start, end),
        samples={name: array[:, None] for name, array in samples.items() if array.size},
        samples_per_epoch=0,
        metrics=metrics,
        notes=notes,
    )


def _by_epoch(said: Mapping[str, Any], key: str) -> Floats:
    """A list by epoch; empty where there is none."""
    values = said.get(key)
    if values is None:
        return np.array([], np.float64)
    if not isinstance(values, list) or len(values) > _MOST_EPOCHS:
        raise ImportRefusedError(f"{key} is no list of numbers")
    numbers = [number_in({key: value}, key, 0) for value in values]
    if None in numbers:
        raise ImportRefusedError(f"{key} holds an epoch without a number")
    return np.array(numbers, np.float64)


def _mean(said: Mapping[str, Any], key: str, values: Floats, notes: dict[str, Any]) -> float | None:
    """The stated mean, else that of the epochs; where they differ, notes say so.

    Raises ImportRefusedError where they are far apart: one of both is wrong.
    """
    stated = number_in(said, key, 0)
    own = float(values.mean()) if values.size else None
    if stated is not None and own is not None and abs(own / stated - 1) > _AGREES:
        apart = f"{stated:g} in the file; the mean of its epochs is {own:g}"
        if abs(own / stated - 1) > _FAR:
            raise ImportRefusedError(f"{key} is {apart}")
        notes[key] = apart
    return own if stated is None else stated


def _date(content: Mapping[str, Any], key: str) -> datetime:
    try:
        return datetime.fromisoformat(str(content.get(key))[:40]).replace(tzinfo=UTC)
    except ValueError:
        raise ImportRefusedError(f"{key} {str(content.get(key))[:30]!a} is no date") from None
