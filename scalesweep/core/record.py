"""Records: what a run leaves behind, written once and checked whenever it is read.

Standard library only: the launcher imports this module on compute nodes.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.core.exchange_notes import with_exchange
from scalesweep.core.files import (
    NotAFileError,
    digest_of,
    file_digest,
    open_regular,
    read_regular,
    write_atomic,
)
from scalesweep.core.profilers import KINDS, NONE, folder_name
from scalesweep.core.rank_columns import by_column
from scalesweep.core.record_content import MAX_BYTES, check_content

# Of records: 1 holds what it says of each rank in rows, later ones by column; until 2 Horovod's
# settings were ``notes.horovod``, in 3 they are part of ``notes.exchange``. Others are brought to
# the last when they are read (``_upgraded``); nothing on disk is rewritten.
SCHEMA = 3
_NO_SCHEMA = 1000  # from here on a schema is damage, not a version
FAILURE_SCHEMA = 1
RECORD = "record.json"
FAILURE = "failure.json"
# Files of an earlier attempt in the folder of the one that replaced them begin so.
PREVIOUS = "previous_"
PREVIOUS_FAILURE = f"{PREVIOUS}{FAILURE}"
SAMPLES = "samples.npz"
# Of a foreign program, in the attempt's folder, on their way to become samples.npz of the run: it
# may write a file of that name itself.
EXTRACTED = ".extracted.npz"
# Arrays [step, rank] in s that say where the time of steps goes, a foreign program's too.
STEP_TIMES = "step_times"
WARMUP_STEP_TIMES = "warmup_step_times"  # of the steps before these, which no metric counts
OF_STEPS = frozenset(
    (
        *(STEP_TIMES, "span_input", "span_compute", "span_communication", "span_between"),
        *("span_checkpoint", "span_validation", "span_logging"),
        # Parts of span_compute, and of span_communication.
        *("span_forward", "span_backward", "span_optimizer"),
        *("span_data_parallel", "span_tensor_parallel", "span_pipeline_wait"),
    )
)
# Arrays [epoch, rank] in s: of each rank, and until all ranks are there.
EPOCH_TIMES = ("local_times", "global_times")
# What stamps of steps leave beside OF_STEPS (compute/stamp_arrays.py).
OF_STAMPS = OF_STEPS | {*EPOCH_TIMES, WARMUP_STEP_TIMES}

# Of each log, kept with a failure.
LAST_LINES = 20
_TAIL_BYTES = 65536

SOURCES = ("measured", "simulated", "imported")
# In ``notes.dates`` of an imported record whose dates are the age of a file.
LAST_MODIFIED = "last modified"


# Key -> type(s) that a complete record has; values that may be absent are null, not missing.
REQUIRED: dict[str, tuple[type, ...]] = {
    "schema": (int,),
    "run_id": (str,),
    "benchmark": (str,),
    "version": (int,),
    "point": (dict,),
    "repeat": (int,),
    "site": (str,),
    "source": (str,),
    "started": (str,),
    "ended": (str,),
    "wall_s": (int, float, type(None)),
    "attempt": (int,),
    "phases": (dict,),
    "metrics": (dict,),
    "work": (dict,),
    "resources": (dict,),
    "environment": (dict,),
    "notes": (dict,),
    "git": (dict, type(None)),
    "command": (list,),
    "samples": (dict, type(None)),
}


# Content of a file -> JSON value, as json.loads; and whether a digest is that of a value.
Parse = Callable[[bytes], Any]
HasDigest = Callable[[Any, Any], bool]


class BadRecordError(UserError):
    """A record that cannot be trusted: cut, edited, of another run, or without its samples."""


class NewerRecordError(UserError):
    """A record of a newer version: neither to be trusted blindly nor to be set aside."""


def described(path: Path) -> dict[str, Any]:
    """What a record says of a file next to it."""
    return {"bytes": path.stat().st_size, "blake2b": file_digest(path)}


def write_record(folder: Path, record: Mapping[str, Any], samples: Path | None = None) -> Path:
    """Complete ``record`` with its checksums and put it into ``folder``; returns its path.

    What it says of each rank may be in rows, as programs write it, or by column already.
    ``samples`` (an .npz inside or outside the folder, on the same file system) is moved in
    first; record.json follows last, by rename, so that a record that exists is whole.
    Raises BadRecordError if a required key is missing or has the wrong type, UnusableRecordError
    where no table could be made of what it holds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    described_samples = None if samples is None else {"file": SAMPLES, **described(samples)}
    complete = completed({**record, "samples": described_samples}, folder.name)
    check_record(complete, folder.name)
    check_content(complete)
    if samples is not None:
        samples.replace(folder / SAMPLES)
    path = folder / RECORD
    write_atomic(path, record_text(complete))
    return path


def completed(record: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """``record`` as it is stored: by column, with schema and digest; raises BadRecordError."""
    complete = {**by_column(record), "schema": SCHEMA}
    complete.pop("digest", None)
    try:
        complete["digest"] = digest_of(complete)
    except ValueError as error:
        raise BadRecordError(f"{run_id}: a value is NaN or infinite ({error})") from None
    return complete


def record_text(value: Any, indent: str = "\n ") -> str:
    """JSON with a line for each key of an object; a list or a column, however long, has one."""
    if not isinstance(value, dict) or not value or "values" in value:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    items = (
        f"{json.dumps(key, ensure_ascii=False)}: {record_text(value[key], f'{indent} ')}"
        for key in sorted(value)
    )
    text = f"{{{indent}{f',{indent}'.join(items)}{indent[:-1]}}}"
    return f"{text}\n" if indent == "\n " else text


def _has_digest(value: Any, digest: Any) -> bool:
    return bool(digest == digest_of(value))


def check_record(record: Any, run_id: str, has_digest: HasDigest = _has_digest) -> None:
    """Raise BadRecordError unless ``record`` is complete, of folder ``run_id``, and unchanged.

    Raises NewerRecordError if it is of a later schema, whatever its digest: that version may make
    its digests otherwise, and what it wrote must not be taken for damage.
    """
    if not isinstance(record, dict):
        raise BadRecordError(f"{run_id}: the record is not a JSON object")
    schema, rest = record.get("schema"), {k: v for k, v in record.items() if k != "digest"}
    if schema not in range(1, SCHEMA + 1):
        read = f"this version reads schemas 1 to {SCHEMA}"
        if type(schema) is int and SCHEMA < schema < _NO_SCHEMA:
            raise NewerRecordError(
                f"{run_id}: a newer version of scalesweep wrote the record (schema {schema}), "
                f"{read}: update scalesweep"
            )
        raise BadRecordError(f"{run_id}: record schema {schema!r}, {read}")
    for key, types in REQUIRED.items():
        if key not in record:
            raise BadRecordError(f"{run_id}: the record lacks '{key}'")
        value = record[key]
        if type(value) in types:  # as all are that were parsed
            continue
        if not isinstance(value, types) or isinstance(value, bool):
            raise BadRecordError(f"{run_id}: the record's '{key}' has the wrong type")
    profile = record.get("profile", {"kind": NONE})
    if not isinstance(profile, dict) or profile.get("kind") not in (NONE, *KINDS):
        raise BadRecordError(f"{run_id}: the record's 'profile' names no kind of profile")
    if folder_name(record["run_id"], profile["kind"]) != run_id:
        raise BadRecordError(f"{run_id}: the record is of run {record['run_id']}")
    checksums(record)
    if record["source"] not in SOURCES:
        raise BadRecordError(
            f"{run_id}: source {record['source']!r}, allowed: {', '.join(SOURCES)}"
        )
    if not has_digest(rest, record.get("digest")):
        raise BadRecordError(
            f"{run_id}: the record was changed after it was written (digest differs)"
        )


def parse_record(
    content: bytes, run_id: str, parse: Parse = json.loads, has_digest: HasDigest = _has_digest
) -> dict[str, Any]:
    """The record in the content of ``<run_id>/record.json``, checked and brought to ``SCHEMA``.

    Raises BadRecordError naming what is wrong, NewerRecordError where the schema is not known yet.
    """
    try:
        record = parse(content)
        check_record(record, run_id, has_digest)
    except (ValueError, RecursionError) as error:
        # UnicodeDecodeError and JSONDecodeError are ValueErrors.
        raise BadRecordError(f"{run_id}: the record is not whole JSON ({error})") from None
    return _upgraded(record)


def _upgraded(record: dict[str, Any]) -> dict[str, Any]:
    """A record that was checked, as if it had been written with the schema of today."""
    if record["schema"] == SCHEMA:
        return record
    notes = with_exchange(record["notes"])
    return {**by_column(record), "notes": notes, "schema": SCHEMA}


def read_record(path: Path) -> dict[str, Any]:
    """Read and check ``<run_id>/record.json``; raises BadRecordError naming what is wrong.

    The samples file is checked for presence and size here; ``verify_files`` reads it whole.
    ``scalesweep.state.record_reader`` does the same faster, where there is more than the
    standard library.
    """
    record = parse_record(record_bytes(path), path.parent.name)
    check_samples(path.parent, record)
    return record


def record_bytes(path: Path) -> bytes:
    """Content of ``<run_id>/record.json``.

    Raises BadRecordError where it is no regular file or longer than a record can be, else OSError.
    """
    try:
        return read_regular(path, MAX_BYTES)
    except NotAFileError as error:
        raise BadRecordError(f"{path.parent.name}: {path.name} {error.strerror}") from None


def holds_matches(record: Mapping[str, Any]) -> bool:
    """Whether the arrays next to a record are nothing but what patterns have found in logs.

    They have the names of its metrics, a name space of their own: ``loss`` is a number that an
    external program printed here, and the losses [epoch, rank] of a native one elsewhere. Where
    such a program printed the seconds of its steps, ``OF_STEPS`` mean what they do elsewhere.
    """
    step_times = record["metrics"].get(STEP_TIMES) or {}
    steps = step_times.get("unit") == "s" and step_times.get("scope") == "rank"
    return isinstance(record["notes"].get("extract"), dict) and not steps


def told_arrays(record: Mapping[str, Any], samples: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arrays next to a record that have a meaning beside its metrics."""
    if not isinstance(record["notes"].get("extract"), dict):
        return samples
    own = OF_STAMPS if isinstance(record["notes"].get("stamps"), dict) else OF_STEPS
    known = set() if holds_matches(record) else own & set(samples)
    return {name: samples[name] for name in sorted(known)}


def check_samples(folder: Path, record: Mapping[str, Any]) -> None:
    """Raise BadRecordError unless the samples next to a record are there and have their size."""
    if record["samples"] is not None:
        samples, expected = folder / SAMPLES, record["samples"].get("bytes")
        size = samples.stat().st_size if samples.is_file() else None
        if size != expected:
            problem = "is missing" if size is None else f"has {size} bytes"
            raise BadRecordError(
                f"{folder.name}: {SAMPLES} {problem}, the record says {expected} bytes"
            )


def dates_of(record: Mapping[str, Any]) -> tuple[str, str]:
    """When a run started and ended; empty where no more is known than the age of its log."""
    notes = record.get("notes")
    dates = notes.get("dates") if isinstance(notes, dict) else None
    if record.get("source") == "imported" and LAST_MODIFIED in str(dates):
        return "", ""
    return str(record.get("started") or ""), str(record.get("ended") or "")


def read_failure(folder: Path, name: str = FAILURE) -> dict[str, Any] | None:
    """failure.json in a run's folder; None if there is none or it is not whole."""
    try:
        failure = json.loads(read_regular(folder / name, MAX_BYTES))
        # Halves of surrogate pairs, which JSON may name, could not be written to any table.
        text = json.dumps(failure, ensure_ascii=False).encode(errors="replace")
        failure = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return None
    return failure if isinstance(failure, dict) and "cause" in failure else None


def last_lines(path: Path) -> list[str]:
    """The last lines of a log, without empty ones; none if it cannot be read."""
    try:
        with open_regular(path) as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-LAST_LINES:]


def checksums(record: Mapping[str, Any]) -> dict[str, str]:
    """File -> checksum of the files that belong to a record; raises BadRecordError."""
    try:
        entries = {SAMPLES: record["samples"], POWER: (record.get("energy") or {}).get("table")}
        known = {name: entry for name, entry in entries.items() if entry is not None}
        whole = all(isinstance(e["bytes"] + 0, int) for e in known.values())
        digests = {name: entry["blake2b"] for name, entry in known.items()}
    except (AttributeError, KeyError, TypeError):
        whole, digests = False, {}
    if not whole or not all(isinstance(digest, str) for digest in digests.values()):
        raise BadRecordError(
            f"{record.get('run_id')}: what the record says of its files is not whole"
        )
    return digests


def verify_files(folder: Path, expected: Mapping[str, str]) -> None:
    """Read the files of a record whole; raises BadRecordError if one was changed or is gone.

    ``expected`` is what ``checksums`` returns. No number of a table rests on power.csv: one that
    was deleted is not required. Raises OSError where a file cannot be read.
    """
    for name, digest in expected.items():
        try:
            actual = file_digest(folder / name)
        except FileNotFoundError:
            if name == POWER:
                continue
            raise BadRecordError(f"{folder.name}: {name} is missing") from None
        except NotAFileError as error:
            raise BadRecordError(f"{folder.name}: {name} {error.strerror}") from None
        if actual != digest:
            raise BadRecordError(f"{folder.name}: {name} was changed: checksum differs")


POWER = "power.csv"  # in the run's folder


def publish(work: Path, folder: Path) -> None:
    """Move an attempt's power.csv to the run's folder, in the place of an older one."""
    if (work / POWER).exists():
        (work / POWER).replace(folder / POWER)
    else:
        (folder / POWER).unlink(missing_ok=True)
