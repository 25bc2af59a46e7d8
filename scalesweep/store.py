"""What is there: which runs of a campaign are done, failed, broken or still to do.

One stat per planned run; a record is read and checked once, when it is new or was touched, and
remembered in a small index beside the runs. Snakemake's parse step lives on this module, so it
imports nothing heavy.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from scalesweep.record import FAILURE, RECORD, SAMPLES, BadRecord, read_record, write_atomic

INDEX = ".index.json"
INDEX_FORMAT = 4  # of the index file; another one is read anew from the records
QUARANTINE = "record.json.broken"
FORGOTTEN = "record.json.unsupported"

DONE, FAILED, NEW, UNSUPPORTED = "done", "failed", "new", "unsupported"


@dataclass(frozen=True, slots=True)
class RunState:
    """State of one run: status, and where it has no result the cause and detail; ``stamp`` changes
    whenever the files behind it do. Of a done run: ``wall_s`` is its time in seconds, ``fixed_s``
    the part of it that its phases name beside ``warmup`` and ``timed`` (None if they name no
    ``timed``), which does not grow with the work.

    ``extract`` is the digest of the patterns that the logs of a foreign program were read with;
    ``unread`` is set where a program ended well and its logs were read again in vain."""

    status: str
    stamp: str = ""
    cause: str = ""
    detail: str = ""
    wall_s: float | None = None
    source: str = ""
    fixed_s: float | None = None
    extract: str = ""
    unread: bool = False

    @property
    def settled(self) -> bool:
        """Whether there is nothing left to run: a result, the record that there can be none, or
        logs to which other patterns are the answer, not another run."""
        return self.status in (DONE, UNSUPPORTED) or self.unread


def scan(
    runs_folder: Path, run_ids: Iterable[str], quarantine: bool = False, remember: bool = True
) -> dict[str, RunState]:
    """State of every run in ``run_ids``.

    A record that cannot be trusted counts as failed with cause BAD_RECORD; with ``quarantine``
    it is renamed to ``record.json.broken`` and its reason kept in failure.json, so that the run
    is pending again and nothing is lost. ``remember``: keep what was read in the folder's index,
    for the next scan.
    """
    index = _load_index(runs_folder)
    known: dict[str, list[Any]] = {}
    states: dict[str, RunState] = {}
    for run_id in run_ids:
        folder = f"{runs_folder}/{run_id}"
        stamp = _stamp(f"{folder}/{RECORD}")
        if stamp is None:
            states[run_id] = _unfinished(folder)
            continue
        stamp = f"{stamp}/{_stamp(f'{folder}/{SAMPLES}')}"
        entry = index.get(run_id)
        if not _usable(entry, stamp):
            try:
                record = read_record(Path(folder, RECORD))
            except (BadRecord, OSError) as error:
                if quarantine:
                    _quarantine(Path(folder), run_id, str(error))
                    states[run_id] = _unfinished(folder)
                else:
                    states[run_id] = RunState(FAILED, stamp, "BAD_RECORD", str(error))
                continue
            fixed = _fixed(record["phases"])
            entry = [stamp, record["wall_s"], record["source"], fixed, record.get("unsupported")]
            entry.append(_extract(record["notes"]))
        known[run_id] = entry
        states[run_id] = _finished(entry)
    if remember and any(index.get(run_id) != entry for run_id, entry in known.items()):
        _save_index(runs_folder, {**index, **known})
    return states


def _finished(entry: list[Any]) -> RunState:
    stamp, wall_s, source, fixed_s, unsupported, extract = entry
    if unsupported:
        return RunState(UNSUPPORTED, stamp, "UNSUPPORTED", unsupported, source=source)
    return RunState(DONE, stamp, "", "", wall_s, source, fixed_s, extract)


def forget_unsupported(runs_folder: Path, run_ids: Iterable[str]) -> None:
    """Make the unsupported ones of these runs pending again; their records stay beside."""
    for run_id, state in scan(runs_folder, run_ids).items():
        if state.status == UNSUPPORTED:
            (runs_folder / run_id / RECORD).replace(runs_folder / run_id / FORGOTTEN)


def other_sites(runs_folder: Path) -> list[Path]:
    """Folders of the runs of other sites beside those of this one, by name."""
    try:
        folders = sorted(runs_folder.parent.iterdir())
    except OSError:
        return []
    return [path for path in folders if path.is_dir() and path.name != runs_folder.name]


def _stamp(path: str) -> str | None:
    try:
        status = os.stat(path)  # noqa: PTH116 (a Path per file would double a scan's time)
    except OSError:
        return None
    return f"{status.st_mtime_ns}:{status.st_size}"


def _unfinished(folder: str) -> RunState:
    path = f"{folder}/{FAILURE}"
    stamp = _stamp(path)
    if stamp is None:
        return RunState(NEW)
    try:
        failure = json.loads(Path(path).read_bytes())
        cause, detail = str(failure["cause"]), str(failure["detail"])
        if cause != "BAD_RESULT":
            return RunState(FAILED, stamp, cause, detail)
        extract, unread = str(failure.get("extract_digest", "")), "reread" in failure
        return RunState(FAILED, stamp, cause, detail, extract=extract, unread=unread)
    except (OSError, ValueError, KeyError, TypeError):
        return RunState(FAILED, stamp, "UNKNOWN", f"{FAILURE} cannot be read")


def _quarantine(folder: Path, run_id: str, why: str) -> None:
    (folder / RECORD).replace(folder / QUARANTINE)
    failure = {
        "schema": 1, "run_id": run_id, "cause": "BAD_RECORD", "detail": why, "exit_code": None,
        "signal": None, "attempt": 0, "started": None, "ended": None, "last_lines": [],
    }  # fmt: skip
    write_atomic(folder / FAILURE, json.dumps(failure, indent=1) + "\n")


def _fixed(phases: Mapping[str, Any]) -> float | None:
    """Seconds of all phases but ``warmup`` and ``timed``; None without a ``timed`` one."""
    if "timed" not in phases or not all(isinstance(s, int | float) for s in phases.values()):
        return None
    return float(sum(s for name, s in phases.items() if name not in ("warmup", "timed")))


def _extract(notes: Mapping[str, Any]) -> str:
    """Digest of the patterns that a record is to stand by."""
    extract = notes.get("extract")
    if not isinstance(extract, dict):
        return ""
    return str(extract.get("kept_despite") or extract.get("extract_digest") or "")


def _load_index(runs_folder: Path) -> dict[str, Any]:
    try:
        index = json.loads((runs_folder / INDEX).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(index, dict) or index.get("format") != INDEX_FORMAT:
        return {}
    runs = index.get("runs")
    return runs if isinstance(runs, dict) else {}


def _usable(entry: Any, stamp: str) -> TypeGuard[list[Any]]:
    """Whether an entry of the index is of this stamp:
    ``[stamp, wall_s, source, fixed_s, unsupported, extract]``."""
    return isinstance(entry, list) and len(entry) == 6 and entry[0] == stamp


def _save_index(runs_folder: Path, runs: dict[str, Any]) -> None:
    # Only a cache: where it cannot be kept (a read-only copy), records are read again.
    try:
        write_atomic(runs_folder / INDEX, json.dumps({"format": INDEX_FORMAT, "runs": runs}))
    except OSError:
        return
