"""What is there: which runs of a campaign are done, failed, broken or still to do.

One stat per planned run; a record is read and checked once, when it is new or was touched, and
remembered in a small index next to the runs. Snakemake's parse step lives on this module, so it
imports nothing heavy.
"""

import contextlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.core.errors import UserError
from scalesweep.core.files import stamp_of, write_atomic
from scalesweep.core.formatting import shorten
from scalesweep.core.locks import only_one
from scalesweep.core.record import (
    FAILURE,
    POWER,
    RECORD,
    SAMPLES,
    BadRecord,
    checksums,
    read_failure,
    verify_files,
)
from scalesweep.core.record_content import UnusableRecord, check_content
from scalesweep.planning.record_reader import read_record
from scalesweep.planning.run_index import Entry, RunIndex

_MAX_DETAIL = 2000
BROKEN = ".broken"  # end of the names of what was set aside
SHOWN = 10  # runs named in one line
FORGOTTEN = "record.json.unsupported"
# Causes: a record (or a file of it) that is damaged, and one that is whole but of no use.
BAD_RECORD, UNUSABLE_RECORD = "BAD_RECORD", "UNUSABLE_RECORD"

DONE, FAILED, NEW, UNSUPPORTED = "done", "failed", "new", "unsupported"
UNFINISHED = "unfinished"  # of an imported run that was cut or aborted


class RunState(NamedTuple):
    """State of one run: status, and where it has no result the cause and detail; ``stamp`` changes
    whenever the files behind it do. Of a done run: ``wall_s`` is its time in seconds, ``fixed_s``
    the part of it that its phases name besides ``warmup`` and ``timed`` (None if they name no
    ``timed``), which does not grow with the work.

    ``extract`` is the digest of the patterns that the logs of a foreign program were read with;
    ``unread`` is set where a program ended well and its logs were read again in vain. ``given_s``
    are the seconds that a run had which was ended at its time limit (TIMEOUT)."""

    status: str
    stamp: str = ""
    cause: str = ""
    detail: str = ""
    wall_s: float | None = None
    source: str = ""
    fixed_s: float | None = None
    extract: str = ""
    unread: bool = False
    given_s: float | None = None

    @property
    def settled(self) -> bool:
        """Whether there is nothing left to run: a result, the record that there can be none or that
        another program got no further, or logs to which other patterns are the answer, not another
        run, or a whole record that is of no use: it is neither lost nor paid for again without
        being asked."""
        ended = self.status in (DONE, UNSUPPORTED, UNFINISHED)
        return ended or self.cause == UNUSABLE_RECORD or self.unread


def scan(
    runs_folder: Path,
    run_ids: Iterable[str],
    quarantine: bool = False,
    remember: bool = True,
    verify: bool = False,
    afresh: bool = False,
) -> dict[str, RunState]:
    """State of every run in ``run_ids``: read (``look``), then written where that is asked for.

    A record that cannot be trusted counts as failed with cause BAD_RECORD; with ``quarantine``
    it is set aside (``record.json.broken``) and its reason kept in failure.json, so that the run
    is pending again and nothing is lost. One that is whole, but holds what no table can be made
    of, has failed with cause UNUSABLE_RECORD and stays where it is. ``remember``: keep what was
    read in the folder's index, for the next scan. ``verify``, ``afresh``: as in ``look``.

    Raises UserError where, with ``quarantine``, a record or its files cannot be read or set aside.
    """
    index = RunIndex(runs_folder)
    found = look(runs_folder, run_ids, index, verify, afresh)
    if quarantine:
        for run_id, error in found.unreadable.items():
            where = f"{runs_folder}/{run_id}"
            raise UserError(f"{where}: {error.strerror}: {error.filename}") from None
        for run_id in found.broken:
            state = found.states[run_id]
            found.states[run_id] = _quarantined(runs_folder / run_id, state)
    if remember:
        index.update(found.read)
    return found.states


@dataclass
class Found:
    """What ``look`` has found: ``states`` of all runs, in the order asked for; ``read``, entries
    for the index of the records that were read; ``broken``, runs whose records cannot be trusted;
    ``unreadable``, those of which a file cannot be read. The last two have failed."""

    states: dict[str, RunState] = field(default_factory=dict)
    read: dict[str, Entry] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    unreadable: dict[str, OSError] = field(default_factory=dict)


def look(
    runs_folder: Path,
    run_ids: Iterable[str],
    index: RunIndex,
    verify: bool = False,
    afresh: bool = False,
) -> Found:
    """Look at every run in ``run_ids``; nothing is written.

    Checksums of samples.npz and power.csv cost a read of them, so they are compared where these
    files have changed since they were last compared; with ``verify`` also where they never were,
    as those of new runs; with ``afresh`` nothing is taken from the index.
    """
    found = Found()
    states = found.states
    root = str(runs_folder)
    known = {} if afresh else index.entries
    for run_id in run_ids:
        folder = f"{root}/{run_id}"
        entry = known.get(run_id)
        stamp = files_stamp(folder, entry is not None and _has_power(entry.stamp))
        if stamp is None:
            states[run_id] = _unfinished(folder)
        elif entry is not None and entry.stamp == stamp and not (verify and entry.unread):
            states[run_id] = _finished(entry)
        else:
            states[run_id] = _read(folder, run_id, entry, stamp, verify, found)
    return found


def _read(
    folder: str, run_id: str, entry: Entry | None, stamp: str, verify: bool, found: Found
) -> RunState:
    """State of a run whose record or files are to be read; what else is found goes to ``found``."""
    try:
        found.read[run_id] = new = _new_entry(folder, entry, stamp, verify)
    except FileNotFoundError:  # gone since the look before
        return _unfinished(folder)
    except BadRecord as error:
        found.broken.append(run_id)
        return RunState(FAILED, stamp, BAD_RECORD, _plain(str(error).removeprefix(f"{run_id}: ")))
    except OSError as error:
        found.unreadable[run_id] = error
        return RunState(FAILED, stamp, BAD_RECORD, str(error))
    return _finished(new)


def _new_entry(folder: str, entry: Entry | None, stamp: str, verify: bool) -> Entry:
    """A run's entry in the index, made of its files; raises BadRecord or OSError.

    ``entry``: what the index has of it so far.
    """
    if entry is None or entry.stamp != stamp:
        # Files that changed while the record did not: no program of ours does that.
        verify |= entry is not None and _record(entry.stamp) == _record(stamp)
        record = read_record(Path(folder, RECORD))
        unread = checksums(record)
        stamp = files_stamp(folder, POWER in unread) or stamp
        try:
            check_content(record)
        except UnusableRecord as error:
            return unusable_entry(stamp, str(error))
        entry = Entry(
            stamp=stamp,
            wall_s=record["wall_s"],
            source=record["source"],
            fixed_s=_fixed(record["phases"]),
            unsupported=record.get("unsupported"),
            extract=_extract(record["notes"]),
            unread=unread,
            unfinished=record.get("unfinished"),
        )
    if verify:
        verify_files(Path(folder), entry.unread)
        entry = entry._replace(unread={})
    return entry


def unusable_entry(stamp: str, why: str) -> Entry:
    """The entry of a run whose record is whole, and of no use."""
    return Entry(stamp, None, "", None, None, "", {}, why)


def _finished(entry: Entry) -> RunState:
    stamp, wall_s, source, fixed_s, unsupported, extract, _, unusable, unfinished = entry
    if unusable:
        return RunState(FAILED, stamp, UNUSABLE_RECORD, unusable)
    if unsupported:
        return RunState(UNSUPPORTED, stamp, "UNSUPPORTED", unsupported, source=source)
    if unfinished:
        return RunState(UNFINISHED, stamp, "UNFINISHED", unfinished, source=source)
    return RunState(DONE, stamp, "", "", wall_s, source, fixed_s, extract)


def forget_unsupported(runs_folder: Path, run_ids: Iterable[str]) -> None:
    """Make the unsupported runs among these pending again; their records are renamed."""
    for run_id, state in scan(runs_folder, run_ids).items():
        if state.status == UNSUPPORTED:
            (runs_folder / run_id / RECORD).replace(runs_folder / run_id / FORGOTTEN)


def other_sites(runs_folder: Path) -> list[Path]:
    """Folders of the runs of other sites next to those of this one, by name."""
    try:
        folders = sorted(runs_folder.parent.iterdir())
    except OSError:
        return []
    return [path for path in folders if path.is_dir() and path.name != runs_folder.name]


def files_stamp(folder: str, power: bool = False) -> str | None:
    """Times and sizes of a run's record and samples, with ``power`` of its power.csv too.

    None if there is no record.
    """
    try:
        record = os.stat(f"{folder}/{RECORD}")  # noqa: PTH116 (a Path per file would double a scan's time)
    except OSError:
        return None
    stamps = f"{record.st_mtime_ns}:{record.st_size}/{stamp_of(f'{folder}/{SAMPLES}')}"
    return f"{stamps}/{stamp_of(f'{folder}/{POWER}')}" if power else stamps


def _has_power(stamp: str) -> bool:
    """Whether a stamp is of a record with power.csv."""
    return stamp.count("/") == 2


def _record(stamp: str) -> str:
    """The part of a stamp that is of the record itself."""
    return stamp.partition("/")[0]


def _unfinished(folder: str) -> RunState:
    path = f"{folder}/{FAILURE}"
    stamp = stamp_of(path)
    if stamp is None:
        return RunState(NEW)
    failure = read_failure(Path(folder))
    if failure is None or "detail" not in failure:
        return RunState(FAILED, stamp, "UNKNOWN", f"{FAILURE} cannot be read")
    cause, detail = shorten(_plain(failure["cause"]), 60), _plain(failure["detail"])
    if cause != "BAD_RESULT":
        given_s = _given_s(failure) if cause == "TIMEOUT" else None
        return RunState(FAILED, stamp, cause, detail, given_s=given_s)
    extract, unread = str(failure.get("extract_digest", "")), "reread" in failure
    return RunState(FAILED, stamp, cause, detail, extract=extract, unread=unread)


def _plain(said: Any) -> str:
    """What a failure or an error says, on one line of a bounded length that can be encoded."""
    text = shorten(" ".join(str(said).split()), _MAX_DETAIL)
    return text.encode(errors="replace").decode()


def _given_s(failure: Mapping[str, Any]) -> float | None:
    """Seconds that a failed run had: those it was given in its job, else those it took."""
    asked = failure.get("asked")
    limit_s = asked.get("limit_s") if isinstance(asked, dict) else None
    try:
        if limit_s is not None:
            return float(limit_s)
        began, ended = (datetime.fromisoformat(failure[key]) for key in ("started", "ended"))
        return (ended - began).total_seconds()
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _quarantined(folder: Path, state: RunState) -> RunState:
    """State of a run whose record cannot be trusted after setting it aside.

    One that is being written by another process at this moment is left alone.
    """
    try:
        with only_one(folder):
            if state.stamp == files_stamp(str(folder), _has_power(state.stamp)):
                set_aside(folder, state.detail)
                return _unfinished(str(folder))
    except OSError as error:
        raise UserError(
            f"{folder}: the record cannot be trusted ({state.detail}) and cannot be set aside: "
            f"{error.strerror}"
        ) from None
    except UserError:  # it has the lock
        pass
    return state


def set_aside(folder: Path, why: str) -> None:
    """Take away a record that cannot be trusted, with its files, and leave the reason.

    All stay in the folder under other names: nothing is lost, and the run is pending again.
    """
    for name in (RECORD, SAMPLES, POWER):
        with contextlib.suppress(FileNotFoundError):
            (folder / name).replace(_free(folder / f"{name}{BROKEN}", folder / name))
    failure = {
        "schema": 1, "run_id": folder.name, "cause": BAD_RECORD, "detail": why,
        "exit_code": None, "signal": None, "attempt": 0, "started": None, "ended": None,
        "last_lines": [],
    }  # fmt: skip
    write_atomic(folder / FAILURE, json.dumps(failure, indent=1) + "\n")


def _free(target: Path, source: Path) -> Path:
    """``target``, or the next name with a number where one of the two is a directory: a file does
    not take its place, nor the other way round."""
    number = 2
    while target.is_dir() or (source.is_dir() and os.path.lexists(target)):
        target = target.with_name(f"{source.name}{BROKEN}-{number}")
        number += 1
    return target


def untrusted(states: Mapping[str, RunState]) -> dict[str, str]:
    """The runs whose records cannot be trusted: id -> why."""
    return {i: state.detail for i, state in states.items() if state.cause == BAD_RECORD}


def note_unusable(runs_folder: Path, broken: Mapping[str, str]) -> None:
    """Remember what reading the samples of done runs has shown: run id -> why they are of no use.

    Forgotten when the files of a run change.
    """
    index = RunIndex(runs_folder)
    known = look(runs_folder, broken, index).states
    index.update({i: unusable_entry(known[i].stamp, why) for i, why in broken.items()})


def unusable(states: Mapping[str, RunState]) -> dict[str, str]:
    """The runs whose records are whole and of no use: id -> why."""
    return {i: state.detail for i, state in states.items() if state.cause == UNUSABLE_RECORD}


def tell_set_aside(broken: Mapping[str, str]) -> str:
    """One line about records that were set aside: run id -> what is wrong with it."""
    return _told(
        broken, "cannot be trusted and was set aside", "cannot be trusted and were set aside"
    )


def tell_unusable(broken: Mapping[str, str]) -> str:
    """One line about records that are of no use: run id -> why."""
    told = _told(broken, "cannot be used and is left out", "cannot be used and are left out")
    folder = "its folder to measure it" if len(broken) == 1 else "their folders to measure them"
    return f"{told}; delete {folder} again"


def _told(broken: Mapping[str, str], one: str, several: str) -> str:
    named = [f"{run_id} ({why})" for run_id, why in list(broken.items())[:SHOWN]]
    more = f" and {len(broken) - SHOWN} more, see plan.csv" if len(broken) > SHOWN else ""
    records = f"1 record {one}" if len(broken) == 1 else f"{len(broken)} records {several}"
    return f"{records}: {', '.join(named)}{more}"


def _fixed(phases: Mapping[str, Any]) -> float | None:
    """Seconds of all phases but ``warmup`` and ``timed``; None without a ``timed`` one."""
    if "timed" not in phases or not all(isinstance(s, int | float) for s in phases.values()):
        return None
    return float(sum(s for name, s in phases.items() if name not in ("warmup", "timed")))


def _extract(notes: Mapping[str, Any]) -> str:
    """Digest of the patterns that a record was made with."""
    extract = notes.get("extract")
    if not isinstance(extract, dict):
        return ""
    return str(extract.get("kept_despite") or extract.get("extract_digest") or "")
