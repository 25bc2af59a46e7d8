"""What is there: which runs of a campaign are done, failed, broken or still to do.

One stat per planned run; a record is read and checked once, when it is new or was touched, and
remembered in a small index beside the runs. Snakemake's parse step lives on this module, so it
imports nothing heavy.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalesweep.record import FAILURE, RECORD, SAMPLES, BadRecord, read_record, write_atomic

INDEX = ".index.json"
QUARANTINE = "record.json.broken"

DONE, FAILED, NEW = "done", "failed", "new"


@dataclass(frozen=True, slots=True)
class RunState:
    """State of one run: status, and for a failure its cause and detail; ``stamp`` changes
    whenever the files behind it do; ``wall_s`` is the run's time in seconds once it is done."""

    status: str
    stamp: str = ""
    cause: str = ""
    detail: str = ""
    wall_s: float | None = None
    source: str = ""


def scan(
    runs_folder: Path, run_ids: Iterable[str], quarantine: bool = False
) -> dict[str, RunState]:
    """State of every run in ``run_ids``.

    A record that cannot be trusted counts as failed with cause BAD_RECORD; with ``quarantine``
    it is renamed to ``record.json.broken`` and its reason kept in failure.json, so that the run
    is pending again and nothing is lost.
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
        if entry is None or entry[0] != stamp:
            try:
                record = read_record(Path(folder, RECORD))
            except (BadRecord, OSError) as error:
                if quarantine:
                    _quarantine(Path(folder), run_id, str(error))
                    states[run_id] = _unfinished(folder)
                else:
                    states[run_id] = RunState(FAILED, stamp, "BAD_RECORD", str(error))
                continue
            entry = [stamp, record["wall_s"], record["source"]]
        known[run_id] = entry
        states[run_id] = RunState(DONE, stamp, wall_s=entry[1], source=entry[2])
    if any(index.get(run_id) != entry for run_id, entry in known.items()):
        _save_index(runs_folder, {**index, **known})
    return states


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
        return RunState(FAILED, stamp, str(failure["cause"]), str(failure["detail"]))
    except (OSError, ValueError, KeyError, TypeError):
        return RunState(FAILED, stamp, "UNKNOWN", f"{FAILURE} cannot be read")


def _quarantine(folder: Path, run_id: str, why: str) -> None:
    (folder / RECORD).replace(folder / QUARANTINE)
    failure = {
        "schema": 1, "run_id": run_id, "cause": "BAD_RECORD", "detail": why, "exit_code": None,
        "signal": None, "attempt": 0, "started": None, "ended": None, "last_lines": [],
    }  # fmt: skip
    write_atomic(folder / FAILURE, json.dumps(failure, indent=1) + "\n")


def _load_index(runs_folder: Path) -> dict[str, list[Any]]:
    try:
        index = json.loads((runs_folder / INDEX).read_bytes())
    except (OSError, ValueError):
        return {}
    return index if isinstance(index, dict) else {}


def _save_index(runs_folder: Path, index: dict[str, list[Any]]) -> None:
    # Only a cache: where it cannot be kept (a read-only copy), records are read again.
    try:
        write_atomic(runs_folder / INDEX, json.dumps(index))
    except OSError:
        return
