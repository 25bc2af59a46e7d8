"""What is there: which runs of a campaign are done, failed, broken or still to do.

One stat per planned run; a record is read and checked once, when it is new or was touched, and
remembered in a small index next to the runs. Snakemake's parse step lives on this module, so it
imports nothing heavy.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from scalesweep.core.causes import Cause
from scalesweep.core.errors import UserError
from scalesweep.core.files import stamp_of
from scalesweep.core.formatting import shorten
from scalesweep.core.locks import only_one
from scalesweep.core.record import (
    FAILURE,
    POWER,
    RECORD,
    SAMPLES,
    BadRecordError,
    NewerRecordError,
    checksums,
    read_failure,
    verify_files,
)
from scalesweep.core.record_content import UnusableRecordError, check_content
from scalesweep.core.status import Status
from scalesweep.state.record_reader import read_record
from scalesweep.state.run_index import Entry, RunIndex
from scalesweep.state.set_aside import set_aside

_MAX_DETAIL = 2000
_IMPORTED = "imported"
FORGOTTEN = "record.json.unsupported"


class Comparison(Protocol):
    """What records are compared with (``agreement.Planned``)."""

    @property
    def keys(self) -> Mapping[str, str]:
        """By run what the comparison rests on besides the run's id.

        Runs with another key have other ids: a record that was compared under a key of another run
        there is not."""
        ...

    @property
    def accepted(self) -> Set[str]:
        """The ways to differ that make no run stale."""
        ...

    def differences(self, run_id: str, record: Mapping[str, Any]) -> dict[str, str]:
        """In what a whole record disagrees: cause -> text."""
        ...


class RunState(NamedTuple):
    """State of one run: status, and where it has no result the cause and detail; ``stamp`` changes
    whenever the files behind it do. Of a done run: ``wall_s`` is its time in seconds, ``fixed_s``
    the part of it that its phases name besides ``warmup`` and ``timed`` (None if they name no
    ``timed``), which does not grow with the work.

    ``extract`` is the digest of the patterns that the logs of a foreign program were read with;
    ``unread`` is set where a program ended well and its logs were read again in vain. ``given_s``
    are the seconds that a run had which was ended at its time limit (TIMEOUT). A failed run that
    was ``imported`` has a record, which says so."""

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
        another program got no further, one of something else (which the user decides about), logs
        to which other patterns are the answer, not another run, or a whole record that is of no
        use: it is neither lost nor paid for again without being asked."""
        ended = self.status in (Status.DONE, Status.UNSUPPORTED, Status.UNFINISHED, Status.STALE)
        ended = ended or (self.status == Status.FAILED and self.source == _IMPORTED)
        settled = ended or self.cause == Cause.UNUSABLE_RECORD
        return settled or self.unread


class RunStates(Mapping[str, RunState]):
    """States of runs, in the order in which they were asked for.

    Those of runs that are done as the index says are made when they are asked for. ``others`` are
    those of all other runs.
    """

    def __init__(self, run_ids: Iterable[str], index: RunIndex) -> None:
        """Of these runs; ``index`` has the done ones."""
        self._ids = dict.fromkeys(run_ids)
        self._index = index
        self.others: dict[str, RunState] = {}

    def __getitem__(self, run_id: str) -> RunState:
        """The state of a run."""
        state = self.others.get(run_id)
        if state is None:
            entry = self._index.entry(run_id) if run_id in self._ids else None
            if entry is None:
                raise KeyError(run_id)
            state = _finished(entry, frozenset())
        return state

    def __contains__(self, run_id: object) -> bool:
        """Whether the run was asked for."""
        return run_id in self._ids

    def __iter__(self) -> Iterator[str]:
        """The runs, in order."""
        return iter(self._ids)

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self._ids)

    def lines(self) -> list[str]:
        """Of each run a line that changes with its state."""
        others, stamps = self.others, self._index.stamps
        return [
            _line(i, others[i]) if i in others else f"{i} {Status.DONE} {stamps[i]}"
            for i in self._ids
        ]


def _line(run_id: str, state: RunState) -> str:
    # In what a record disagrees with the plan is no part of the stamp of its files.
    line = f"{run_id} {state.status} {state.stamp}"
    return (
        f"{line} {state.detail}"
        if state.detail and state.status in (Status.DONE, Status.STALE)
        else line
    )


def lines_of(states: Mapping[str, RunState]) -> list[str]:
    """Of each run a line that changes with its state."""
    if isinstance(states, RunStates):
        return states.lines()
    return [_line(run_id, state) for run_id, state in states.items()]


def beside_done(states: Mapping[str, RunState]) -> Mapping[str, RunState]:
    """The states without those that are known to be done and as planned: few, where most are."""
    return states.others if isinstance(states, RunStates) else states


def scan(
    runs_folder: Path,
    run_ids: Iterable[str],
    quarantine: bool = False,
    remember: bool = True,
    verify: bool = False,
    afresh: bool = False,
    planned: Comparison | None = None,
) -> RunStates:
    """State of every run in ``run_ids``: read (``look``), then written where that is asked for.

    A record that cannot be trusted counts as failed with cause BAD_RECORD; with ``quarantine``
    it is set aside (``record.json.broken``) and its reason kept in failure.json, so that the run
    is pending again and nothing is lost. One that is whole, but holds what no table can be made
    of, has failed with cause UNUSABLE_RECORD and stays where it is. One of a newer version has
    failed with cause NEWER_RECORD, and next to it nothing is written at all. ``remember``: keep
    what was read in the folder's index, for the next scan. ``verify``, ``afresh``, ``planned``: as
    in ``look``.

    Raises UserError where, with ``quarantine``, a record or its files cannot be read or set aside.
    """
    index = RunIndex(runs_folder)
    scanned = look(runs_folder, run_ids, index, verify, afresh, planned)
    if scanned.newer:
        return scanned.states  # the folder is that version's: nothing in it is touched
    if quarantine:
        for run_id, error in scanned.unreadable.items():
            where = f"{runs_folder}/{run_id}"
            raise UserError(f"{where}: {error.strerror}: {error.filename}") from None
        for run_id in scanned.broken:
            state = scanned.states[run_id]
            scanned.states.others[run_id] = _quarantined(runs_folder / run_id, state)
    if remember:
        index.update(scanned.read)
    return scanned.states


@dataclass
class Scan:
    """What ``look`` has found: ``states`` of all runs, in the order asked for; ``read``, entries
    for the index of the records that were read; ``broken``, runs whose records cannot be trusted;
    ``newer``, those whose records are of a newer version; ``unreadable``, those of which a file
    cannot be read. The last three have failed."""

    states: RunStates
    read: dict[str, Entry] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    newer: list[str] = field(default_factory=list)
    unreadable: dict[str, OSError] = field(default_factory=dict)


def look(
    runs_folder: Path,
    run_ids: Iterable[str],
    index: RunIndex,
    verify: bool = False,
    afresh: bool = False,
    planned: Comparison | None = None,
) -> Scan:
    """Look at every run in ``run_ids``; nothing is written.

    Checksums of samples.npz and power.csv cost a read of them, so they are compared where these
    files have changed since they were last compared; with ``verify`` also where they never were,
    as those of new runs; with ``afresh`` nothing is taken from the index. Records that disagree
    with ``planned`` are stale; they are compared when they are new, and when the plan has changed.
    """
    scanned = Scan(states := RunStates(run_ids, index))
    others = states.others
    root = str(runs_folder)
    known = {} if afresh else index.stamps
    keys = set(planned.keys.values()) if planned else None
    odd = index.without(lambda kind: _is_plain(kind) and (keys is None or kind.compared in keys))
    if verify:
        odd = odd | index.unread.keys()
    for run_id in states:
        folder = f"{root}/{run_id}"
        stamp, before = files_stamp(folder), known.get(run_id)
        if stamp == before is not None and run_id not in odd:
            continue
        if before is not None and _has_power(before):
            stamp = files_stamp(folder, power=True)
        if stamp is None:
            others[run_id] = _unfinished(folder)
        elif stamp != before or run_id in odd:
            entry = index.entry(run_id) if before is not None else None
            others[run_id] = _looked_at(folder, run_id, entry, stamp, verify, planned, scanned)
    return scanned


def _is_plain(entry: Entry) -> bool:
    """Whether a run is done, and of what its record was compared with."""
    return not (entry.unusable or entry.differs or entry.unsupported or entry.unfinished)


def _looked_at(
    folder: str,
    run_id: str,
    entry: Entry | None,
    stamp: str,
    verify: bool,
    planned: Comparison | None,
    scanned: Scan,
) -> RunState:
    """State of a run that has a record, which is read where the index does not say enough."""
    if (
        entry is not None
        and entry.stamp == stamp
        and not (verify and entry.unread)
        and (planned is None or _is_compared(entry, planned.keys[run_id]))
    ):
        return _finished(entry, planned.accepted if planned else frozenset())
    return _read(folder, run_id, entry, stamp, verify, planned, scanned)


def _read(
    folder: str,
    run_id: str,
    entry: Entry | None,
    stamp: str,
    verify: bool,
    planned: Comparison | None,
    scanned: Scan,
) -> RunState:
    """State of a run whose record or files are to be read; the rest goes to ``scanned``."""
    try:
        new = _new_entry(folder, run_id, entry, stamp, verify, planned)
    except FileNotFoundError:  # gone since the look before
        return _unfinished(folder)
    except BadRecordError as error:
        scanned.broken.append(run_id)
        return RunState(
            Status.FAILED, stamp, Cause.BAD_RECORD, _plain(str(error).removeprefix(f"{run_id}: "))
        )
    except NewerRecordError as error:
        scanned.newer.append(run_id)
        return RunState(
            Status.FAILED, stamp, Cause.NEWER_RECORD, str(error).removeprefix(f"{run_id}: ")
        )
    except OSError as error:
        scanned.unreadable[run_id] = error
        return RunState(Status.FAILED, stamp, Cause.BAD_RECORD, str(error))
    scanned.read[run_id] = new
    return _finished(new, planned.accepted if planned else frozenset())


def _new_entry(
    folder: str,
    run_id: str,
    entry: Entry | None,
    stamp: str,
    verify: bool,
    planned: Comparison | None,
) -> Entry:
    """A run's entry in the index, made of its files; raises BadRecordError, NewerRecordError or
    OSError.

    ``entry``: what the index has of it so far.
    """
    record = None
    if entry is None or entry.stamp != stamp:
        # Files that changed while the record did not: no program of ours does that.
        verify |= entry is not None and _record(entry.stamp) == _record(stamp)
        record = read_record(Path(folder, RECORD))
        unread = checksums(record)
        stamp = files_stamp(folder, POWER in unread) or stamp
        try:
            check_content(record)
        except UnusableRecordError as error:
            return unusable_entry(stamp, str(error))
        entry = Entry(
            stamp=stamp,
            wall_s=record["wall_s"],
            source=record["source"],
            fixed_s=_fixed(record["phases"]),
            unsupported=record.get("unsupported"),
            extract=_extract(record["notes"]),
            unread=unread,
            unusable="",
            compared="",
            differs={},
            unfinished=record.get("unfinished"),
            failed=record.get("failed"),
        )
    if planned is not None and not _is_compared(entry, key := planned.keys[run_id]):
        record = record or read_record(Path(folder, RECORD))
        entry = entry._replace(compared=key, differs=planned.differences(run_id, record))
    if verify:
        verify_files(Path(folder), entry.unread)
        entry = entry._replace(unread={})
    return entry


def _is_compared(entry: Entry, key: str) -> bool:
    """Whether a record needs no comparison: it was made, or the record is of no use anyway."""
    return entry.compared == key or bool(entry.unusable)


def unusable_entry(stamp: str, why: str) -> Entry:
    """The entry of a run whose record is whole, and of no use."""
    return Entry(stamp, None, "", None, None, "", {}, why, "", {})


def _finished(entry: Entry, accepted: Set[str]) -> RunState:
    stamp, wall_s, source, fixed_s, unsupported, extract, _, unusable, _, differs, *ends = entry
    unfinished, failed = ends
    if unusable:
        return RunState(Status.FAILED, stamp, Cause.UNUSABLE_RECORD, unusable)
    detail = ""
    if differs:
        detail = "; ".join(differs.values())
        if causes := [cause for cause in differs if cause not in accepted]:
            cause = f"{', '.join(causes)} changed"
            return RunState(Status.STALE, stamp, cause, detail, wall_s, source, fixed_s, extract)
        detail = f"accepted although {detail}"
    if unsupported:
        return RunState(Status.UNSUPPORTED, stamp, Cause.UNSUPPORTED, unsupported, source=source)
    if failed:
        return RunState(Status.FAILED, stamp, failed, unfinished or "", source=source)
    if unfinished:
        return RunState(Status.UNFINISHED, stamp, Cause.UNFINISHED, unfinished, source=source)
    return RunState(Status.DONE, stamp, "", detail, wall_s, source, fixed_s, extract)


def forget_unsupported(runs_folder: Path, run_ids: Iterable[str]) -> None:
    """Make the unsupported runs among these pending again; their records are renamed."""
    for run_id, state in scan(runs_folder, run_ids).items():
        if state.status == Status.UNSUPPORTED:
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
    try:
        samples = os.stat(f"{folder}/{SAMPLES}")  # noqa: PTH116
    except OSError:
        stamps = f"{record.st_mtime_ns}:{record.st_size}/None"
    else:
        stamps = f"{record.st_mtime_ns}:{record.st_size}/{samples.st_mtime_ns}:{samples.st_size}"
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
        return RunState(Status.NEW)
    failure = read_failure(Path(folder))
    if failure is None or "detail" not in failure:
        return RunState(Status.FAILED, stamp, Cause.UNKNOWN, f"{FAILURE} cannot be read")
    cause, detail = shorten(_plain(failure["cause"]), 60), _plain(failure["detail"])
    if cause != Cause.BAD_RESULT:
        given_s = _given_s(failure) if cause == Cause.TIMEOUT else None
        return RunState(Status.FAILED, stamp, cause, detail, given_s=given_s)
    extract, unread = str(failure.get("extract_digest", "")), "reread" in failure
    return RunState(Status.FAILED, stamp, cause, detail, extract=extract, unread=unread)


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


def note_unusable(runs_folder: Path, broken: Mapping[str, str]) -> None:
    """Remember what reading the samples of done runs has shown: run id -> why they are of no use.

    Forgotten when the files of a run change.
    """
    index = RunIndex(runs_folder)
    known = look(runs_folder, broken, index).states
    index.update({i: unusable_entry(known[i].stamp, why) for i, why in broken.items()})


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
