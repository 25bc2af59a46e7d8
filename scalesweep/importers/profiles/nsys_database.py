"""Databases of ``nsys export --type sqlite`` and of ``nvprof -o``: kernels, copies and how long the
GPU was busy.

Tables exist only if they have rows, and their columns change between versions (Nsight Systems user
guide, "SQLite Schema Reference"); nvprof's are CUPTI's activity records (``cupti_activity.h``).
"""

import sqlite3
import subprocess
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
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
    names = _names(database, tables, nvprof)
    shown = [table for table in _EVENTS if table in tables]
    parts = [_events(database, table, names) for table in shown]
    every = pd.concat([pd.DataFrame(columns=["kind", "name", "device", "start", "end"]), *parts])
    if nvprof:  # writes 0 for what CUPTI could not collect
        known = (every["start"] != 0) & (every["end"] != 0)
        if not known.all():
            recording.notes["without_times"] = f"{(~known).sum()} events, left out"
        every = every[known]
    if _GRAPHS in tables:
        recording.notes["graphs"] = (
            "CUDA graphs are launches as a whole, copies in them included; `nsys profile "
            "--cuda-graph-trace=node` records their kernels"
        )
    if every.empty:
        return recording
    begins, ends = every["start"].astype("i8"), every["end"].astype("i8")
    if (ends < begins).any():
        raise ImportRefusedError("an event ends before it begins")
    seconds = (ends - begins).astype(float) * _NS
    sums = seconds.groupby([every["kind"], every["name"]], sort=False)
    plain = _demangled([*every["name"].unique()])
    for (kind, name), own in sums:
        total, least, most = float(own.sum()), float(own.min()), float(own.max())
        calls = Function(str(name), None, str(kind), len(own), total, total, least, most)
        recording.functions.append(replace(calls, name=plain.get(calls.name, calls.name)))
    first, last = _recorded(database, tables if nvprof else set(), begins.min(), ends.max())
    recording.elapsed = (last - first) * _NS
    if "ANALYSIS_DETAILS" in tables:
        stated = database.execute("SELECT max(duration) FROM ANALYSIS_DETAILS").fetchone()[0]
        recording.elapsed = max(recording.elapsed, (stated or 0) * _NS)
    if recording.elapsed > _MOST_S:
        raise ValueError(f"a recording of {recording.elapsed:.3g} s")
    spans = np.column_stack([begins, ends])
    recording.gpu_s = _busy(spans)
    if every["device"].nunique() > 1:
        recording.busy_s = [
            _busy(spans[(every["device"] == device).to_numpy()])
            for device in every["device"].unique()
        ]
    return recording


def _events(database: sqlite3.Connection, table: str, names: Mapping[Any, str]) -> pd.DataFrame:
    """The events of a table: kind, name, device, start and end in nanoseconds."""
    kind, candidates = _EVENTS[table]
    query = f'PRAGMA table_info("CUPTI_ACTIVITY_KIND_{table}")'
    columns = {str(row[1]) for row in database.execute(query)}
    key = next((name for name in candidates if name in columns), "NULL")
    device = "deviceId" if "deviceId" in columns else "0"
    query = f'SELECT {key}, {device}, start, "end" FROM CUPTI_ACTIVITY_KIND_{table}'
    rows = pd.DataFrame(database.execute(query), columns=["key", "device", "start", "end"])
    places, keys = pd.factorize(rows["key"].astype(object), use_na_sentinel=False)
    known = [_event_name(table, None if pd.isna(key) else key, names) for key in keys]
    return rows.assign(kind=kind, name=np.array(known, object)[places]).drop(columns="key")


def _recorded(
    database: sqlite3.Connection, tables: Collection[str], first: int, last: int
) -> tuple[int, int]:
    """When what was recorded begins and ends in nanoseconds, the host's calls of nvprof included:
    one that did not return has no end."""
    for table in {"RUNTIME", "DRIVER"} & {*tables}:
        query = 'SELECT min(start), max("end") FROM CUPTI_ACTIVITY_KIND_{} WHERE "end" >= start'
        query += ' AND start <> 0 AND "end" <> 0'
        span = database.execute(query.format(table)).fetchone()
        if None not in span:
            first, last = min(first, span[0]), max(last, span[1])
    return int(first), int(last)


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
    """Seconds during which there was an event, of ``[event, 2]`` in nanoseconds."""
    merged = union(spans)
    return float((merged[:, 1] - merged[:, 0]).sum()) * _NS


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
