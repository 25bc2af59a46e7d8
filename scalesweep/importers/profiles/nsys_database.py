"""Databases of ``nsys export --type sqlite`` and of ``nvprof -o``: kernels, copies and how long the
GPU was busy.

Tables exist only if they have rows, and their names change between versions: they are looked up
first (Nsight Systems user guide, "SQLite Schema Reference"). Those of nvprof are CUPTI's activity
records, a table for each kind (``cupti_activity.h``), and are there without rows too.
"""

import sqlite3
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from scalesweep.analysis.profile import Function, Phase
from scalesweep.importers.imported_run import ImportRefusedError
from scalesweep.importers.profiles.demangling import demangled

SQLITE = "SQLite format 3"
_MAX_EVENTS = 20_000_000
# Table, kind of its events, columns that may say what each is.
_Tables = tuple[tuple[str, str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class _Schema:
    """What a tool calls its tables: of events, of texts with their key, and of calls of the host.

    ``zero``: whether a start of 0 means that the time is not known.
    """

    tool: str
    events: _Tables
    texts: str
    key: str
    calls: tuple[str, ...] = ()
    zero: bool = False


_COPIES: _Tables = (
    ("CUPTI_ACTIVITY_KIND_MEMCPY", "copy", ("copyKind",)),
    ("CUPTI_ACTIVITY_KIND_MEMSET", "copy", ()),
)
# Of CUDA graphs Nsight Systems by default records whole launches, not the kernels in them.
_GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_NSYS = _Schema(
    "nsys",
    (
        ("CUPTI_ACTIVITY_KIND_KERNEL", "kernel", ("demangledName", "shortName", "name")),
        (_GRAPHS, "kernel", ("graphId",)),
        *_COPIES,
    ),
    "StringIds",
    "id",
)
# Kernels that run one at a time have a table of their own; those that kernels start (CDP_KERNEL)
# are in the time of these.
_NVPROF = _Schema(
    "nvprof",
    (
        ("CUPTI_ACTIVITY_KIND_KERNEL", "kernel", ("name",)),
        ("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "kernel", ("name",)),
        *_COPIES,
        ("CUPTI_ACTIVITY_KIND_MEMCPY2", "copy", ("copyKind",)),
    ),
    "StringTable",
    "_id_",
    ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"),
    zero=True,
)
# CUpti_ActivityMemcpyKind: H host, D device, A array on the device, P peer.
_COPY_KINDS = {
    1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD",
    9: "HtoH", 10: "PtoP",
}  # fmt: skip
_NS = 1e-9
_MOST_S = 1e8  # of a recording: more are times that were not collected
NO_WINDOW = "--window needs a database of nsys export or nvprof, which says when each event was"


@dataclass
class NsysFile:
    """What one file says: functions without a rank, and spans of the GPU's work by kind."""

    file: Path
    functions: list[Function] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    elapsed: float | None = None
    notes: dict[str, object] = field(default_factory=dict)
    tool: str = _NSYS.tool
    region: str = ""  # the window that was cut out of it
    busy_s: list[float] = field(default_factory=list)  # of each GPU, where there are several


@dataclass(frozen=True)
class Window:
    """A part of a recording: from and to so many seconds after its first event."""

    begin_s: float
    end_s: float

    def __str__(self) -> str:
        """The part in words."""
        return f"{self.begin_s:g} to {self.end_s:g} s"


def is_database(file: Path) -> bool:
    """Whether a file is an exported database. Raises ImportRefusedError if it cannot be read."""
    try:
        with file.open("rb") as stream:
            return stream.read(len(SQLITE)) == SQLITE.encode()
    except OSError as error:
        raise ImportRefusedError(error.strerror or "cannot be read") from None


def read_database(file: Path, window: Window | None = None) -> NsysFile:
    """Kernels and copies of an exported database, by name, or the part of them in a window.

    Raises ImportRefusedError.
    """
    content = NsysFile(file)
    try:
        _check_size(file)
        with _connection(file) as database:
            _read_tables(database, content, window)
    except (OSError, sqlite3.Error, OverflowError, ValueError, TypeError) as error:
        words = " ".join(str(error).split())[:100]
        raise ImportRefusedError(
            f"not a whole database of Nsight Systems or nvprof ({words})"
        ) from None
    return content


def _check_size(file: Path) -> None:
    """Raise ValueError where a database is shorter than its header says: SQLite would read what is
    there (https://www.sqlite.org/fileformat2.html, "The Database Header")."""
    with file.open("rb") as stream:
        header = stream.read(100)
    page, pages = (int.from_bytes(header[at : at + size]) for at, size in ((16, 2), (28, 4)))
    page = 65536 if page == 1 else page
    # Old versions did not keep the number of pages up to date.
    counted = header[24:28] == header[92:96]
    there = file.stat().st_size
    if len(header) < 100 or (counted and there < page * pages):
        raise ValueError(f"{there} of {page * pages} bytes")


def _read_tables(database: sqlite3.Connection, content: NsysFile, window: Window | None) -> None:
    """Fill in what the tables of a database say."""
    # A view or a trigger of a stranger could do anything: tables only.
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    tables = {str(row[0]) for row in database.execute(query)}
    schema = _NVPROF if _NVPROF.texts in tables else _NSYS
    first, last = _recorded(database, tables, schema)
    low, high = first, last
    if window is not None:
        low = min(first + round(window.begin_s / _NS), last)
        high = min(first + round(window.end_s / _NS), last)
        content.region = str(window)
        if low == high:
            raise ImportRefusedError(
                f"the recording has {(last - first) * _NS:.6g} s, none of it in {window}"
            )
    # 20 bytes for each event: there may be millions.
    begins, ends, devices = array("q"), array("q"), array("i")
    calls: dict[tuple[str, str], list[int]] = {}  # how many, sum, shortest and longest
    for kind, name, device, begin, end in _events(database, tables, schema, (low, high)):
        length = end - begin
        entry = calls.setdefault((kind, name), [0, 0, length, length])
        entry[0] += 1
        entry[1] += length
        entry[2] = min(entry[2], length)
        entry[3] = max(entry[3], length)
        begins.append(begin)
        ends.append(end)
        devices.append(device)
    names = demangled(sorted({name for _, name in calls}))
    content.tool = schema.tool
    content.functions = [
        Function(
            names.get(name, name), None, kind, count,
            *(time * _NS for time in (total, total, *limits)),
        )
        for (kind, name), (count, total, *limits) in calls.items()
    ]  # fmt: skip
    if begins:
        content.phases.append(_gpu(begins, ends))
        content.elapsed = (high - low) * _NS
        content.busy_s = _each_busy(begins, ends, devices)
    if schema is _NSYS:
        if begins and window is None:
            content.elapsed = _length(database, tables, max(ends) - min(begins))
        content.notes["diagnostics"] = _diagnostics(database, tables)
        if _GRAPHS in tables:
            content.notes["graphs"] = (
                "CUDA graphs are launches as a whole, copies in them included; `nsys profile "
                "--cuda-graph-trace=node` records their kernels"
            )
    else:
        content.notes["recording"] = "from the first to the last call or event that nvprof recorded"
        if unknown := _without_times(database, tables, schema):
            content.notes["without_times"] = f"{unknown} events, left out"


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


def _known(schema: _Schema) -> str:
    """What is asked of the rows whose times are known."""
    return 'start <> 0 AND "end" <> 0' if schema.zero else "1"


def _recorded(database: sqlite3.Connection, tables: set[str], schema: _Schema) -> tuple[int, int]:
    """When the first event (or call) begins and the last one ends, in nanoseconds; 0 of none.

    Raises ImportRefusedError for events that cannot be.
    """
    events = [table for table, _, _ in schema.events if table in tables]
    for table in events:
        if not {"start", "end"} <= _columns(database, table):
            raise ImportRefusedError(f"table {table} has no start and end")
        odd = """typeof(start) <> 'integer' OR typeof("end") <> 'integer' OR "end" < start"""
        query = f"SELECT 1 FROM {table} WHERE ({odd}) AND ({_known(schema)}) IS NOT FALSE LIMIT 1"
        if database.execute(query).fetchone():
            raise ImportRefusedError(f"table {table}: an event ends before it begins")
    calls = [table for table in schema.calls if table in tables]
    calls = [table for table in calls if {"start", "end"} <= _columns(database, table)]
    spans: list[tuple[int, int]] = []
    for table in events + calls:
        # A call that did not return has no end.
        query = f'SELECT min(start), max("end") FROM {table} WHERE {_known(schema)}'
        query += ' AND "end" >= start'
        first, last = database.execute(query).fetchone()
        if isinstance(first, int) and isinstance(last, int):
            spans.append((first, last))
    if not spans:
        return 0, 0
    first, last = min(first for first, _ in spans), max(last for _, last in spans)
    if (last - first) * _NS > _MOST_S:
        raise ValueError(f"a recording of {(last - first) * _NS:.3g} s")
    return first, last


def _without_times(database: sqlite3.Connection, tables: set[str], schema: _Schema) -> int:
    """How many events have no times (CUPTI could not collect them)."""
    return sum(
        database.execute(f"SELECT count(*) FROM {table} WHERE NOT ({_known(schema)})").fetchone()[0]
        for table, _, _ in schema.events
        if table in tables
    )


def _events(
    database: sqlite3.Connection, tables: set[str], schema: _Schema, limits: tuple[int, int]
) -> Iterator[tuple[str, str, int, int, int]]:
    """Kind, name, GPU, start and end (nanoseconds) of every kernel, copy and fill: of each event
    the part between the limits."""
    names: dict[int, str] = {}
    if schema.texts in tables:
        rows = database.execute(f"SELECT {schema.key}, value FROM {schema.texts}")
        names = {row[0]: str(row[1]) for row in rows}
    low, high = limits
    count = 0
    for table, kind, candidates in schema.events:
        if table not in tables:
            continue
        columns = _columns(database, table)
        key_column = next((name for name in candidates if name in columns), "NULL")
        device_column = "deviceId" if "deviceId" in columns else "0"
        query = (
            f'SELECT start, "end", {key_column}, {device_column} FROM {table}'
            f" WHERE {_known(schema)}"
            ' AND start <= ? AND "end" >= ?'
        )
        for begin, end, key, device in database.execute(query, (high, low)):
            if (count := count + 1) > _MAX_EVENTS:
                raise ImportRefusedError(
                    f"more than {_MAX_EVENTS} events: cut a window out of it (--window), or export "
                    "tables"
                )
            begin_, end_ = max(begin, low), min(end, high)
            if end_ > begin_ or end == begin:
                yield kind, _event_name(table, key, names), device, begin_, end_


def _event_name(table: str, key: object, names: Mapping[int, str]) -> str:
    if table.endswith("MEMSET"):
        return "[CUDA memset]"
    if "MEMCPY" in table:
        known = _COPY_KINDS.get(key) if isinstance(key, int) else None
        return f"[CUDA memcpy {known or key}]"
    if table == _GRAPHS:
        return "[CUDA graph]" if key is None else f"[CUDA graph {key}]"
    return names.get(key, f"kernel {key}") if isinstance(key, int) else str(key)


def _gpu(begins: ArrayLike, ends: ArrayLike) -> Phase:
    """The time of all events, and the time during which there was one."""
    starts, stops = np.asarray(begins, np.int64), np.asarray(ends, np.int64)
    order = np.argsort(starts, kind="stable")
    starts, latest = starts[order], np.maximum.accumulate(stops[order])
    # What of each event lies behind all that began before it.
    before = np.concatenate([starts[:1], latest[:-1]])
    union = np.maximum(latest - np.maximum(starts, before), 0).sum()
    total = (np.asarray(ends, np.int64) - np.asarray(begins, np.int64)).sum()
    return Phase("GPU", len(starts), float(total) * 1e-9, float(union) * 1e-9)


def _each_busy(begins: Sequence[int], ends: Sequence[int], devices: Sequence[int]) -> list[float]:
    """Seconds that each of several GPUs has at least one event; nothing of a single one."""
    of, starts, stops = (np.asarray(values) for values in (devices, begins, ends))
    known = np.unique(of)
    if len(known) < 2:
        return []
    return [_gpu(starts[of == each], stops[of == each]).union_s for each in known]


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
