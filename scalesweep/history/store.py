"""The history on disk: an append-only Parquet data set, a file for what each append added.

``FOLDER/sessions/<session>-<digest>.parquet`` holds a row per run and number (``SCHEMA``). A file
is written by rename and never changed, under a name that follows from its content, so that any
number of writers lose nothing and appending twice adds nothing. ``duckdb``, pandas and Polars read
the folder as it is.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from scalesweep.analysis.parquet import open_parquet, read_arrow
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of, is_whole, replacing, sealed
from scalesweep.core.record_check import MAX_NUMBER

_log = logging.getLogger(__name__)

SESSIONS = "sessions"  # folder of the files
BROKEN = ".broken"
VERSION = 1  # of the columns
# Kinds of rows.
METRIC, LEDGER, CANARY, PART = "metric", "ledger", "canary", "part"

_TEXT, _TIME = pa.string(), pa.timestamp("ms", "UTC")
# docs/guide/history.md says what each means.
SCHEMA = pa.schema(
    [
        *((name, _TEXT) for name in ("session", "campaign", "site", "source", "results")),
        *((name, _TEXT) for name in ("experiment", "benchmark")),
        ("version", pa.int64()),
        *((name, _TEXT) for name in ("scaling", "device", "scale", "identity", "point", "label")),
        *(("workers", pa.int64()), ("run_id", _TEXT), ("repeat", pa.int64())),
        *(("started", _TIME), ("ended", _TIME), ("commit", _TEXT), ("dirty", pa.bool_())),
        *(("commit_time", _TIME), ("subject", _TEXT), ("tags", _TEXT), ("repository", _TEXT)),
        *((name, _TEXT) for name in ("program", "hosts", "launcher", "facts")),
        *((name, _TEXT) for name in ("kind", "metric", "phase")),
        *(("value", pa.float64()), ("unit", _TEXT), ("better", _TEXT)),
        *(("main", pa.bool_()), ("judged", pa.bool_())),
        *((name, _TEXT) for name in ("series", "ideal")),
    ]
)
_FEW = [
    name for name, kind in zip(SCHEMA.names, SCHEMA.types, strict=True)
    if kind == _TEXT
]  # fmt: skip
_ADDED = frozenset(("series", "ideal"))  # columns that files of before lack
# Columns whose value may not be known.
_MAY_LACK = _ADDED | frozenset(
    ("commit", "commit_time", "ended", "dirty", "repository", "subject", "tags")
)
_LIMITS = {
    pa.int64(): (pa.scalar(0), pa.scalar(2**31)),
    pa.float64(): (pa.scalar(-MAX_NUMBER), pa.scalar(MAX_NUMBER)),
    _TIME: tuple(pa.scalar(datetime(year, 1, 1, tzinfo=UTC), _TIME) for year in (1970, 9000)),
}
_META = b"scalesweep_history"
# A run by site, id and start: measured again, it is another one.
RunKey = tuple[str, str, str]


@dataclass(frozen=True)
class Session:
    """Runs to keep: ``group`` says of what they are a session (campaign, folder, commit).

    ``rows``: of each run its key and its rows, without the column ``session``.
    """

    group: str
    first: str  # start of the earliest run, as ``20260131T235959Z``
    rows: Mapping[RunKey, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Loaded:
    """A history as read: ``rows`` as in ``SCHEMA``, text by dictionary, each run once.

    ``broken``: damaged files and why; they have been set aside, or could not be.
    """

    rows: pa.Table
    broken: Mapping[str, str]


def append(folder: Path, sessions: Iterable[Session]) -> list[Path]:
    """Write what is new of some sessions; returns the files, none where all is there already.

    What is added to a session that is there gets its id. Raises UserError if the folder cannot be
    written or holds files of a newer scalesweep.
    """
    place = folder / SESSIONS
    try:
        place.mkdir(parents=True, exist_ok=True)
        known: set[RunKey] = set()
        ids: dict[str, list[tuple[str, set[RunKey]]]] = {}
        for _, meta in _metadata(place):
            keys = {_key(run) for run in meta["runs"]}
            known |= keys
            ids.setdefault(meta["group"], []).append((meta["session"], keys))
        written = []
        for session in sessions:
            new = {key: rows for key, rows in session.rows.items() if key not in known}
            if not new:
                continue
            same = [name for name, keys in ids.get(session.group, ()) if keys & session.rows.keys()]
            name = (
                same[0]
                if same
                else f"{session.first}-{digest_of([session.group, session.first], 3)}"
            )
            written.append(_write(place, name, session.group, new))
        return written
    except OSError as error:
        where = error.filename or place
        raise UserError(f"{where}: the history cannot be written: {error.strerror}") from None


def kept_as_others(folder: Path, sessions: Iterable[Session]) -> list[tuple[RunKey, str, str]]:
    """Runs of some sessions that a history has as runs of another commit: key, commit of the
    session, commit in the history (empty where it is not known)."""
    rows = load(folder, ["site", "run_id", "started", "commit"]).rows
    frame = rows.to_pandas().drop_duplicates()
    kept = {
        (site, run_id, started.isoformat()): commit if isinstance(commit, str) else ""
        for site, run_id, started, commit in frame.itertuples(index=False)
    }
    ours = {
        key: rows[0]["commit"] for session in sessions for key, rows in session.rows.items() if rows
    }
    return [
        (key, commit, kept[key])
        for key, commit in ours.items()
        if commit and key in kept and kept[key] != commit
    ]


def _write(
    place: Path, session: str, group: str, runs: Mapping[RunKey, Sequence[Mapping[str, Any]]]
) -> Path:
    rows = [{**row, "session": session} for key in sorted(runs) for row in runs[key]]
    table = pa.Table.from_pylist(rows, SCHEMA)
    meta = {"version": VERSION, "session": session, "group": group, "runs": sorted(runs)}
    table = table.replace_schema_metadata({_META: sealed(meta).encode()})
    path = place / f"{session}-{digest_of(sorted(runs), 4)}.parquet"
    with replacing(path, durable=True) as temporary:
        # A page whose bytes have changed is noticed when it is read.
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)
    return path


def _key(run: Sequence[str]) -> RunKey:
    site, run_id, started = run
    return site, run_id, started


def _files(place: Path) -> list[Path]:
    return sorted(path for path in place.glob("*.parquet") if path.name[0] != ".")


def _metadata(place: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """What each file says of itself; damaged ones are set aside with a warning."""
    for path in _files(place):
        try:
            meta = _meta_of(path)
        except (FileNotFoundError, PermissionError):
            raise
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
            _set_aside(path, _line(error))
            continue
        if meta is not None:
            yield path, meta


def _meta_of(path: Path) -> dict[str, Any] | None:
    """What a file of ours says of itself; None for another's.

    Raises UserError for a newer one, and ValueError or an error of Arrow for one that is damaged.
    """
    with open_parquet(path) as file:
        text = (file.metadata.metadata or {}).get(_META)
    if text is None:
        _log.warning("%s: not a session of scalesweep: left out", path)
        return None
    meta: dict[str, Any] = json.loads(text)
    if not is_whole(text, needed=True):
        raise ValueError("what it says of itself has changed")
    if type(meta["version"]) is int and meta["version"] > VERSION:
        raise UserError(
            f"{path}: written by a newer scalesweep (version {meta['version']} of the history, "
            f"this one reads {VERSION}): use that one"
        )
    if not _is_meta(meta):
        raise ValueError("what it says of itself is of other types")
    return meta


def _is_meta(meta: Mapping[str, Any]) -> bool:
    runs = meta.get("runs")
    return (
        type(meta.get("version")) is int
        and isinstance(meta.get("session"), str)
        and isinstance(meta.get("group"), str)
        and isinstance(runs, list)
        and all(isinstance(run, list) and [*map(type, run)] == [str, str, str] for run in runs)
    )


def load(folder: Path, columns: Sequence[str] = SCHEMA.names) -> Loaded:
    """Read these columns of all sessions of a history.

    Damaged files are set aside (``.broken``) and named. Raises UserError if there is no history, or
    a file cannot be read for another reason.
    """
    place = folder / SESSIONS
    if not place.is_dir():
        raise UserError(f"{folder}: no history: no campaign with `history: {folder}` has ended yet")
    tables: list[pa.Table] = []
    broken: dict[str, str] = {}
    seen: set[RunKey] = set()
    files = _files(place)
    with ThreadPoolExecutor(2) as pool:
        for path, result in zip(files, pool.map(partial(_read, columns), files), strict=True):
            if isinstance(result, str):
                broken[path.name] = result
                _set_aside(path, result)
            elif result is not None:
                table, keys = result
                tables.append(_without(path, table, keys & seen))
                seen |= keys
    if not tables:
        return Loaded(_dictionaries(SCHEMA.empty_table().select(columns)), broken)
    return Loaded(pa.concat_tables(tables).unify_dictionaries().combine_chunks(), broken)


def _read(columns: Sequence[str], path: Path) -> tuple[pa.Table, set[RunKey]] | str | None:
    """The rows and runs of a file, or why it is damaged; None for a file that is none of ours."""
    try:
        meta = _meta_of(path)
        if meta is None:
            return None
        coded = [name for name in _FEW if name not in _ADDED]
        checked = {"page_checksum_verification": True, "read_dictionary": coded}
        rows = read_arrow(path, columns, **checked).replace_schema_metadata()
        for name in _ADDED.difference(rows.column_names).intersection(columns):
            rows = rows.append_column(name, pa.nulls(len(rows), _TEXT))
        rows = _dictionaries(rows.select(columns))
        _check_rows(rows)
        return rows, {_key(run) for run in meta["runs"]}
    except FileNotFoundError:
        return None  # set aside by another reader
    except PermissionError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        return _line(error)


def _check_rows(rows: pa.Table) -> None:
    """Raise ValueError for values that no session has: missing ones, numbers and dates beyond all
    that can be computed with."""
    for name in rows.column_names:
        column, kind = rows[name], SCHEMA.field(name).type
        if name not in _MAY_LACK and column.null_count:
            raise ValueError(f"column {name} lacks values")
        if name == "better" and not {*pc.unique(column).to_pylist()} <= {"higher", "lower"}:
            raise ValueError("column better has other words than higher and lower")
        limits = _LIMITS.get(kind)
        if limits is None or column.null_count == len(column):
            continue
        # Of NaN neither is true.
        inside = pc.and_(pc.greater_equal(column, limits[0]), pc.less(column, limits[1]))
        if not pc.all(inside).as_py():
            raise ValueError(f"column {name} has values out of range")


def _dictionaries(table: pa.Table) -> pa.Table:
    """With all columns of few texts as dictionaries, and the types of ``SCHEMA`` otherwise."""
    kinds = [
        pa.field(
            name, pa.dictionary(pa.int32(), _TEXT) if name in _FEW else SCHEMA.field(name).type
        )
        for name in table.column_names
    ]
    wanted = pa.schema(kinds)
    return table if table.schema.equals(wanted) else table.cast(wanted)


def _without(path: Path, table: pa.Table, twice: set[RunKey]) -> pa.Table:
    """The rows of a file without the runs that another has too: two writers at once may have
    given one session two names."""
    if not twice:
        return table
    runs = read_arrow(path, ["site", "run_id", "started"])
    known = {(site, run_id, datetime.fromisoformat(time)) for site, run_id, time in twice}
    keep = [run not in known for run in zip(*(c.to_pylist() for c in runs.columns), strict=True)]
    return table.filter(pa.array(keep))


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _set_aside(path: Path, why: str) -> None:
    _log.warning("%s: damaged (%s): set aside as %s%s", path, why, path.name, BROKEN)
    try:
        path.replace(path.with_name(path.name + BROKEN))
    except OSError:
        _log.warning("%s: cannot be renamed: left out", path)
