"""Logs of external programs read again after the patterns of their benchmark.yaml have changed.

Nothing is run. A run's new record has the times of the old one, which stays in the attempt's
folder, as do its samples and failure.
"""

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scalesweep.compute.external_program import read_attempt, read_result
from scalesweep.compute.log_metrics import LogsGoneError
from scalesweep.compute.power.outcome import energy_metrics
from scalesweep.config.campaign import by_experiment
from scalesweep.config.experiment import Experiment
from scalesweep.config.log_patterns import Extract
from scalesweep.config.repeats import Run
from scalesweep.core.causes import Cause
from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic
from scalesweep.core.locks import only_one
from scalesweep.core.record import (
    EXTRACTED,
    FAILURE,
    FAILURE_SCHEMA,
    POWER,
    RECORD,
    SAMPLES,
    last_lines,
    publish,
    read_failure,
    write_record,
)
from scalesweep.core.status import Status
from scalesweep.state.record_reader import read_record
from scalesweep.state.run_state import RunState

_log = logging.getLogger(__name__)

PATTERNS = "patterns"  # in the cause of a stale run


def runs_to_reread(
    runs: Mapping[str, tuple[Experiment, Run]], states: Mapping[str, RunState]
) -> dict[str, Extract]:
    """The runs whose logs were read with other patterns than their benchmark has now.

    Run id -> patterns now. Only of programs that ended well; imported records have no logs.
    """
    extracts = {}
    for experiment, run_ids in by_experiment(runs):
        extract = experiment.benchmark.extract
        if extract is None:
            continue
        for run_id in run_ids:
            state = states[run_id]
            if state.source in ("", "measured") and state.extract not in ("", extract.digest):
                extracts[run_id] = extract
    return extracts


def leave_rereads(
    runs: Mapping[str, tuple[Experiment, Run]], states: Mapping[str, RunState]
) -> Mapping[str, RunState]:
    """The states, those of runs whose logs are to be read again being stale."""
    why = "its logs were read with other patterns"
    rereads = {
        run_id: states[run_id]._replace(
            status=Status.STALE, cause=f"{PATTERNS} changed", detail=why
        )
        for run_id in runs_to_reread(runs, states)
        if states[run_id].status != Status.STALE
    }
    return {**states, **rereads} if rereads else states


def reread(folder: Path, extract: Extract) -> str | None:
    """Read the logs of the run in ``folder`` with ``extract``; None if it has a record now, else
    why it has none.

    Where the logs are gone a record is kept as it is, and remembers that it was. Raises UserError
    if the run is being measured, OSError where it cannot write.
    """
    with only_one(folder):
        old = read_record(folder / RECORD) if (folder / RECORD).exists() else None
        past = old or read_failure(folder)
        if past is None:
            raise UserError(f"{folder.name}: has neither record nor failure")
        work = folder / f"attempt-{past['attempt']}"
        try:
            kept = read_attempt(work)
            parts, reading = read_result(work, extract.order)
        except LogsGoneError as error:
            return _without_logs(folder, old, extract, str(error))
        except UserError as error:
            return _failed(folder, work, past, old, extract, str(error))
        for warning in reading.warnings:
            _log.warning("%s: %s", folder.name, warning)
        parts["notes"]["extract"] |= _trace(past, extract)
        _set_aside(folder, work, past)
        record = {**kept["record"], **parts}
        measured = energy_metrics(record.get("energy"), record["wall_s"])
        record["metrics"] = {**measured, **record["metrics"]}
        if (work / POWER).exists():
            publish(work, folder)
        samples = work / EXTRACTED
        write_record(folder, record, samples if samples.exists() else None)
        if not reading.arrays:
            (folder / SAMPLES).unlink(missing_ok=True)
        (folder / FAILURE).unlink(missing_ok=True)
        return None


def _digest_of(past: Mapping[str, Any]) -> str:
    notes = past.get("notes", {}).get("extract", {})
    return str(past.get("extract_digest") or notes.get("extract_digest") or "unknown")


def _trace(past: Mapping[str, Any], extract: Extract) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"reread": now, "read_before_with": _digest_of(past)}


def _set_aside(folder: Path, work: Path, past: Mapping[str, Any]) -> None:
    """Copy what the run has into its attempt's folder, by the digest it was read with."""
    for name in (RECORD, SAMPLES, FAILURE):
        if (folder / name).exists():
            stem, _, ending = name.partition(".")
            copy = work / f"{stem}.{_digest_of(past)}.{ending}"
            write_atomic(copy, (folder / name).read_bytes(), durable=False)


def _failed(
    folder: Path,
    work: Path,
    past: Mapping[str, Any],
    old: Mapping[str, Any] | None,
    extract: Extract,
    why: str,
) -> str:
    """Leave a failure of the new patterns in the place of a record or an older failure."""
    slurm = past["resources"].get("slurm", {}) if old else {}
    failure = {
        "schema": FAILURE_SCHEMA,
        "run_id": folder.name,
        "cause": Cause.BAD_RESULT,
        "exit_code": 0,
        "signal": None,
        **({"job_id": slurm["job_id"], "asked": _asked(slurm)} if slurm else {}),
        **{key: value for key, value in past.items() if old is None},
        **{key: past[key] for key in ("attempt", "started", "ended")},
        "detail": why,
        "extract_digest": extract.digest,
        **_trace(past, extract),
        "last_lines": last_lines(work / "stdout.log") + last_lines(work / "stderr.log"),
    }
    _set_aside(folder, work, past)
    write_atomic(folder / FAILURE, json.dumps(failure, indent=1) + "\n")
    (folder / RECORD).unlink(missing_ok=True)
    (folder / SAMPLES).unlink(missing_ok=True)
    return why


def _asked(slurm: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in slurm.items() if key != "job_id"}


def _without_logs(
    folder: Path, old: Mapping[str, Any] | None, extract: Extract, why: str
) -> str | None:
    """Keep a record whose logs cannot be read any more; a failure stays what it is."""
    if old is None:
        failure = {**(read_failure(folder) or {}), "extract_digest": ""}
        write_atomic(folder / FAILURE, json.dumps(failure, indent=1) + "\n")
        return why
    notes = dict(old["notes"])
    notes["extract"] = {**notes["extract"], "kept_despite": extract.digest, "kept_because": why}
    samples = None
    if (folder / SAMPLES).exists():
        samples = folder / f".{SAMPLES}.tmp"
        samples.write_bytes((folder / SAMPLES).read_bytes())
    write_record(folder, {**old, "notes": notes}, samples)
    _log.warning("%s: %s: its record stays unchanged", folder.name, why)
    return None
