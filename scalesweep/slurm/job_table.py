"""The jobs of a campaign: what each asked for, used, waited for and held (results/jobs.csv)."""

import csv
import io
import os
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.core.files import read_json, write_atomic
from scalesweep.core.formatting import finite
from scalesweep.core.record import PREVIOUS_FAILURE, RECORD, read_failure
from scalesweep.slurm.commands import first_submission, is_away, is_run, job_name, logs_of
from scalesweep.slurm.job_end import BY_SLURM, epoch_s, written_in
from scalesweep.slurm.sacct import FINAL, Job, cause_of, named

JOBS = "jobs.csv"  # in the results folder
# How late the accounting learns of a job, and how long ago a job may have written its log for that.
LAG_S, RECENT_S = 15.0, 60.0
Row = dict[str, Any]

# Column -> type; times are UTC in ISO 8601, memory is per node (asked) and of a task (used). A job
# that stages data has no run_id, nor one of which it is not known whose it was.
COLUMNS: dict[str, Callable[[str], Any]] = {
    "job_id": int, "run_id": str, "state": str, "cause": str, "exit_code": int, "partition": str,
    "nodes": int, "cpus": int, "asked_s": int, "elapsed_s": int, "asked_mem_bytes": int,
    "max_rss_bytes": int, "submitted": str, "started": str, "ended": str, "wait_s": float,
    "program_s": float, "held_s": float, "node_hours": float, "node_list": str, "suspended_s": int,
}  # fmt: skip
_OF_JOB = (
    *("job_id", "state", "exit_code", "partition", "nodes", "cpus", "elapsed_s", "node_list"),
    *("asked_mem_bytes", "max_rss_bytes", "submitted", "started", "ended"),
)


@dataclass
class Collected:
    """Rows of the planned runs' jobs.

    ``note``: why there are none though jobs were submitted: there is no accounting, or it does not
    answer now (``away``).
    """

    rows: list[Row]
    note: str = ""
    away: bool = False


def collect(run_ids: Collection[str], runs: Path, out: Path) -> Collected:
    """Write the table ``out`` of the jobs of these runs; returns its rows.

    If the accounting does not answer, the table is older than all it is made from, so that
    Snakemake makes it again.
    """
    mine = spent(run_ids, runs, LAG_S)
    out.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(mine.rows)
    write_atomic(out, text.getvalue())
    if mine.away:
        os.utime(out, (0, 0))
    return mine


def spent(run_ids: Collection[str], runs: Path, patience_s: float = 0.0) -> Collected:
    """The jobs of these runs, those of calls that were killed too: one question to the accounting.

    It is asked again for ``patience_s`` while it does not know the ends of recent jobs. Without an
    answer there are no rows, and a note says why.
    """
    mine = Collected([])
    if since := first_submission(runs):
        ids = {*run_ids, *(path.name for path in runs.glob("*"))}
        logs = list(logs_of(runs, ids))
        logged = {job_id: run_id for run_id, job_id, _ in logs}
        written = {job_id: log.stat().st_mtime for _, job_id, log in logs}
        recent = {job_id for job_id, at in written.items() if at > time.time() - RECENT_S}
        last = time.monotonic() + patience_s
        while True:
            try:
                jobs = named(job_name(runs), since)
            except UserError as error:
                return Collected([], f"no accounting data: {error}", is_away(error))
            over = {job_id for job_id, job in jobs.items() if job.state in FINAL}
            if recent <= over or time.monotonic() >= last:
                break
            time.sleep(1.0)
        for job_id, job in sorted(jobs.items()):
            run_id = logged.get(job_id) or (job.comment if job.comment in ids else None)
            # Of staging, or of an accounting that keeps no comments: of a job that never began.
            if run_id in run_ids or (run_id is None and not (job.comment and is_run(job.comment))):
                mine.rows.append(_row(job, run_id, runs))
    return mine


def _row(job: Job, run_id: str | None, runs: Path) -> Row:
    """The row of a job: its state and cost, and of its run what the launcher has left."""
    program_s, noted = _launcher_notes(runs / run_id, job) if run_id else (None, "")
    cause = cause_of(job)
    row = {name: getattr(job, name) for name in _OF_JOB}
    return row | {
        "run_id": run_id,
        "cause": (cause[0] if cause else noted) or None,
        "asked_s": job.limit_s,
        "wait_s": _between(job.submitted, job.started),
        "program_s": program_s,
        # Slurm's times are whole seconds, and the program's time lies within them.
        "held_s": None if program_s is None else max(0.0, round(job.elapsed_s - program_s, 3)),
        "node_hours": job.nodes * job.elapsed_s / 3600,
        "suspended_s": job.suspended_s or None,
    }


def _launcher_notes(folder: Path, job: Job) -> tuple[float | None, str]:
    """Seconds of the benchmark program and cause of failure, as the launcher in this job says."""
    record = read_json(folder / RECORD) or {}
    resources = record.get("resources")
    slurm = resources.get("slurm") if isinstance(resources, dict) else None
    if isinstance(slurm, dict) and written_in(job, slurm.get("job_id"), record.get("ended")):
        wall_s = record.get("wall_s")
        return (round(float(wall_s), 3) if finite(wall_s) else None), ""
    earlier = (read_failure(path, PREVIOUS_FAILURE) for path in folder.glob("attempt-*"))
    for failure in (read_failure(folder), *earlier):
        if failure and written_in(job, failure.get("job_id"), failure.get("ended")):
            # If the launcher was killed, it is unknown when its program began and ended.
            known = BY_SLURM not in failure
            seconds = _between(failure.get("started"), failure.get("ended")) if known else None
            return seconds, str(failure["cause"])
    return None, ""


def _between(start: Any, end: Any) -> float | None:
    first, last = epoch_s(start), epoch_s(end)
    return None if first is None or last is None else round(last - first, 3)


def read_jobs(path: Path) -> list[Row]:
    """Rows of jobs.csv, typed, with None for what is missing; none before it was written.

    Raises UserError.
    """
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        try:
            return [
                {name: kind(row[name]) if row[name] else None for name, kind in COLUMNS.items()}
                for row in csv.DictReader(file)
            ]
        except (ValueError, KeyError, csv.Error) as error:
            raise UserError(f"{path}: not a table of jobs ({error})") from None


def is_incomplete(path: Path) -> bool:
    """Whether the accounting did not answer when jobs.csv was made (``collect``)."""
    return path.exists() and path.stat().st_mtime == 0


def overhead_s(rows: Iterable[Row]) -> float | None:
    """Median seconds for which completed jobs held their nodes outside the benchmark program."""
    held = [row["held_s"] for row in rows if row["state"] == "COMPLETED"]
    known = [seconds for seconds in held if seconds is not None]
    return median(known) if known else None
