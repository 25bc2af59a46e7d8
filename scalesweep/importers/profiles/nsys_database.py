"""Databases of ``nsys export --type sqlite`` and of ``nvprof -o``: kernels, copies and how long the
GPU was busy.

Tables exist only if they have rows, and their columns change between versions (Nsight Systems user
guide, "SQLite Schema Reference"); nvprof's are CUPTI's activity records (``cupti_activity.h``).
"""

import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.profile import Function
from scalesweep.analysis.trace_account import union
from scalesweep.importers.imported_run import ImportRefusedError

SQLITE = "SQLite format 3"
# Table -> kind of its events, columns that may say what each is. Kernels that kernels start
# (CDP_KERNEL) are in the time of these. Of CUDA graphs Nsight records whole launches by default.
_GRAPHS = "GRAPH_TRACE"
_EVENTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "KERNEL": ("kernel", ("demangledName", "shortName", "name")),
    "CONCURRENT_KERNEL": ("kernel", ("name",)), _GRAPHS: ("kernel", ("graphId",)),
    "MEMCPY": ("copy", ("copyKind",)), "MEMCPY2": ("copy", ("copyKind",)), "MEMSET": ("copy", ()),
}  # fmt: skip
# CUpti_ActivityMemcpyKind, from 1: H host, D device, A array on the device, P peer.
_COPIES = ("HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
_SPAN = np.dtype([("device", "i4"), ("begin", "i8"), ("end", "i8")])
_NS = 1e-9
_MOST_S = 1e8  # of a recording: more are times that were not collected


@dataclass
class Recording:
    """What one file says: functions without a rank, and when the GPU worked."""

    file: Path
    functions: list[Function] = field(default_factory=list)
    gpu_s: float | None = None
    elapsed: float | None = None
    notes: dict[str, object] = field(default_factory=dict)
    tool: str = "nsys"
    busy_s: list[float] = field(default_factory=list)  # of each GPU, if there are several


def read_database(file: Path) -> Recording:
    """Kernels and copies of a database by name. Raises ImportRefusedError."""
    try:
        address = f"{file.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as database:
            database.text_factory = lambda raw: raw.decode("utf-8", "replace")
            if file.stat().st_size % database.execute("PRAGMA page_size").fetchone()[0]:
                raise ValueError("cut off")  # SQLite misses whole pages only
            return _database(database, file)
    except (sqlite3.Error, OverflowError, ValueError, TypeError) as error:
        words = " ".join(str(error).split())[:100]
        raise ImportRefusedError(
            f"not a whole database of Nsight Systems or nvprof ({words})"
        ) from None


def _database(database: sqlite3.Connection, file: Path) -> Recording:
    """Kernels and copies of a database by name, and how long the GPU was busy. Raises
    ImportRefusedError or sqlite3.Error."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"  # no view of a stranger
    tables = {str(row[0]).removeprefix("CUPTI_ACTIVITY_KIND_") for row in database.execute(query)}
    nvprof = "StringTable" in tables
    recording = Recording(file, tool="nvprof" if nvprof else "nsys")
    # nvprof writes 0 for what CUPTI could not collect.
    known = 'start <> 0 AND "end" <> 0' if nvprof else "1"
    events = [table for table in _EVENTS if table in tables]
    calls = [table for table in ("RUNTIME", "DRIVER") if nvprof and table in tables]
    first, last = _recorded(database, events, calls, known)
    names = _names(database, tables, nvprof)
    spans: list[NDArray[Any]] = []
    sums: dict[tuple[str, str], list[int]] = {}
    for table in events:
        kind, candidates = _EVENTS[table]
        columns = _columns(database, table)
        key = next((name for name in candidates if name in columns), "NULL")
        device = "deviceId" if "deviceId" in columns else "0"
        events_of = f"FROM CUPTI_ACTIVITY_KIND_{table} WHERE {known}"
        length = '("end" - start)'
        query = f"SELECT {key}, count(*), sum({length}), min({length}), max({length}) {events_of}"
        query += f" GROUP BY {key}"
        for key, *numbers in database.execute(query):
            entry = sums.setdefault((kind, _event_name(table, key, names)), [0, 0, numbers[2], 0])
            entry[:] = [entry[0] + numbers[0], entry[1] + numbers[1], min(entry[2], numbers[2]),
                        max(entry[3], numbers[3])]  # fmt: skip
        query = f'SELECT {device}, start, "end" {events_of}'
        spans.append(np.fromiter(database.execute(query), _SPAN))
    plain = _demangled([name for _, name in sums])
    recording.functions = [
        Function(
            plain.get(name, name), None, kind, count, *(t * _NS for t in (total, total, *ends))
        )
        for (kind, name), (count, total, *ends) in sums.items()
    ]
    every = spans[0] if len(spans) == 1 else np.concatenate([np.empty(0, _SPAN), *spans])
    if every.size:
        recording.gpu_s = _busy(every)
        devices = np.unique(every["device"])
        if len(devices) > 1:
            parts = [every[every["device"] == device] for device in devices]
            recording.busy_s = [_busy(part) for part in parts]
        recording.elapsed = (last - first) * _NS
        if "ANALYSIS_DETAILS" in tables:
            stated = database.execute("SELECT max(duration) FROM ANALYSIS_DETAILS").fetchone()[0]
            recording.elapsed = max(recording.elapsed, (stated or 0) * _NS)
    recording.notes = _notes(database, tables, events, known)
    return recording


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    query = f'PRAGMA table_info("CUPTI_ACTIVITY_KIND_{table}")'
    return {str(row[1]) for row in database.execute(query)}


def _recorded(
    database: sqlite3.Connection, events: Sequence[str], calls: Sequence[str], known: str
) -> tuple[int, int]:
    """When the first event (or call) begins and the last one ends, in nanoseconds; 0 of none.

    Raises ImportRefusedError for events that cannot be.
    """
    spans: list[tuple[int, int]] = []
    for table in (*events, *calls):
        query = f'FROM CUPTI_ACTIVITY_KIND_{table} WHERE {known} AND "end"'
        if table in events and database.execute(f"SELECT 1 {query} < start LIMIT 1").fetchone():
            raise ImportRefusedError(f"table {table}: an event ends before it begins")
        # A call that did not return has no end.
        span = database.execute(f'SELECT min(start), max("end") {query} >= start').fetchone()
        spans += [(int(span[0]), int(span[1]))] if None not in span else []
    first, last = min((s for s, _ in spans), default=0), max((e for _, e in spans), default=0)
    if (last - first) * _NS > _MOST_S:
        raise ValueError(f"a recording of {(last - first) * _NS:.3g} s")
    return first, last


def _names(database: sqlite3.Connection, tables: set[str], nvprof: bool) -> dict[Any, str]:
    table, key = ("StringTable", "_id_") if nvprof else ("StringIds", "id")
    if table not in tables:
        return {}
    return {key: str(value) for key, value in database.execute(f"SELECT {key}, value FROM {table}")}


def _event_name(table: str, key: Any, names: Mapping[Any, str]) -> str:
    if table == "MEMSET":
        return "[CUDA memset]"
    if table.startswith("MEMCPY"):
        known = isinstance(key, int) and 0 < key <= len(_COPIES)
        return f"[CUDA memcpy {_COPIES[key - 1] if known else key}]"
    if table == _GRAPHS:
        return "[CUDA graph]" if key is None else f"[CUDA graph {key}]"
    return names.get(key, f"kernel {key}") if isinstance(key, int) else str(key)


def _busy(spans: NDArray[Any]) -> float:
    """Seconds during which there was an event."""
    merged = union(np.column_stack([spans["begin"], spans["end"]]))
    return float((merged[:, 1] - merged[:, 0]).sum()) * _NS


def _notes(
    database: sqlite3.Connection, tables: set[str], events: Sequence[str], known: str
) -> dict[str, object]:
    """What the tool says of its own recording: an absence may be a failure to record."""
    notes: dict[str, object] = {}
    if _GRAPHS in tables:
        notes["graphs"] = (
            "CUDA graphs are launches as a whole, copies in them included; `nsys profile "
            "--cuda-graph-trace=node` records their kernels"
        )
    query = "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_{} WHERE NOT ({})"
    unknown = sum(database.execute(query.format(it, known)).fetchone()[0] for it in events)
    if unknown:
        notes["without_times"] = f"{unknown} events, left out"
    return notes


def _demangled(names: Sequence[str]) -> Mapping[str, str]:
    """The plain name of each mangled one of C++, by ``c++filt``; nothing if there is none."""
    mangled = [name for name in names if name.startswith("_Z") and name.isprintable()]
    if not mangled:
        return {}
    try:
        done = subprocess.run(
            ["c++filt"], input="\n".join(mangled), capture_output=True, text=True, timeout=60,
            check=True,
        )  # fmt: skip
        return dict(zip(mangled, done.stdout.splitlines(), strict=True))
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
