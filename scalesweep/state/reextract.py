"""Logs of external programs read again after the patterns of their benchmark.yaml have changed.

Nothing is run. A run's new record has the times of the old one, which stays in the attempt's
folder, as do its samples and failure.
"""

import logging
from datetime import UTC, datetime
from pathlib import Path

from scalesweep.compute.external_program import read_attempt, read_result
from scalesweep.compute.log_metrics import LogsGoneError
from scalesweep.compute.power import energy_metrics
from scalesweep.config.log_patterns import Result
from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic
from scalesweep.core.locks import only_one
from scalesweep.core.record import (
    EXTRACTED,
    FAILURE,
    POWER,
    RECORD,
    SAMPLES,
    publish,
    read_failure,
    read_record,
    write_record,
)

_log = logging.getLogger(__name__)


def reread(folder: Path, extract: Result) -> None:
    """Read the logs of the run in ``folder`` with ``extract``, and write its record again.

    If they are gone or lack a value, all stays as it is, but for a failure without logs: the run
    is new. Raises UserError that says so, or that the run is being measured, and OSError if it
    cannot write.
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
        except LogsGoneError:
            if old is None:  # it can only be run again
                (folder / FAILURE).unlink()
            raise
        for warning in reading.warnings:
            _log.warning("%s: %s", folder.name, warning)
        before = past.get("extract_digest") or past["notes"]["extract"]["extract_digest"]
        now = datetime.now(UTC).isoformat(timespec="seconds")
        parts["notes"]["extract"] |= {"reread": now, "read_before_with": before}
        for name in (RECORD, SAMPLES, FAILURE):  # they stay in the attempt's folder
            if (folder / name).exists():
                stem, _, ending = name.partition(".")
                copy = work / f"{stem}.{before}.{ending}"
                write_atomic(copy, (folder / name).read_bytes(), durable=False)
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
