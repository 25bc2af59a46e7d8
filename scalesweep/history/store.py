"""The history on disk: a folder of Parquet files, one for what each append added.

``FOLDER/sessions/<session>-<digest>.parquet`` holds a row per run and number (``SCHEMA``). A file
is written by rename and never changed, under a name that follows from its content, so that any
number of writers lose nothing and appending twice adds nothing. So it is with two commits measured
alternately: ``FOLDER/alternate/<digest>.parquet`` has a row per point (``VERDICT``).
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from scalesweep.analysis.parquet import read_frame
from scalesweep.analysis.table_io import write_parquet
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of, replacing

_log = logging.getLogger(__name__)

SESSIONS, ALTERNATE = "sessions", "alternate"  # folders of the files
# Kinds of rows beside metrics: a term of the step, a part of a profile, the speedup of a point.
TERM, PART, SPEEDUP = "term", "part", "speedup"

_TEXT, _TIME = pa.string(), pa.timestamp("ms", "UTC")
# docs/reference/files.md says what they mean. ``group``: of what its runs are a session (campaign,
# folder, commit). ``read_from``: of an import a digest of source and commit.
SCHEMA = pa.schema(
    [
        *((name, _TEXT) for name in ("session", "group", "campaign", "site", "source", "results")),
        *((name, _TEXT) for name in ("experiment", "benchmark")),
        ("version", pa.int64()),
        *((name, _TEXT) for name in ("scaling", "device", "identity", "point", "label")),
        *(("workers", pa.int64()), ("run_id", _TEXT), ("read_from", _TEXT), ("repeat", pa.int64())),
        *(("started", _TIME), ("ended", _TIME), ("commit", _TEXT), ("dirty", pa.bool_())),
        *(("commit_time", _TIME), ("subject", _TEXT), ("tags", _TEXT), ("repository", _TEXT)),
        *((name, _TEXT) for name in ("program", "hosts", "launcher", "facts")),
        *((name, _TEXT) for name in ("kind", "metric", "phase")),
        *(("value", pa.float64()), ("unit", _TEXT), ("better", _TEXT)),
        *(("main", pa.bool_()), ("judged", pa.bool_())),
        # Of a speedup: its interval and efficiency, as the campaign's tables have them.
        *((name, pa.float64()) for name in ("low", "high", "share")),
    ]
)
# A run by site, id and start: measured again, it is another one. The start of an import may be its
# file's age, which many files share.
RUN = ["site", "run_id", "started", "read_from"]
# What distinguishes a point, and a line of its sessions.
POINT = ["site", "source", "benchmark", "version", "device", "identity"]
KEY = [*POINT, "kind", "metric", "phase"]
# Of two commits at a point. ``base``, ``new``: in full; ``first_bad``: a search found the step
# between the two.
VERDICT = ["started", "base", "new", "subject", "label", *KEY, "verdict", "reason", "ratio", "low",
           "high", "p", "adjusted", "needed", "pairs", "first_bad"]  # fmt: skip


def frame_of(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows of a history as a frame; what one does not state is missing."""
    frame: pd.DataFrame = pa.Table.from_pylist(list(rows), SCHEMA).to_pandas()
    return frame


def append(folder: Path, rows: pd.DataFrame) -> list[Path]:
    """Write the runs that a history does not have yet, a file for each group; returns the files.

    What is added to a session that is there gets its id; ``session`` of the rows does not count.
    Raises UserError if the folder cannot be written.
    """
    place = folder / SESSIONS
    try:
        place.mkdir(parents=True, exist_ok=True)
        kept = _read(place, [*RUN, "group", "session"]).drop_duplicates().astype({"site": str})
        kept = kept.astype(dict.fromkeys(("run_id", "group", "session"), str))
        written = []
        for group, own in rows.groupby("group", sort=False):
            new = own[~_keys(own).isin(_keys(kept))]
            if new.empty:
                continue
            same = kept[(kept["group"] == group) & _keys(kept).isin(_keys(own))]["session"]
            first = f"{own['started'].min():%Y%m%dT%H%M%SZ}"
            fresh = f"{first}-{digest_of([group, first, min(own['read_from'])], 3)}"
            session = same.iloc[0] if len(same) else fresh
            runs = sorted(map(str, _keys(new).unique()))
            path = place / f"{session}-{digest_of(runs, 4)}.parquet"
            table = pa.Table.from_pandas(new.assign(session=session), SCHEMA, preserve_index=False)
            with replacing(path, durable=True) as temporary:
                pq.write_table(table, temporary, compression="zstd")
            written.append(path)
        return written
    except OSError as error:
        raise _unwritable(error, place) from None


def _keys(rows: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(rows[RUN])


def load(folder: Path, columns: Sequence[str] = SCHEMA.names) -> pd.DataFrame:
    """Read these columns of all sessions, each run once; a file that cannot be read is left out
    with a warning.

    Raises UserError if there is no history.
    """
    place = folder / SESSIONS
    if not place.is_dir():
        raise UserError(f"{folder}: no history: no campaign with `history: {folder}` has ended yet")
    rows = _read(place, [*dict.fromkeys([*columns, *RUN, "session"])])
    # Two writers at the same time may have given one session two names: the first counts.
    return rows[rows["session"] == rows.groupby(RUN, observed=True)["session"].transform("first")]


def _read(place: Path, columns: Sequence[str]) -> pd.DataFrame:
    files = sorted(str(path) for path in place.glob("[!.]*.parquet"))
    try:
        table = _table(files, columns)
    except (pa.ArrowException, OSError, ValueError):
        for file in list(files):
            try:
                _table([file], columns)
            except (pa.ArrowException, OSError, ValueError) as error:
                files.remove(file)
                _log.warning("%s: cannot be read (%s): left out", file, error)
        table = _table(files, columns)
    frame: pd.DataFrame = table.to_pandas(strings_to_categorical=True)
    return frame


def _table(files: Sequence[str], columns: Sequence[str]) -> pa.Table:
    if not files:
        return SCHEMA.empty_table().select(columns)
    return ds.dataset(list(files), schema=SCHEMA, format="parquet").to_table(columns=list(columns))


def keep_alternate(folder: Path, table: pd.DataFrame) -> None:
    """Write what two commits have shown (columns ``VERDICT``) into a history, once.

    Raises UserError if the folder cannot be written.
    """
    path = folder / ALTERNATE / f"{digest_of(table.to_csv(), 8)}.parquet"
    try:
        write_parquet(table, path, {})
    except OSError as error:
        raise _unwritable(error, path) from None


def load_alternate(folder: Path) -> pd.DataFrame:
    """All that was measured alternately, the newest first; a file that cannot be read is left out
    with a warning."""
    frames = [pd.DataFrame(columns=VERDICT)]
    for path in sorted((folder / ALTERNATE).glob("*.parquet")):
        try:
            frames.append(read_frame(path, VERDICT))
        except (pa.ArrowException, OSError, ValueError) as error:
            _log.warning("%s: cannot be read (%s): left out", path, error)
    newest = pd.concat(frames[1:] or frames).sort_values(["started", "pairs"], ascending=False)
    # Pairs may have been added to a comparison: the one of all of them counts.
    return newest.drop_duplicates(["base", "new", "label", *KEY])


def _unwritable(error: OSError, path: Path) -> UserError:
    where = error.filename or path
    return UserError(f"{where}: the history cannot be written: {error.strerror}")
