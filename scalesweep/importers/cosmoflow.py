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
from scalesweep.importers.imported_run import (
    FILE_DATES,
    ImportedRun,
    ImportRefusedError,
    Refusal,
    files_below,
)
from scalesweep.importers.rank_map import RankMap

CONFIG = "config.pkl"
HISTORY = "data_benchmark_history.csv"
TIMES = ("local_times", "global_times")
BENCHMARK = "data_loading"
_FOLDER = re.compile(r"gpu-n(\d{1,9})(?:-.*)?", re.ASCII)  # gpu-n2-inter2-intra12


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
        raise UserError(f"{path}: no such folder")
    runs: list[ImportedRun] = []
    refusals: list[Refusal] = []
    there = {file.parent for file in files_below(path, refusals) if is_result([file.name])}
    for folder in sorted(there):
        try:
            runs.append(read_folder(folder, ranks))
        except OSError as error:
            refusals.append(Refusal(folder, error.strerror or "unreadable", benchmark=BENCHMARK))
        except ImportRefusedError as error:
            name, _, reason = str(error).partition(": ")
            refusals.append(Refusal(_there(folder / name), reason, benchmark=BENCHMARK))
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
    ``read_tree``. Raises ImportRefusedError with file and reason if it cannot be trusted, OSError.
    """
    point, samples = _point(_config(folder / CONFIG), folder, ranks)
    times = _history(folder / HISTORY, point["epochs"], point["ranks"])
    numbers = {name: array.tolist() for name, array in times.items()}
    # The history's own age is the only date that the original leaves.
    modified = datetime.fromtimestamp(_there(folder / HISTORY).stat().st_mtime, UTC)
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


def _config(file: Path) -> Mapping[str, Any]:
    """The configuration with those of data and device as one."""
    with open_packed(_there(file)) as unpacked:
        content = unpacked.read()
    try:
        config = _Plain(io.BytesIO(content)).load()
        return {**config, **config["data"], **config["device"]}
    except Exception as error:  # whatever a damaged pickle makes of the unpickler
        words = f"{CONFIG}: no pickle of dicts with 'data' and 'device': {error}"
        raise ImportRefusedError(words) from None


def _point(
    config: Mapping[str, Any], folder: Path, ranks: RankMap | None
) -> tuple[dict[str, Any], int]:
    """Parameters of data_loading and the samples per epoch, from a configuration.

    n_train and n_valid count over all ranks if the data set is sharded, else per rank
    (cosmoflow-benchmark, notebooks/DataBenchmark.ipynb: get_num_samples).
    """
    named = _FOLDER.fullmatch(folder.absolute().name)
    given = (ranks and ranks.of(folder / CONFIG)) or (int(named[1]) if named else None)
    known = {"n_ranks": given, **config}
    if known["n_ranks"] is None:
        why = f"{CONFIG}: has no 'n_ranks', and its folder is not called gpu-nRANKS: add --ranks"
        raise ImportRefusedError(why)

    def count(name: str, least: int) -> int:
        value = known.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**30:
            raise ImportRefusedError(f"{CONFIG}: '{name}' must be a whole number from {least} on")
        return value

    total, train, valid = count("n_ranks", 1), count("n_train", 0), count("n_valid", 0)
    shard = known.get("shard")
    parts = total if shard is True else 1
    if not isinstance(shard, bool) or train + valid == 0 or train % parts or valid % parts:
        raise ImportRefusedError(
            f"{CONFIG}: n_train {train} and n_valid {valid} do not divide among {total} ranks, or "
            "data.shard is not true or false"
        )
    point = {
        "ranks": total, "samples_per_rank": train // parts,
        "validation_samples_per_rank": valid // parts, "batch_size": count("batch_size", 1),
        "epochs": count("n_epochs", 1), "shard": shard,
        "inter_threads": count("inter_threads", 0), "intra_threads": count("intra_threads", 0),
        "ranks_per_node": 1,
    }  # fmt: skip
    return point, (train + valid) * (1 if shard else total)


def _history(file: Path, epochs: int, ranks: int) -> dict[str, Floats]:
    """Times [epoch, rank] in seconds by their column."""
    with open_packed(_there(file)) as unpacked:
        content = unpacked.read()
    before = csv.field_size_limit(1 << 26)  # the default is too little for ten thousand ranks
    times: dict[str, dict[str, list[float]]] = {}
    try:
        text = content.decode("utf-8-sig")
        mark = max(",;", key=text.partition("\n")[0].count)
        for row in csv.DictReader(io.StringIO(text, newline=""), delimiter=mark, strict=True):
            if None in row or None in row.values() or row["epoch"].strip() in times:
                raise ValueError(f"a row is cut, or there twice: {row['epoch']:.20}")
            epoch = row["epoch"].strip()
            times[epoch] = {
                name: _cell(row[name], f"epoch {epoch[:20]}, {name}", ranks) for name in TIMES
            }
    except (ValueError, KeyError, csv.Error) as error:
        raise ImportRefusedError(f"{HISTORY}: not its CSV: {error}") from None
    finally:
        csv.field_size_limit(before)
    wanted = [str(epoch) for epoch in range(epochs)]
    if unlike := sorted(times.keys() ^ set(wanted)):
        words = "is missing" if unlike[0] in wanted else f"is none of the {epochs} to be there"
        raise ImportRefusedError(f"{HISTORY}: epoch {unlike[0][:20]} {words}")
    return {name: np.array([times[epoch][name] for epoch in wanted]) for name in TIMES}


def _cell(cell: str, where: str, ranks: int) -> list[float]:
    """Seconds of every rank from a printed array, ``[a b c]`` or ``[a, b, c]``."""
    try:
        values = [float(word) for word in cell.strip().strip("[]").replace(",", " ").split()]
    except ValueError:
        values = []
    if "..." in cell:  # NumPy prints arrays of more than 1000 values so: most ranks are lost
        fault = "holds '...', the times of some ranks were never written"
    elif not values or not all(0 < value < np.inf for value in values):
        fault = "not a printed array of positive seconds"
    elif len(values) != ranks:
        fault = f"{len(values)} values, not of {ranks} ranks"
    else:
        return values
    raise ImportRefusedError(f"{HISTORY}: {where}: {fault}")
