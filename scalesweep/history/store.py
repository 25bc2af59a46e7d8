"""The history on disk: a folder of Parquet files, one for what each append added.

``FOLDER/sessions/<session>-<digest>.parquet`` holds a row per run and number (``SCHEMA``). A file
is written by rename and never changed, under a name that follows from its content, so that any
number of writers lose nothing and appending twice adds nothing.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of, replacing

_log = logging.getLogger(__name__)

SESSIONS = "sessions"  # folder of the files
# Kinds of rows: a metric, a term of the step, a part of a profile, the machine's own speed.
METRIC, TERM, PART, CANARY = "metric", "term", "part", "canary"

_TEXT, _TIME = pa.string(), pa.timestamp("ms", "UTC")
# docs/guide/history.md says what each means.
SCHEMA = pa.schema(
    [
        *((name, _TEXT) for name in ("session", "group", "campaign", "site", "source", "results")),
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
# A run by site, id and start: measured again, it is another one.
RUN = ["site", "run_id", "started"]
RunKey = tuple[str, str, str]


@dataclass(frozen=True)
class Session:
    """Runs to keep: ``group`` says of what they are a session (campaign, folder, commit).

    ``first``: start of the earliest run, as ``20260131T235959Z``; ``rows``: of each run its key and
    its rows, without the columns ``session`` and ``group``.
    """

    group: str
    first: str
    rows: Mapping[RunKey, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Loaded:
    """A history as read, each run once; ``broken``: files that cannot be read, and why."""

    rows: pd.DataFrame
    broken: Mapping[str, str]


def append(folder: Path, sessions: Iterable[Session]) -> list[Path]:
    """Write what is new of some sessions; returns the files, none where all is there already.

    What is added to a session that is there gets its id. Raises UserError if the folder cannot be
    written.
    """
    place = folder / SESSIONS
    try:
        place.mkdir(parents=True, exist_ok=True)
        kept = _kept(place)
        written = []
        for session in sessions:
            new = {key: rows for key, rows in session.rows.items() if key not in kept}
            if not new:
                continue
            same = [
                name for key in session.rows if key in kept
                for group, name in [kept[key]] if group == session.group
            ]  # fmt: skip
            fresh = f"{session.first}-{digest_of([session.group, session.first], 3)}"
            written.append(_write(place, same[0] if same else fresh, session.group, new))
        return written
    except OSError as error:
        where = error.filename or place
        raise UserError(f"{where}: the history cannot be written: {error.strerror}") from None


def _kept(place: Path) -> dict[RunKey, tuple[str, str]]:
    """The runs of a history, with group and name of their sessions."""
    frame = _read(place, [*RUN, "group", "session"]).rows.drop_duplicates()
    return {
        (site, run_id, started.isoformat()): (group, session)
        for site, run_id, started, group, session in frame.itertuples(index=False)
    }


def _write(
    place: Path, session: str, group: str, runs: Mapping[RunKey, Sequence[Mapping[str, Any]]]
) -> Path:
    rows = [
        {**row, "session": session, "group": group} for key in sorted(runs) for row in runs[key]
    ]
    path = place / f"{session}-{digest_of(sorted(runs), 4)}.parquet"
    with replacing(path, durable=True) as temporary:
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA), temporary, compression="zstd")
    return path


def load(folder: Path, columns: Sequence[str] = SCHEMA.names) -> Loaded:
    """Read these columns of all sessions; a file that cannot be read is left out and named.

    Raises UserError if there is no history.
    """
    place = folder / SESSIONS
    if not place.is_dir():
        raise UserError(f"{folder}: no history: no campaign with `history: {folder}` has ended yet")
    loaded = _read(place, list(dict.fromkeys([*columns, *RUN, "session"])))
    return Loaded(_once(loaded.rows), loaded.broken)


def _read(place: Path, columns: Sequence[str]) -> Loaded:
    files = sorted(str(path) for path in place.glob("[!.]*.parquet"))
    broken: dict[str, str] = {}
    try:
        table = _table(files, columns)
    except (pa.ArrowException, OSError, ValueError):
        for file in list(files):
            try:
                _table([file], columns)
            except (pa.ArrowException, OSError, ValueError) as error:
                files.remove(file)
                broken[Path(file).name] = " ".join(str(error).split())[:200]
                _log.warning("%s: cannot be read (%s): left out", file, broken[Path(file).name])
        table = _table(files, columns)
    return Loaded(table.to_pandas(strings_to_categorical=True), broken)


def _table(files: Sequence[str], columns: Sequence[str]) -> pa.Table:
    wanted = pa.schema([SCHEMA.field(name) for name in columns])
    if not files:
        return wanted.empty_table()
    return ds.dataset(list(files), schema=SCHEMA, format="parquet").to_table(columns=list(columns))


def _once(rows: pd.DataFrame) -> pd.DataFrame:
    """Each run once: two writers at the same time may have given one session two names."""
    runs = rows[[*RUN, "session"]].drop_duplicates()
    twice = runs[runs.duplicated(RUN)]
    if twice.empty:
        return rows
    index = pd.MultiIndex.from_frame(rows[[*RUN, "session"]].astype(str))
    return rows[~index.isin(pd.MultiIndex.from_frame(twice.astype(str)))]


def kept_as_others(folder: Path, sessions: Iterable[Session]) -> list[tuple[RunKey, str, str]]:
    """Runs of some sessions that a history has as runs of another commit: key, commit of the
    session, commit in the history (empty where it is not known)."""
    frame = load(folder, [*RUN, "commit"]).rows.drop_duplicates(RUN)
    kept = {
        (site, run_id, started.isoformat()): commit if isinstance(commit, str) else ""
        for site, run_id, started, commit in frame[[*RUN, "commit"]].itertuples(index=False)
    }
    ours = {
        key: rows[0]["commit"] for session in sessions for key, rows in session.rows.items() if rows
    }
    return [
        (key, commit, kept[key])
        for key, commit in ours.items()
        if commit and key in kept and kept[key] != commit
    ]
