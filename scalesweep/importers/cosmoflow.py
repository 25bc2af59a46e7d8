"""Results of the original data benchmark of cosmoflow-benchmark, read as they were left.

A result folder holds ``config.pkl`` (a nested dict) and ``data_benchmark_history.csv`` (one row
per epoch; the times of all ranks as printed arrays). Nothing is repaired: what does not add up
is refused with its reason while the other folders are read.
"""

import csv
import io
import math
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.compute.log_lines import PACKED, open_packed
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of, file_digest
from scalesweep.importers.imported_run import ImportedRun, Refusal, file_dates
from scalesweep.importers.rank_map import RankMap
from scalesweep.importers.safe_pickle import MAX_BYTES, load_plain

CONFIG = "config.pkl"
HISTORY = "data_benchmark_history.csv"
TIMES = ("local_times", "global_times")
MAX_HISTORY_BYTES = 64 << 20


_FOLDER = re.compile(r"gpu-n(\d+)-inter(\d+)-intra(\d+)")
_RANKS = re.compile(r"gpu-n(\d{1,9})(?:-.*)?", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_EPOCH = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True)
class CosmoflowRun:
    """One result folder: the point in terms of our benchmark data_loading, and its times.

    ``samples_per_epoch`` counts training and validation over all ranks; ``local_times`` and
    ``global_times`` are [epoch, rank] in seconds.
    """

    folder: Path
    point: dict[str, Any]
    samples_per_epoch: int
    local_times: Floats
    global_times: Floats

    def imported(self) -> ImportedRun:
        """The run for ``write_records.write_runs``; reads the history's date and digest."""
        history = _there(self.folder / HISTORY)
        # The history's own age is the only date that the original leaves.
        modified = datetime.fromtimestamp(history.stat().st_mtime, UTC)
        times = {"local_times": self.local_times, "global_times": self.global_times}
        numbers = {name: array.tolist() for name, array in times.items()}
        reading = {"span_input": self.local_times}  # all that an epoch of it does
        return ImportedRun(
            benchmark="data_loading",
            point=self.point,
            file=self.folder,
            # Of what the history says: line ends and packing make no other run of it.
            source_digest=digest_of([self.point, numbers]),
            former_digests=(file_digest(history),),
            started=modified,
            ended=modified,
            notes={
                "importer": "cosmoflow-benchmark",
                "dates": file_dates("the history"),
            },
            samples=times | reading,
            samples_per_epoch=self.samples_per_epoch,
        )


def read_tree(path: Path, ranks: RankMap | None = None) -> tuple[list[CosmoflowRun], list[Refusal]]:
    """Every result folder at or below ``path``, in the order of their paths, and the refusals.

    ``ranks``: of those whose configuration does not state them, before the names of their folders
    (``gpu-n4``). Links to folders are not followed. Raises UserError if there is no such folder or
    no result in it.
    """
    if not path.is_dir():
        what = "not a folder" if path.exists() else "no such folder"
        raise UserError(f"{path}: {what}")
    runs: list[CosmoflowRun] = []
    refusals: list[Refusal] = []
    folders_read: list[Path] = []

    def unreadable(error: OSError) -> None:
        refusals.append(Refusal(Path(error.filename), error.strerror or "cannot be read"))

    for root, folders, files in os.walk(path, onerror=unreadable):
        folders.sort()
        if is_result(files):
            try:
                runs.append(read_folder(Path(root), ranks))
            except _RefusedFileError as error:
                refusals.append(Refusal(error.file, str(error), benchmark="data_loading"))
            folders_read.append(Path(root))
    if ranks is not None:
        ranks.check(folders_read)
    if not runs and not refusals:
        raise UserError(f"{path}: holds no folder with {CONFIG} and {HISTORY}")
    return runs, refusals


def is_result(files: Collection[str]) -> bool:
    """Whether a folder with these files holds a result, packed or not."""
    return any(name + end in files for name in (CONFIG, HISTORY) for end in ("", *PACKED))


def _there(file: Path) -> Path:
    """The file, or what gzip or xz has made of it."""
    packed = (file.with_name(file.name + end) for end in PACKED)
    return file if file.exists() else next((path for path in packed if path.exists()), file)


class _RefusedFileError(UserError):
    """Why one file cannot be imported."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(reason)
        self.file = file


def read_folder(folder: Path, ranks: RankMap | None = None) -> CosmoflowRun:
    """Read one result folder; raises UserError with the reason if it cannot be trusted.

    ``ranks``: as of ``read_tree``.
    """
    config_file, history_file = _there(folder / CONFIG), _there(folder / HISTORY)
    content = _read(config_file, MAX_BYTES)
    try:
        config = load_plain(content, CONFIG)
    except UserError as error:
        raise _RefusedFileError(config_file, str(error)) from None
    point, samples = _point(_with_ranks(config, config_file, ranks), config_file)
    _check_folder_name(folder, point)
    text = _read(history_file, MAX_HISTORY_BYTES)
    local, total = _history(text, history_file, point["epochs"], point["ranks"])
    return CosmoflowRun(folder, point, samples, local, total)


def _read(file: Path, limit: int) -> bytes:
    try:
        if not file.is_file():
            raise _RefusedFileError(
                file, "no such file" if not file.exists() else "not a regular file"
            )
        if (size := file.stat().st_size) > limit:
            raise _RefusedFileError(file, f"{size} bytes, at most {limit} are read")
        with open_packed(file) as unpacked:
            content = unpacked.read(limit + 1)
        if len(content) > limit:
            raise _RefusedFileError(
                file, f"more than {limit} bytes once unpacked, at most these are read"
            )
        return content
    except OSError as error:
        raise _RefusedFileError(file, error.strerror or "cannot be read") from None


def _point(config: Any, file: Path) -> tuple[dict[str, Any], int]:
    """Parameters of data_loading and the samples per epoch, from a configuration.

    n_train and n_valid count over all ranks if the data set is sharded, else per rank
    (cosmoflow-benchmark, notebooks/DataBenchmark.ipynb: get_num_samples).
    """
    if not isinstance(config, dict):
        raise _RefusedFileError(file, f"a {type(config).__name__}, not a dict")
    data, device = _section(config, "data", file), _section(config, "device", file)
    ranks = _count(config, "n_ranks", 1, file)
    train, valid = _count(data, "n_train", 0, file), _count(data, "n_valid", 0, file)
    shard = data.get("shard")
    if not isinstance(shard, bool):
        raise _RefusedFileError(file, "data.shard must be true or false")
    if train + valid == 0:
        raise _RefusedFileError(file, "n_train and n_valid are both 0")
    if shard and (train % ranks or valid % ranks):
        raise _RefusedFileError(
            file, f"n_train {train} and n_valid {valid} do not divide evenly among {ranks} ranks"
        )
    parts = ranks if shard else 1
    point = {
        "ranks": ranks,
        "samples_per_rank": train // parts,
        "validation_samples_per_rank": valid // parts,
        "batch_size": _count(data, "batch_size", 1, file),
        "epochs": _count(data, "n_epochs", 1, file),
        "shard": shard,
        "inter_threads": _count(device, "inter_threads", 0, file),
        "intra_threads": _count(device, "intra_threads", 0, file),
        "ranks_per_node": 1,
    }
    return point, (train + valid) * (1 if shard else ranks)


def _with_ranks(config: Any, file: Path, ranks: RankMap | None) -> Any:
    """The configuration with its number of ranks, where it does not state it."""
    if not isinstance(config, dict):
        return config
    given = None if ranks is None else ranks.of(file)
    stated = config.get("n_ranks")
    if stated is not None:
        if given not in (None, stated):
            raise _RefusedFileError(file, f"n_ranks is {stated!a:.20}, --ranks says {given}")
        return config
    named = _RANKS.fullmatch(file.absolute().parent.name)
    count = given if given is not None else int(named[1]) if named else None
    if count is None:
        raise _RefusedFileError(
            file, "has no 'n_ranks', and its folder is not called gpu-nRANKS: add --ranks"
        )
    return {**config, "n_ranks": count}


def _section(config: Mapping[Any, Any], name: str, file: Path) -> Mapping[Any, Any]:
    section = config.get(name)
    if not isinstance(section, dict):
        raise _RefusedFileError(file, f"has no dict '{name}'")
    return section


def _count(section: Mapping[Any, Any], name: str, least: int, file: Path) -> int:
    value = section.get(name)
    # An upper bound, so that no message or array is made of an absurd number.
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**30:
        raise _RefusedFileError(file, f"'{name}' must be a whole number from {least} on")
    return value


def _check_folder_name(folder: Path, point: Mapping[str, Any]) -> None:
    """Where the folder's name states ranks and threads, the configuration must say the same."""
    if match := _FOLDER.fullmatch(folder.name):
        for text, name in zip(
            match.groups(), ("ranks", "inter_threads", "intra_threads"), strict=True
        ):
            if text.lstrip("0") != str(point[name]).lstrip("0"):
                raise _RefusedFileError(
                    folder / CONFIG, f"{name} is {point[name]}, the folder's name says {text[:20]}"
                )


def _history(content: bytes, file: Path, epochs: int, ranks: int) -> tuple[Floats, Floats]:
    """Local and global times [epoch, rank] in seconds."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _RefusedFileError(file, "not UTF-8 text") from None
    times: dict[int, dict[str, list[float]]] = {}
    for epoch_text, *cells in _rows(text, file):
        if not _EPOCH.fullmatch(epoch_text.strip()):
            raise _RefusedFileError(
                file, f"epoch {epoch_text.strip()[:20]!a} is not a whole number"
            )
        epoch = int(epoch_text)
        if epoch in times:
            raise _RefusedFileError(file, f"epoch {epoch} is there twice")
        times[epoch] = {
            name: _cell(cell, file, f"epoch {epoch}, {name}", ranks)
            for name, cell in zip(TIMES, cells, strict=True)
        }
    missing = next((epoch for epoch in range(epochs) if epoch not in times), None)
    if missing is not None:
        raise _RefusedFileError(file, f"epoch {missing} of {epochs} is missing")
    if len(times) > epochs:
        raise _RefusedFileError(
            file, f"epoch {max(times)}, but the configuration has {epochs} epochs"
        )
    local, total = (
        np.array([times[epoch][name] for epoch in range(epochs)], np.float64) for name in TIMES
    )
    return local, total


def _rows(text: str, file: Path) -> list[list[str]]:
    """Epoch, local and global times of every row, as text."""
    wanted = ("epoch", *TIMES)
    header = text.split("\n", 1)[0]
    for separator in ",;":
        names = [name.strip().strip('"') for name in header.split(separator)]
        if set(wanted) <= set(names):
            break
    else:
        raise _RefusedFileError(file, f"the first line does not name {', '.join(wanted)}")
    if any(names.count(name) > 1 for name in wanted):
        raise _RefusedFileError(file, "a column is named twice")
    places = [names.index(name) for name in wanted]
    rows = []
    # The module's default is too little for the cells of some ten thousand ranks.
    before = csv.field_size_limit(MAX_HISTORY_BYTES)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        for number, row in enumerate(reader):
            if number and row:
                if len(row) != len(names):
                    raise _RefusedFileError(
                        file, f"line {reader.line_num}: {len(row)} fields, not {len(names)}"
                    )
                rows.append([row[place] for place in places])
    except csv.Error as error:
        raise _RefusedFileError(file, f"not CSV ({error})") from None
    finally:
        csv.field_size_limit(before)
    return rows


def _cell(cell: str, file: Path, where: str, ranks: int) -> list[float]:
    """Seconds of every rank from a printed array, ``[a b c]`` or ``[a, b, c]``."""
    text = cell.strip()
    if "..." in text:
        # NumPy prints arrays of more than 1000 values so: most ranks are lost.
        raise _RefusedFileError(
            file, f"{where}: holds '...', the times of some ranks were never written"
        )
    if not (len(text) >= 2 and text[0] == "[" and text[-1] == "]"):
        raise _RefusedFileError(file, f"{where}: not a printed array")
    body = text[1:-1]
    words = [word.strip() for word in body.split(",")] if "," in body else body.split()
    values = []
    for word in words:
        value = float(word) if _NUMBER.fullmatch(word) else math.nan
        if not 0 < value < math.inf:
            raise _RefusedFileError(
                file, f"{where}: {word[:30]!a} is not a positive number of seconds"
            )
        values.append(value)
    if len(values) != ranks:
        raise _RefusedFileError(
            file, f"{where}: {len(values)} values, the configuration has {ranks} ranks"
        )
    return values
