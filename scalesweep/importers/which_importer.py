"""What a source is that is to be imported, by its first files."""

import csv
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

from scalesweep.compute.log_lines import open_packed
from scalesweep.core.errors import UserError
from scalesweep.importers import COSMOFLOW, LOGS, PROFILES, TABLE, cosmoflow, detect_logs
from scalesweep.importers.imported_run import shown
from scalesweep.importers.profiles.detect import is_profile, not_text

_log = logging.getLogger(__name__)

# As much is looked at: a source that another importer reads shows it soon.
_MOST_FILES = 200
_MOST_S = 2.0  # of CPU time
_HEAD = 65_536
_TABLES = (".csv", ".tsv", ".parquet", ".jsonl", ".xlsx")
_WHAT = {
    LOGS: "logs of training programs",
    COSMOFLOW: "result folders of cosmoflow-benchmark",
    PROFILES: "profiles of other tools",
    TABLE: "tables",
}


def kind_of(source: Path) -> str:
    """What a source is, of ``SOURCES``, by its first files. Raises UserError for one that is none,
    or may be several.

    A table is a file, and what nothing else reads.
    """
    if not source.exists():
        raise UserError(f"{shown(source)}: no such file or folder")
    paths = dict(_readers(source))
    table = paths.pop(TABLE, None)
    if len(paths) > 1:
        ways = " or ".join(f"--as {kind} ({_WHAT[kind]})" for kind in paths)
        raise UserError(f"{shown(source)}: can be read in several ways: add {ways}")
    if not paths and table == source:
        return TABLE
    if not paths:
        if reason := not_text(source):
            raise UserError(f"{shown(source)}: {reason}")
        hints = f"; {_command(table, TABLE)}" if table else ""
        looked = f" by its first {_MOST_FILES} files" if _has_more(source) else ""
        raise UserError(
            f"{shown(source)}: not recognised{looked} as {', '.join(_WHAT.values())}{hints}; --as "
            "KIND reads it all the same, and says what is wrong"
        )
    (kind,) = paths
    if table == source:
        _log.info("%s: read as %s (--as %s: as a table)", shown(source), kind, TABLE)
    return kind


def hint(source: Path, kind: str) -> str:
    """``; `scalesweep import ...` reads ...`` where it can be read as another kind; else empty."""
    reader = next(((name, path) for name, path in _readers(source) if name != kind), None)
    return f"; {_command(reader[1], reader[0])}" if reader else ""


def _command(path: Path, kind: str) -> str:
    return f"`scalesweep import {shown(path)} --as {kind}` reads {_WHAT[kind]}"


def _readers(source: Path) -> Iterator[tuple[str, Path]]:
    """The kinds that a source may be of, as far as its first files show; of tables the first."""
    files = list(_files(source))
    folders: dict[Path, list[str]] = {}
    for file in files:
        folders.setdefault(file.parent, []).append(file.name)
    if source.is_dir() and any(cosmoflow.is_result(names) for names in folders.values()):
        yield COSMOFLOW, source
    end = time.process_time() + _MOST_S
    if any(detect_logs.is_log(file, max(end - time.process_time(), 1e-3)) for file in files):
        yield LOGS, source
    if any(is_profile(file) for file in files):
        yield PROFILES, source
    if table := next(filter(_is_table, files), None):
        yield TABLE, table


def _files(source: Path) -> Iterator[Path]:
    if source.is_file():
        yield source
        return
    count = 0
    for root, folders, names in os.walk(source):
        folders.sort()
        for name in sorted(names):
            if (path := Path(root, name)).is_file() and count < _MOST_FILES:
                count += 1
                yield path


def _has_more(source: Path) -> bool:
    """Whether a folder holds more files than are looked at."""
    return source.is_dir() and sum(1 for _ in _files(source)) >= _MOST_FILES


def _is_table(file: Path) -> bool:
    """Whether a file's name is that of a table and, of text, its first lines have equal columns."""
    suffixes = [suffix.lower() for suffix in file.suffixes[-2:]]
    kind = next((suffix for suffix in suffixes if suffix in _TABLES), None)
    if kind not in (".csv", ".tsv"):
        return kind is not None
    try:
        with open_packed(file) as content:
            text = content.read(_HEAD).decode("utf-8-sig", "replace")
        csv.Sniffer().sniff(text, ",;\t")
    except (OSError, csv.Error):
        return False
    return True
