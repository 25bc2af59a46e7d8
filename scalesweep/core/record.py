"""Records: what a run leaves behind, written once and checked whenever it is read.

Standard library only: the launcher imports this module on compute nodes.
"""

import contextlib
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalesweep.core.files import (
    content_digest,
    digest_of,
    file_digest,
    read_json,
    replacing,
    write_atomic,
)
from scalesweep.core.rank_columns import by_column
from scalesweep.core.record_check import SCHEMA, BadRecordError, check_record

if TYPE_CHECKING:
    from numpy.typing import NDArray

RECORD = "record.json"
FAILURE = "failure.json"
# Files of an earlier attempt in the folder of the one that replaced them begin so.
PREVIOUS = "previous_"
PREVIOUS_FAILURE = f"{PREVIOUS}{FAILURE}"
SAMPLES = "samples.npz"
POWER = "power.csv"  # in the run's folder
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

# What files that are not of arrays raise: zipfile, and NumPy.
NOT_ARRAYS = (
    *(ValueError, OSError, EOFError, RuntimeError, MemoryError, SyntaxError),
    *(zipfile.BadZipFile, zlib.error),
)
# What NumPy, json and formatting raise besides for content of the wrong kind.
NO_USE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError)

# The note of an imported record that names commit and repository.
MEASURED_COMMIT = "measured_commit"
# In ``notes.dates`` of an imported record whose dates are the age of a file.
LAST_MODIFIED = "last modified"


def described(path: Path) -> dict[str, Any]:
    """What a record says of a file next to it."""
    return {"bytes": path.stat().st_size, "blake2b": file_digest(path)}


def write_npz(path: Path, arrays: Mapping[str, "NDArray[Any]"]) -> None:
    """Write float64 arrays, uncompressed, by rename; the same content gives the same file."""
    import numpy as np

    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                write = np.lib.format.write_array
                write(member, np.ascontiguousarray(values, "<f8"))  # type: ignore[no-untyped-call]


def write_record(folder: Path, record: Mapping[str, Any], samples: Path | None = None) -> Path:
    """Complete ``record`` with its checksums and put it into ``folder``; returns its path.

    What it says of each rank may be in rows, as programs write it, or by column already.
    ``samples`` (an .npz inside or outside the folder, on the same file system) is moved in
    first; record.json follows last, by rename, so that a record that exists is whole.
    Raises BadRecordError unless the record is what one must be.
    """
    folder.mkdir(parents=True, exist_ok=True)
    described_samples = None if samples is None else {"file": SAMPLES, **described(samples)}
    complete = completed({**record, "samples": described_samples}, folder.name)
    if samples is not None:
        samples.replace(folder / SAMPLES)
    path = folder / RECORD
    write_atomic(path, record_text(complete))
    return path


def completed(record: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """``record`` as it is stored: by column, with schema and digest; raises BadRecordError."""
    complete = {**record, "schema": SCHEMA}
    complete.pop("digest", None)
    check_record(complete, run_id)
    complete = by_column(complete)
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


def parse_record(content: bytes, run_id: str) -> dict[str, Any]:
    """The record in the content of ``<run_id>/record.json``, checked. Raises BadRecordError naming
    what is wrong, UserError for a record of another schema."""
    try:
        record = _parsed(content)
    except (ValueError, AttributeError, KeyError, RecursionError) as error:
        # UnicodeDecodeError and JSONDecodeError are ValueErrors.
        raise BadRecordError(f"{run_id}: the record is not whole JSON ({error})") from None
    if record is None:
        raise BadRecordError(
            f"{run_id}: the record was changed after it was written (digest differs)"
        )
    check_record({key: value for key, value in record.items() if key != "digest"}, run_id)
    return record


def _parsed(content: bytes) -> dict[str, Any] | None:
    """The record; None if it has not the digest that it was written with.

    The standard library's json keeps the last word: what orjson reads or writes otherwise (numbers
    beyond 64 bits, 1e-05) has another digest.
    """
    import orjson  # on use: a launch is spared it

    with contextlib.suppress(orjson.JSONDecodeError):
        record: dict[str, Any] = orjson.loads(content)
        digest = record.pop("digest")
        if digest == content_digest(orjson.dumps(record, option=orjson.OPT_SORT_KEYS)):
            return {**record, "digest": digest}
    record = json.loads(content)
    digest = record.pop("digest")
    return {**record, "digest": digest} if digest == digest_of(record) else None


def read_record(path: Path) -> dict[str, Any]:
    """Read and check ``<run_id>/record.json``; raises BadRecordError naming what is wrong.

    The samples are there and have their size; ``read_samples`` compares their digest.
    """
    record = parse_record(path.read_bytes(), path.parent.name)
    check_samples(path.parent, record)
    return record


def told_arrays(record: Mapping[str, Any], samples: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arrays next to a record that have a meaning beside its metrics.

    What patterns have found in logs has the names of metrics, a name space of their own: ``loss``
    is a number that an external program printed, and the losses [epoch, rank] of a native one
    elsewhere. If such a program printed the seconds of its steps, ``OF_STEPS`` mean what they do
    elsewhere.
    """
    notes, steps = record["notes"], record["metrics"].get(STEP_TIMES) or {}
    if not isinstance(notes.get("extract"), dict):
        return samples
    if (steps.get("unit"), steps.get("scope")) != ("s", "rank"):
        return {}
    own = OF_STAMPS if isinstance(notes.get("stamps"), dict) else OF_STEPS
    return {name: samples[name] for name in sorted(own & set(samples))}


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


def read_samples(folder: Path, record: Mapping[str, Any]) -> bytes:
    """Content of the samples of a record that has some.

    Raises BadRecordError, which names no run, unless they are those that the record was written
    with, else OSError.
    """
    try:
        content = (folder / SAMPLES).read_bytes()
    except FileNotFoundError:
        raise BadRecordError(f"{SAMPLES} is missing") from None
    if content_digest(content) != record["samples"]["blake2b"]:
        raise BadRecordError(f"{SAMPLES} was changed: checksum differs")
    return content


def dates_of(record: Mapping[str, Any]) -> tuple[str, str]:
    """When a run started and ended; empty where no more is known than the age of its log."""
    if LAST_MODIFIED in str((record.get("notes") or {}).get("dates")):
        return "", ""
    return str(record.get("started") or ""), str(record.get("ended") or "")


def read_failure(folder: Path, name: str = FAILURE) -> dict[str, Any] | None:
    """failure.json in a run's folder; None if there is none or it is not whole."""
    failure = read_json(folder / name)
    return failure if failure and "cause" in failure else None


def write_failure(folder: Path, failure: Mapping[str, Any]) -> None:
    """Write failure.json of a run, unless it says so already: a newer file would have the report
    made again. What it does not say is null. Raises OSError."""
    unknown = dict.fromkeys(("exit_code", "signal", "started", "ended"))
    whole = {"run_id": folder.name, "attempt": 0, "last_lines": [], **unknown, **failure}
    if whole != read_failure(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / FAILURE, json.dumps(whole, indent=1) + "\n")


def last_lines(path: Path) -> list[str]:
    """The last lines of a log, without empty ones and stamps; none if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and "@spans" not in line]
    return lines[-LAST_LINES:]


def publish(work: Path, folder: Path) -> None:
    """Move an attempt's power.csv to the run's folder, in the place of an older one."""
    if (work / POWER).exists():
        (work / POWER).replace(folder / POWER)
    else:
        (folder / POWER).unlink(missing_ok=True)
