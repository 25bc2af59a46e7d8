"""Results of the original data benchmark of cosmoflow-benchmark, read as they were left.

A result folder holds ``config.pkl`` (a nested dict) and ``data_benchmark_history.csv`` (one row
per epoch; the times of all ranks as printed arrays). Nothing is repaired: what does not add up
is refused with its reason while the other folders are read.
"""

import csv
import io
import pickle
import re
from collections import OrderedDict
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.compute.log_lines import PACKED, open_packed
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of
from scalesweep.importers.imported_run import FILE_DATES, ImportedRun, Refusal
from scalesweep.importers.rank_map import RankMap
from scalesweep.importers.source_files import files_below

CONFIG = "config.pkl"
HISTORY = "data_benchmark_history.csv"
TIMES = ("local_times", "global_times")
BENCHMARK = "data_loading"
MAX_BYTES = 64 << 20
# What a folder's name says: gpu-n2, gpu-n2-inter2-intra12.
_FOLDER = re.compile(r"gpu-n(\d{1,9})(?:-inter(\d+)-intra(\d+))?(?:-.*)?", re.ASCII)


class _RefusedFileError(UserError):
    """Why one file cannot be imported."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(reason)
        self.file = file


class _Plain(pickle.Unpickler):
    """Unpickles plain data alone: a pickle may name no class or function but these."""

    def find_class(self, module: str, name: str) -> Any:
        """What a pickle may name. Raises UnpicklingError."""
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) in (("numpy", "dtype"), ("numpy.dtype", "dtype")):
            return _number_type
        if name == "scalar" and re.fullmatch(r"numpy\._?core\.multiarray", module):
            return lambda kind, content: np.frombuffer(content, kind, 1)[0].item()
        if (module, name) == ("_codecs", "encode"):  # how protocol 2 writes bytes
            return lambda text, _how="latin1": text.encode("latin1")
        raise pickle.UnpicklingError(f"names {module}.{name}, which plain data does not need")


def _number_type(code: str, align: bool = False, copy: bool = True) -> np.dtype[Any]:
    if not re.fullmatch(r"[<>=|]?[biuf]\d", code):
        raise pickle.UnpicklingError(f"holds values of type {code[:20]!a}")
    return np.dtype(code, align, copy)


def read_tree(path: Path, ranks: RankMap | None = None) -> tuple[list[ImportedRun], list[Refusal]]:
    """Every result folder at or below ``path``, in the order of their paths, and the refusals.

    ``ranks``: of those whose configuration does not state them, before the names of their folders
    (``gpu-n4``). Raises UserError if there is no such folder or no result in it.
    """
    if not path.is_dir():
        what = "not a folder" if path.exists() else "no such folder"
        raise UserError(f"{path}: {what}")
    runs: list[ImportedRun] = []
    refusals: list[Refusal] = []
    there = {file.parent for file in files_below(path, refusals) if is_result([file.name])}
    for folder in sorted(there):
        try:
            runs.append(read_folder(folder, ranks))
        except _RefusedFileError as error:
            refusals.append(Refusal(error.file, str(error), benchmark=BENCHMARK))
    if ranks is not None:
        ranks.check(sorted(there))
    if not runs and not refusals:
        raise UserError(f"{path}: holds no folder with {CONFIG} and {HISTORY}")
    return runs, refusals


def is_result(files: Collection[str]) -> bool:
    """Whether a folder with these files holds a result, packed or not."""
    return any(name + end in files for name in (CONFIG, HISTORY) for end in ("", *PACKED))


def read_folder(folder: Path, ranks: RankMap | None = None) -> ImportedRun:
    """The run of one result folder, its times [epoch, rank] in seconds; ``ranks``: as of
    ``read_tree``. Raises UserError with the reason if it cannot be trusted."""
    config_file, history_file = _there(folder / CONFIG), _there(folder / HISTORY)
    point, samples = _point(_config(config_file), config_file, ranks)
    times = _history(_read(history_file), history_file, point["epochs"], point["ranks"])
    numbers = {name: array.tolist() for name, array in times.items()}
    # The history's own age is the only date that the original leaves.
    modified = datetime.fromtimestamp(history_file.stat().st_mtime, UTC)
    return ImportedRun(
        benchmark=BENCHMARK,
        point=point,
        file=folder,
        # Of what the history says: line ends and packing make no other run of it.
        source_digest=digest_of([point, numbers]),
        started=modified,
        ended=modified,
        notes={"importer": "cosmoflow-benchmark", "dates": FILE_DATES},
        samples={**times, "span_input": times["local_times"]},  # all that an epoch of it does
        samples_per_epoch=samples,
    )


def _there(file: Path) -> Path:
    """The file, or what gzip or xz has made of it."""
    packed = (file.with_name(file.name + end) for end in PACKED)
    return file if file.exists() else next((path for path in packed if path.exists()), file)


def _read(file: Path) -> bytes:
    try:
        with open_packed(file) as unpacked:
            content = unpacked.read(MAX_BYTES + 1)
    except OSError as error:
        raise _RefusedFileError(file, error.strerror or "cannot be read") from None
    if len(content) > MAX_BYTES:
        raise _RefusedFileError(file, f"more than {MAX_BYTES:,} bytes")
    return content


def _config(file: Path) -> Mapping[str, Any]:
    content = _read(file)
    try:
        config = _Plain(io.BytesIO(content)).load()
    except Exception as error:  # whatever a damaged pickle makes of the unpickler
        raise _RefusedFileError(file, f"{CONFIG}: no pickle of plain data: {error}") from None
    sections: list[Any] = (
        [config.get(it) for it in ("data", "device")] if isinstance(config, dict) else [None]
    )
    if not all(isinstance(section, dict) for section in sections):
        raise _RefusedFileError(file, "not a dict with the dicts 'data' and 'device'")
    return {**config, **sections[0], **sections[1]}


def _point(
    config: Mapping[str, Any], file: Path, ranks: RankMap | None
) -> tuple[dict[str, Any], int]:
    """Parameters of data_loading and the samples per epoch, from a configuration.

    n_train and n_valid count over all ranks if the data set is sharded, else per rank
    (cosmoflow-benchmark, notebooks/DataBenchmark.ipynb: get_num_samples).
    """
    named = _FOLDER.fullmatch(file.absolute().parent.name)
    given = ranks.of(file) if ranks else None
    stated = config.get("n_ranks")
    if stated is None:
        stated = given or (int(named[1]) if named else None)
    elif given not in (None, stated):
        raise _RefusedFileError(file, f"n_ranks is {stated!a:.20}, --ranks says {given}")
    if stated is None:
        why = "has no 'n_ranks', and its folder is not called gpu-nRANKS: add --ranks"
        raise _RefusedFileError(file, why)

    def count(name: str, least: int, value: Any = None) -> int:
        value = config.get(name) if value is None else value
        # An upper bound, so that no message or array is made of an absurd number.
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**30:
            raise _RefusedFileError(file, f"'{name}' must be a whole number from {least} on")
        return value

    count_of_ranks = count("n_ranks", 1, stated)
    train, valid, shard = count("n_train", 0), count("n_valid", 0), config.get("shard")
    if not isinstance(shard, bool):
        raise _RefusedFileError(file, "data.shard must be true or false")
    parts = count_of_ranks if shard else 1
    if train + valid == 0 or train % parts or valid % parts:
        raise _RefusedFileError(
            file, f"n_train {train} and n_valid {valid} do not divide among {count_of_ranks} ranks"
        )
    point = {
        "ranks": count_of_ranks, "samples_per_rank": train // parts,
        "validation_samples_per_rank": valid // parts, "batch_size": count("batch_size", 1),
        "epochs": count("n_epochs", 1), "shard": shard,
        "inter_threads": count("inter_threads", 0), "intra_threads": count("intra_threads", 0),
        "ranks_per_node": 1,
    }  # fmt: skip
    names = ("ranks", "inter_threads", "intra_threads")
    for text, name in zip(named.groups() if named and named[2] else (), names, strict=False):
        if text and int(text) != point[name]:
            what = f"{name} is {point[name]}, the folder's name says {text[:20]}"
            raise _RefusedFileError(file, what)
    return point, (train + valid) * (1 if shard else count_of_ranks)


def _history(content: bytes, file: Path, epochs: int, ranks: int) -> dict[str, Floats]:
    """Times [epoch, rank] in seconds by their column."""
    before = csv.field_size_limit(MAX_BYTES)  # the default is too little for ten thousand ranks
    try:
        text = content.decode("utf-8-sig")
        mark = max(",;", key=text.partition("\n")[0].count)
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=mark, strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise _RefusedFileError(file, f"not CSV of UTF-8 ({error})") from None
    finally:
        csv.field_size_limit(before)
    times: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if None in row or None in row.values() or not {"epoch", *TIMES} <= row.keys():
            what = f"a row or heading lacks one of epoch, {', '.join(TIMES)}"
            raise _RefusedFileError(file, what)
        epoch = row["epoch"].strip()
        if epoch in times:
            raise _RefusedFileError(file, f"epoch {epoch[:20]} is there twice")
        times[epoch] = {
            name: _cell(row[name], file, f"epoch {epoch[:20]}, {name}", ranks) for name in TIMES
        }
    wanted = [str(epoch) for epoch in range(epochs)]
    if unlike := sorted(times.keys() ^ set(wanted)):
        words = "is missing" if unlike[0] in wanted else f"is none of the {epochs} to be there"
        raise _RefusedFileError(file, f"epoch {unlike[0][:20]} {words}")
    return {name: np.array([times[epoch][name] for epoch in wanted]) for name in TIMES}


def _cell(cell: str, file: Path, where: str, ranks: int) -> list[float]:
    """Seconds of every rank from a printed array, ``[a b c]`` or ``[a, b, c]``."""
    if "..." in cell:
        # NumPy prints arrays of more than 1000 values so: most ranks are lost.
        why = "holds '...', the times of some ranks were never written"
        raise _RefusedFileError(file, f"{where}: {why}")
    printed = re.fullmatch(r"\s*\[([-+.\deE,\s]*)\]\s*", cell, re.ASCII)
    body = printed[1] if printed else ""
    try:
        values = [float(word) for word in (body.split(",") if "," in body else body.split())]
    except ValueError:
        values = []
    if not values or not all(0 < value < np.inf for value in values):
        raise _RefusedFileError(file, f"{where}: not a printed array of positive seconds")
    if len(values) != ranks:
        raise _RefusedFileError(file, f"{where}: {len(values)} values, not of {ranks} ranks")
    return values
