"""Small result files: histories of Keras's and rates of Lightning's CSVLogger, what Hugging Face's
Trainer leaves, DLIO's summaries. Each is a mapping of names to numbers, which
``resources/result_files`` declares. Encodings, packing, cut rows, numbers that are none and
repeated keys are treated alike.
"""

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.compute.log_lines import PACKED, Line, open_packed
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.files import digest_of
from scalesweep.core.paths import RESOURCES
from scalesweep.importers.imported_run import ImportedRun, ImportRefusedError, file_dates, shown
from scalesweep.importers.made_benchmark import Made, parameter_entry
from scalesweep.importers.repeat_names import plain_name

MOST_BYTES, MOST_ROWS, _LONGEST = 64 << 20, 5_000_000, 100_000
_LEAST, _MOST = 1e-150, 1e150
UNKNOWN = "one, as none are named (--ranks N)"
# Folders whose names say nothing of the training.
_INNER = re.compile(
    r"checkpoint-\d{1,9}|trainer_output|output|results?|version_\d{1,6}|lightning_logs|csv(?:_logs)?"
    r"|logs?"
)
_CELL = re.compile(r"[+-]?(?:(?:\d{1,30}\.?\d{0,40}|\.\d{1,40})(?:[eE][+-]?\d{1,4})?|inf)", re.A)
Kind = Mapping[str, Any]  # of resources/result_files: program, summary, parameters, metrics


@cache
def kind_of(benchmark: str) -> Kind:
    """What the results of a program are; of its metrics the main one is the first."""
    kind: Kind = load_yaml(RESOURCES / "result_files" / f"{benchmark}.yaml")
    return kind


def _made(kind: Kind) -> Made:
    return Made(
        kind["summary"],
        {
            name: parameter_entry(it["type"], it["doc"], it.get("unit"), it.get("workload", False))
            for name, it in kind["parameters"].items()
        },
        {name: it["definition"] for name, it in kind["metrics"].items()},
    )


@dataclass
class Result:
    """What a file, or a training in it, states."""

    values: dict[str, float | None] = field(default_factory=dict)  # by metric
    point: dict[str, Any] = field(default_factory=dict)
    samples: dict[str, Floats] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    evidence: Any = None
    line: int | None = None
    span: tuple[datetime, datetime] | None = None
    unfinished: str = ""
    per_rank: tuple[str, ...] = ()  # metrics of all ranks whose values are of one


def run_of(benchmark: str, result: Result, file: Path, ranks: int | None) -> ImportedRun:
    """The run of a result; of ``ranks``, or of one if neither they nor the file say it."""
    kind = kind_of(benchmark)
    stated = result.point.pop("ranks", None)
    origin = result.notes.pop("ranks", "the file") if stated else "--ranks" if ranks else UNKNOWN
    for name in result.per_rank:
        if (value := result.values.get(name)) is not None:
            result.values[name] = value * (stated or ranks or 1)
    modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    begin, end = result.span or (modified, modified)
    return ImportedRun(
        benchmark=benchmark,
        made=_made(kind),
        point={"ranks": stated or ranks or 1, **result.point},
        variant={} if stated or ranks else {"ranks": "not stated"},
        file=file,
        line=result.line,
        source_digest=digest_of([benchmark, repr(result.evidence)]),
        started=begin,
        ended=max(begin, end),
        samples=result.samples,
        samples_per_epoch=0,
        metrics={
            name: {
                "value": value,
                "unit": it["unit"],
                "better": it["better"],
                "scope": it.get("scope", "total"),
            }
            for name, it in kind["metrics"].items()
            if (value := result.values.get(name)) is not None and math.isfinite(value)
        },
        notes={
            "importer": kind["program"],
            "dates": "as the file has them, without a time zone: taken for UTC"
            if result.span
            else file_dates("the file"),
            "assumed": {"ranks": origin},
            **result.notes,
        },
        unfinished=result.unfinished,
    )


def plain_file_name(file: Path) -> str:
    """A file's name without the ending of gzip or xz."""
    name = file.name
    for end in PACKED:
        name = name.removesuffix(end)
    return name


def named_by_folder(file: Path) -> str | None:
    """The nearest folder whose name says something of the training, without a repeat's number."""
    for folder in file.absolute().parents:
        if folder.name and not _INNER.fullmatch(folder.name):
            return plain_name(shown(folder.name))[:100] or None
    return None


def read_object(file: Path) -> dict[str, Any]:
    """The object of JSON in a file, packed or not.

    Raises ImportRefusedError if it is too large or no object; OSError if it cannot be read.
    """
    with open_packed(file) as unpacked:
        data = unpacked.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ImportRefusedError(f"more than {MOST_BYTES:,} bytes")
    try:
        content = json.loads(data, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        raise ImportRefusedError("not JSON: cut or damaged?") from None
    if not isinstance(content, dict):
        raise ImportRefusedError(f"a {type(content).__name__} of JSON, not an object")
    return content


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; raises ImportRefusedError where a key comes twice: one would be lost."""
    content = dict(pairs)
    if len(content) < len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ImportRefusedError(f"the key {key[:40]!r} comes twice")
    return content


def number_in(content: Mapping[str, Any], key: str, least: float = -math.inf) -> float | None:
    """A finite number above ``least``; None where the key is not there or null.

    Raises ImportRefusedError where it is anything else.
    """
    value = content.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_size(value):
        raise ImportRefusedError(f"{key} {str(value)[:30]!a} is not a number")
    if value <= least:
        raise ImportRefusedError(f"{key} {value:g} is not above {least:g}")
    return float(value)


def _is_size(value: float) -> bool:
    """Whether a number is none beyond what is measured: its ratios are finite, too."""
    return value == 0 or _LEAST < abs(value) < _MOST


def count_in(content: Mapping[str, Any], key: str) -> int | None:
    """A whole number above 0; None where the key is not there, null, 0 or -1 (no limit).

    Raises ImportRefusedError where it is anything else.
    """
    value = number_in(content, key)
    if value is None or value in (-1, 0):
        return None
    if value != int(value) or not 0 < value < 2**53:
        raise ImportRefusedError(f"{key} {value:g} is not a whole number")
    return int(value)


def rows_of(lines: Iterable[Line], sign: re.Pattern[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line and cells of each row behind a line that ``sign`` matches, by the header's names; a cut
    last row is left out. Empty cells are ''.

    Raises ImportRefusedError where a row has other columns, or a column is named twice.
    """
    names: list[str] = []
    separator, broken, count = ",", "", 0
    for line in lines:
        text = line.text.strip("\r\n")
        if not text.strip() or len(text) > _LONGEST:
            continue
        if broken:
            raise ImportRefusedError(broken, line.number - 1)
        if sign.match(text):
            separator = next(mark for mark in ",;\t" if mark in text)
            names = [name.strip().strip('"\ufeff') for name in _cells(text, separator)]
            if len(set(names)) < len(names):
                raise ImportRefusedError("a column is named twice", line.number)
            yield line.number, {}
            continue
        if not names:
            raise ImportRefusedError("not CSV with a header", line.number)
        cells = _cells(text, separator)
        if len(cells) != len(names):
            broken = f"{len(cells)} fields, not {len(names)}: a cut line?"
            continue
        count += 1
        if count > MOST_ROWS:
            raise ImportRefusedError(f"more than {MOST_ROWS:,} rows", line.number)
        yield line.number, dict(zip(names, cells, strict=True))


def _cells(text: str, separator: str) -> list[str]:
    return [cell.strip().strip('"') for cell in next(csv.reader([text], delimiter=separator))]


def cell_value(name: str, cell: str, line: int) -> float:
    """The number in a cell; NaN where it is empty or says so. Raises ImportRefusedError."""
    if cell.lower() in ("", "na", "nan", "none"):
        return math.nan
    if not _CELL.fullmatch(cell):
        raise ImportRefusedError(f"{name} {cell[:30]!a} is not a number", line)
    return float(cell)


def positive(values: Iterable[float]) -> Floats:
    """Those that are finite and above 0."""
    return np.array([value for value in values if 0 < value < math.inf], np.float64)
