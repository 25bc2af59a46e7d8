"""What is there: which runs of a campaign are done, failed, broken or still to do.

One stat per planned run; a record is read and checked once, when it is new or was touched, and
remembered in a small index next to the runs. Snakemake's parse step lives on this module, so it
imports nothing heavy.
"""

import contextlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from scalesweep.core.causes import Cause
from scalesweep.core.errors import UserError
from scalesweep.core.files import stamp_of, write_atomic
from scalesweep.core.formatting import shorten
from scalesweep.core.locks import only_one
from scalesweep.core.record import (
    FAILURE,
    POWER,
    RECORD,
    SAMPLES,
    read_failure,
    read_record,
    write_failure,
)
from scalesweep.core.record_check import BadRecordError
from scalesweep.core.status import Status
from scalesweep.state.agreement import OTHER_PATTERNS, Planned

# Next to a site's runs, what their records said when they were last read. Only a cache: rebuilt if
# it cannot be read.
INDEX = ".index.json"
_FORMAT = 17
BROKEN = ".broken"  # end of the names of what was set aside
_MAX_DETAIL = 2000
_IMPORTED = "imported"
CHANGED = "changed"  # the cause of a stale run


class RunState(NamedTuple):
    """State of one run: status, and where it has no result the cause and detail; ``stamp`` changes
    whenever the files behind it do. Of a done run: ``wall_s`` is its time in seconds.

    ``given_s`` are the seconds that a run had which was ended at its time limit (TIMEOUT). A failed
    run that was ``imported`` has a record, which says so."""

    status: str
    stamp: str = ""
    cause: str = ""
    detail: str = ""
    wall_s: float | None = None
    source: str = ""
    given_s: float | None = None

    @property
    def settled(self) -> bool:
        """Whether there is nothing left to run: a result, the record that there can be none or that
        another program got no further, or one of something else (which the user decides about)."""
        ended = self.status in (Status.DONE, Status.UNSUPPORTED, Status.UNFINISHED, Status.STALE)
        return ended or (self.status == Status.FAILED and self.source == _IMPORTED)


class Entry(NamedTuple):
    """What is kept of a record: the ``state`` of its run, if it is of what is planned; the key
    (``agreement.Planned``) of what it was last ``compared`` with, empty if it never was; in what it
    ``differs`` from that."""

    state: RunState
    compared: str
    differs: list[str]


def scan(
    runs_folder: Path,
    run_ids: Iterable[str],
    quarantine: bool = False,
    planned: Planned | None = None,
) -> dict[str, RunState]:
    """State of every run in ``run_ids``, in their order.

    A record that cannot be trusted counts as failed with cause BAD_RECORD; with ``quarantine``
    it is set aside (``record.json.broken``) and its reason kept in failure.json, so that the run
    is pending again and nothing is lost. Records that disagree with ``planned`` are stale; they are
    compared when they are new, and when the plan has changed.

    Raises UserError if a record is of another schema, or cannot be read or set aside.
    """
    index = _read_index(runs_folder)
    states: dict[str, RunState] = {}
    new: dict[str, Entry] = {}
    for run_id in run_ids:
        folder = f"{runs_folder}/{run_id}"
        stamp = files_stamp(folder)
        if stamp is None:
            states[run_id] = _unfinished(folder, planned)
            continue
        entry = index.get(run_id)
        key = planned.keys[run_id] if planned else entry and entry.compared
        if entry is None or entry.state.stamp != stamp or entry.compared != key:
            try:
                entry = new[run_id] = _entry(folder, run_id, stamp, planned)
            except FileNotFoundError:  # gone since the look before
                states[run_id] = _unfinished(folder, planned)
                continue
            except BadRecordError as error:
                states[run_id] = _untrusted(Path(folder), stamp, str(error), quarantine)
                continue
            except OSError as error:
                raise UserError(f"{folder}: {error.strerror}: {error.filename}") from None
        states[run_id] = _finished(entry, planned.accepts(run_id)) if planned else entry.state
    if new:
        _write_index(runs_folder, index | new)
    return states


def _read_index(runs_folder: Path) -> dict[str, Entry]:
    """The entries by run; none if the index is not there or of another format."""
    try:
        index = orjson.loads((runs_folder / INDEX).read_bytes())
        runs = index["runs"] if index["format"] == _FORMAT else {}
        return {i: Entry(RunState(*state), *more) for i, (state, *more) in runs.items()}
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return {}


def _write_index(runs_folder: Path, entries: Mapping[str, Entry]) -> None:
    """Keep the entries for the next look.

    Without a word if that cannot be (a read-only copy, a number beyond 64 bits).
    """
    with contextlib.suppress(OSError, orjson.JSONEncodeError):
        content = orjson.dumps({"format": _FORMAT, "runs": entries}, default=list)
        write_atomic(runs_folder / INDEX, content, durable=False)


def _entry(folder: str, run_id: str, stamp: str, planned: Planned | None) -> Entry:
    """A run's entry in the index, made of its record; raises BadRecordError, UserError, OSError."""
    record = read_record(Path(folder, RECORD))
    state = RunState(Status.DONE, stamp, wall_s=record["wall_s"], source=record["source"])
    ended: tuple[str, ...] = ()
    if unsupported := record.get("unsupported"):
        ended = (Status.UNSUPPORTED, Cause.UNSUPPORTED, unsupported)
    elif failed := record.get("failed"):
        ended = (Status.FAILED, failed, record.get("unfinished") or "")
    elif unfinished := record.get("unfinished"):
        ended = (Status.UNFINISHED, Cause.UNFINISHED, unfinished)
    if ended:
        status, cause, why = ended
        state = RunState(status, stamp, cause, why, source=record["source"])
    if planned is None:
        return Entry(state, "", [])
    return Entry(state, planned.keys[run_id], planned.differences(run_id, record))


def _finished(entry: Entry, accepted: bool) -> RunState:
    state, _, differs = entry
    detail = "; ".join(differs)
    if differs and (not accepted or OTHER_PATTERNS in differs):
        return state._replace(status=Status.STALE, cause=CHANGED, detail=detail)
    if differs and state.status == Status.DONE:
        return state._replace(detail=f"accepted although {detail}")
    return state


def _untrusted(folder: Path, stamp: str, why: str, quarantine: bool) -> RunState:
    """State of a run whose record cannot be trusted, which with ``quarantine`` is set aside.

    One that is being written by another process at this moment is left alone.
    """
    state = RunState(
        Status.FAILED, stamp, Cause.BAD_RECORD, _plain(why.removeprefix(f"{folder.name}: "))
    )
    if not quarantine:
        return state
    try:
        with only_one(folder):
            if stamp == files_stamp(str(folder)):
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


def forget_unsupported(runs_folder: Path, run_ids: Iterable[str]) -> None:
    """Make the unsupported runs among these pending again; their records are renamed."""
    for run_id, state in scan(runs_folder, run_ids).items():
        if state.status == Status.UNSUPPORTED:
            take_away(runs_folder / run_id)


def files_stamp(folder: str) -> str | None:
    """Times and sizes of a run's record and samples; None if there is no record."""
    record = stamp_of(f"{folder}/{RECORD}")
    return None if record is None else f"{record}/{stamp_of(f'{folder}/{SAMPLES}')}"


def _unfinished(folder: str, planned: Planned | None = None) -> RunState:
    path = f"{folder}/{FAILURE}"
    stamp = stamp_of(path)
    if stamp is None:
        return RunState(Status.NEW)
    failure = read_failure(Path(folder))
    if failure is None or "detail" not in failure:
        return RunState(Status.FAILED, stamp, Cause.UNKNOWN, f"{FAILURE} cannot be read")
    cause, detail = shorten(_plain(failure["cause"]), 60), _plain(failure["detail"])
    if cause == Cause.BAD_RESULT and planned and planned.other_patterns(Path(folder).name, failure):
        return RunState(Status.STALE, stamp, CHANGED, OTHER_PATTERNS)
    given_s = _given_s(failure) if cause == Cause.TIMEOUT else None
    return RunState(Status.FAILED, stamp, cause, detail, given_s=given_s)


def _plain(said: Any) -> str:
    """What a failure or an error says, on one line of a bounded length that can be encoded."""
    text = shorten(" ".join(str(said).split()), _MAX_DETAIL)
    return text.encode(errors="replace").decode()


def _given_s(failure: Mapping[str, Any]) -> float | None:
    """Seconds that a failed run had: those it was given in its job, else those it took."""
    if (limit_s := (failure.get("asked") or {}).get("limit_s")) is not None:
        return float(limit_s)
    began, ended = failure.get("started"), failure.get("ended")
    if not (began and ended):
        return None
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()


def set_aside(
    folder: Path, why: str, cause: str = Cause.BAD_RECORD, job: Mapping[str, Any] | None = None
) -> None:
    """Take away a record that cannot be trusted, with its files, and leave the reason.

    All stay in the folder under other names: nothing is lost, and the run is pending again.
    ``job``: what failure.json is to say of the Slurm job.
    """
    take_away(folder)
    write_failure(folder, {"cause": cause, "detail": why, **(job or {})})


def take_away(folder: Path) -> None:
    """Rename a run's record and its files within their folder: the run is pending again."""
    for name in (RECORD, SAMPLES, POWER):
        with contextlib.suppress(FileNotFoundError):
            (folder / name).replace(folder / f"{name}{BROKEN}")
