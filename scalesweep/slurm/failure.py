"""The last word on a run whose Slurm job has ended: the launcher's, unless Slurm knows better."""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from scalesweep.compute.job_spec import Asked
from scalesweep.core import disk_full
from scalesweep.core.causes import Cause
from scalesweep.core.files import write_atomic
from scalesweep.core.record import FAILURE, FAILURE_SCHEMA, RECORD, last_lines, read_failure
from scalesweep.slurm.sacct import GONE, Job, cause_of

# Key of a failure that no launcher wrote: its times are the job's, not the program's.
BY_SLURM = "by_slurm"
# The clocks of the nodes and of the scheduler need not agree better.
_CLOCK_S = 5.0


def settle(
    run_folder: Path,
    run_id: str,
    job: Job,
    asked: Asked,
    job_log: Path | None = None,
) -> str | None:
    """See to it that a run of an ended job has a record or a failure; returns the cause.

    With a record there is nothing to do, and the answer is None. A failure that the launcher
    wrote in this job keeps all but cause and detail, and these too unless Slurm knows better
    (``cause_of``). Without one, the launcher was itself killed: the failure is written here.
    ``asked`` is what the job asked for (minutes, mem_mb, nodes), ``job_log`` the log that Slurm
    wrote of it. Doing it again changes nothing. Raises OSError where it cannot write.
    """
    if (run_folder / RECORD).exists():
        return None
    old = read_failure(run_folder) or {}
    cause = cause_of(job)
    if written_in(job, old.get("job_id"), old.get("ended")) and BY_SLURM not in old:
        failure = old
        cause = cause or (str(old.get("cause")), str(old.get("detail")))
    else:
        failure = _failure(run_folder, run_id, job, job_log)
        cause = cause or _unspoken(run_folder, job, failure["last_lines"])
    new = {
        **failure,
        "cause": cause[0],
        "detail": cause[1],
        "asked": dict(asked),
        "nodes": job.node_list,
    }
    # A rewritten file would trigger the report again.
    if new != old:
        run_folder.mkdir(parents=True, exist_ok=True)
        write_atomic(run_folder / FAILURE, json.dumps(new, indent=1) + "\n")
    return cause[0]


def _unspoken(run_folder: Path, job: Job, lines: Sequence[str]) -> tuple[str, str]:
    """Cause and detail of a job whose launcher wrote no result."""
    if job.state == GONE:
        return Cause.LAUNCH_FAILED, f"Slurm job {job.job_id} is gone from queue and accounting"
    full = disk_full.why_failed(run_folder, lines) if run_folder.is_dir() else None
    if full is not None:
        return Cause.DISK_FULL, full
    code = f"exit code {job.exit_code}" + (f", signal {job.signal}" if job.signal else "")
    ended = f"Slurm job {job.job_id} ended ({job.state}, {code})"
    return Cause.KILLED, f"{ended} before the launcher wrote a result"


def leave_refusal(run_folder: Path, run_id: str, why: str) -> None:
    """Write failure.json of a run that sbatch refused, unless there is one of a job that ran.

    The next request starts from that one. Raises OSError.
    """
    old = read_failure(run_folder)
    if (run_folder / RECORD).exists() or (old and old["cause"] != Cause.NOT_SUBMITTED):
        return
    failure = {
        "schema": FAILURE_SCHEMA, "run_id": run_id, "cause": Cause.NOT_SUBMITTED, "detail": why,
        "exit_code": None, "signal": None, "attempt": 0, "started": None, "ended": None,
        "last_lines": [],
    }  # fmt: skip
    run_folder.mkdir(parents=True, exist_ok=True)
    write_atomic(run_folder / FAILURE, json.dumps(failure, indent=1) + "\n")


def written_in(job: Job, job_id: Any, ended: Any) -> bool:
    """Whether what names this ``job_id`` and time is of this try of the job.

    A job that Slurm requeues keeps its id.
    """
    if str(job_id) != str(job.job_id):
        return False
    started, end = epoch_s(job.started), epoch_s(ended)
    return started is None or end is None or end >= started - _CLOCK_S


def _failure(run_folder: Path, run_id: str, job: Job, job_log: Path | None) -> dict[str, Any]:
    attempt = _attempt(run_folder, job)
    lines: list[str] = []
    if attempt:
        folder = run_folder / f"attempt-{attempt}"
        lines = last_lines(folder / "stdout.log") + last_lines(folder / "stderr.log")
    elif job_log is not None:
        lines = last_lines(job_log)
    return {
        "schema": FAILURE_SCHEMA,
        "run_id": run_id,
        "cause": "",
        "detail": "",
        "exit_code": job.exit_code or None,
        "signal": job.signal or None,
        "attempt": attempt,
        "started": job.started,
        "ended": job.ended,
        "last_lines": lines,
        "job_id": job.job_id,
        BY_SLURM: True,
    }


def _attempt(run_folder: Path, job: Job) -> int:
    """Number of the attempt that this job began, or 0 if it did not come that far."""
    numbers = [
        int(path.name.removeprefix("attempt-"))
        for path in run_folder.glob("attempt-*")
        if path.name.removeprefix("attempt-").isdecimal()
    ]
    started = epoch_s(job.started)
    if not numbers or started is None:
        return 0
    newest = run_folder / f"attempt-{max(numbers)}"
    try:
        # Written when the attempt begins and never again.
        began = (newest / "run.json").stat().st_mtime
    except OSError:
        return 0
    return max(numbers) if began >= started - _CLOCK_S else 0


def epoch_s(time: Any) -> float | None:
    """Seconds since the epoch of a time in ISO 8601."""
    try:
        return datetime.fromisoformat(str(time)).timestamp()
    except (ValueError, OverflowError):
        return None
