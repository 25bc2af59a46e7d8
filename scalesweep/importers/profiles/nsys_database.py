"""Databases of ``nsys export --type sqlite``: kernels, copies and how long the GPU was busy.

Tables exist only if they have rows, and their names change between versions: they are looked up
first (Nsight Systems user guide, "SQLite Schema Reference").
"""

import sqlite3
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from scalesweep.analysis.profile import Function, Phase
from scalesweep.importers.imported_run import ImportRefusedError

SQLITE = "SQLite format 3"
_MAX_EVENTS = 20_000_000
# Table, kind of its events, columns that may say what each is.
_TABLES = (
    ("CUPTI_ACTIVITY_KIND_KERNEL", "kernel", ("demangledName", "shortName", "name")),
    ("CUPTI_ACTIVITY_KIND_MEMCPY", "copy", ("copyKind",)),
    ("CUPTI_ACTIVITY_KIND_MEMSET", "copy", ()),
)
_COPY_KINDS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}


@dataclass
class NsysFile:
    """What one file says: functions without a rank, and spans of the GPU's work by kind."""

    file: Path
    functions: list[Function] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    elapsed: float | None = None
    notes: dict[str, object] = field(default_factory=dict)


def is_database(file: Path) -> bool:
    """Whether a file is an exported database. Raises ImportRefusedError if it cannot be read."""
    try:
        with file.open("rb") as stream:
            return stream.read(len(SQLITE)) == SQLITE.encode()
    except OSError as error:
        raise ImportRefusedError(error.strerror or "cannot be read") from None


def read_database(file: Path) -> NsysFile:
    """Kernels and copies of an exported database, by name. Raises ImportRefusedError."""
    content = NsysFile(file)
    try:
        with _connection(file) as database:
            # A view or a trigger of a stranger could do anything: tables only.
            tables = {
                str(row[0])
                for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
            # 16 bytes for each event: there may be millions.
            begins, ends = array("q"), array("q")
            calls: dict[tuple[str, str], list[int]] = {}  # how many, sum, shortest and longest
            for kind, name, begin, end in _events(database, tables):
                length = end - begin
                entry = calls.setdefault((kind, name), [0, 0, length, length])
                entry[0] += 1
                entry[1] += length
                entry[2] = min(entry[2], length)
                entry[3] = max(entry[3], length)
                begins.append(begin)
                ends.append(end)
            content.functions = [
                Function(name, None, kind, count, *(time * 1e-9 for time in (total, total, *ends)))
                for (kind, name), (count, total, *ends) in calls.items()
            ]
            if begins:
                content.phases.append(_gpu(begins, ends))
                content.elapsed = _length(database, tables, max(ends) - min(begins))
            content.notes["diagnostics"] = _diagnostics(database, tables)
    except (sqlite3.Error, OverflowError, ValueError, TypeError) as error:
        words = " ".join(str(error).split())[:100]
        raise ImportRefusedError(f"not a whole database of Nsight Systems ({words})") from None
    return content


class _connection:
    """A database that is read only, with a limit to what a query may cost."""

    def __init__(self, file: Path) -> None:
        self.database = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        self.steps = 0

    def __enter__(self) -> sqlite3.Connection:
        self.database.execute("PRAGMA trusted_schema = OFF")
        self.database.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self.database.set_progress_handler(self._step, 1_000_000)
        return self.database

    def __exit__(self, *_: object) -> None:
        self.database.close()

    def _step(self) -> bool:
        self.steps += 1
        return self.steps > 5000  # some minutes: no profile takes that


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in database.execute(f'PRAGMA table_info("{table}")')}


def _events(database: sqlite3.Connection, tables: set[str]) -> Iterator[tuple[str, str, int, int]]:
    """Kind, name, start and end (nanoseconds) of every kernel, copy and fill."""
    names: dict[int, str] = {}
    if "StringIds" in tables:
        names = {row[0]: str(row[1]) for row in database.execute("SELECT id, value FROM StringIds")}
    count = 0
    for table, kind, candidates in _TABLES:
        if table not in tables:
            continue
        columns = _columns(database, table)
        if not {"start", "end"} <= columns:
            raise ImportRefusedError(f"table {table} has no start and end")
        key_column = next((name for name in candidates if name in columns), "NULL")
        query = f'SELECT start, "end", {key_column} FROM {table}'
        for begin, end, key in database.execute(query):
            if (count := count + 1) > _MAX_EVENTS:
                raise ImportRefusedError(f"more than {_MAX_EVENTS} events: export tables instead")
            if not isinstance(begin, int) or not isinstance(end, int) or end < begin:
                raise ImportRefusedError(f"table {table}: an event ends before it begins")
            yield kind, _event_name(table, key, names), begin, end


def _event_name(table: str, key: object, names: Mapping[int, str]) -> str:
    if table.endswith("MEMSET"):
        return "[CUDA memset]"
    if table.endswith("MEMCPY"):
        known = _COPY_KINDS.get(key) if isinstance(key, int) else None
        return f"[CUDA memcpy {known or key}]"
    return names.get(key, f"kernel {key}") if isinstance(key, int) else str(key)


def _gpu(begins: Sequence[int], ends: Sequence[int]) -> Phase:
    """The time of all events, and the time during which there was one."""
    starts, stops = np.asarray(begins, np.int64), np.asarray(ends, np.int64)
    order = np.argsort(starts, kind="stable")
    starts, latest = starts[order], np.maximum.accumulate(stops[order])
    # What of each event lies behind all that began before it.
    before = np.concatenate([starts[:1], latest[:-1]])
    union = np.maximum(latest - np.maximum(starts, before), 0).sum()
    total = (np.asarray(ends, np.int64) - np.asarray(begins, np.int64)).sum()
    return Phase("GPU", len(starts), float(total) * 1e-9, float(union) * 1e-9)


def _length(database: sqlite3.Connection, tables: set[str], span: int) -> float:
    """Seconds of the recording; ``span``, that of its events, where it is not stated."""
    table = "ANALYSIS_DETAILS"
    if table in tables and "duration" in _columns(database, table):
        row = database.execute(f"SELECT duration FROM {table} LIMIT 1").fetchone()
        if row and isinstance(row[0], int) and row[0] >= span > 0:
            return float(row[0]) * 1e-9
    return span * 1e-9


def _diagnostics(database: sqlite3.Connection, tables: set[str]) -> str:
    """What the tool says of its own recording: an absence may be a failure to record."""
    if "DIAGNOSTIC_EVENT" not in tables or "text" not in _columns(database, "DIAGNOSTIC_EVENT"):
        return "none"
    rows = database.execute("SELECT text FROM DIAGNOSTIC_EVENT LIMIT 20").fetchall()
    return "; ".join(str(row[0])[:100] for row in rows) or "none"
