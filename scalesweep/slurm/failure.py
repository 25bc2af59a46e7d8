"""The last word on a run whose Slurm job has ended: the launcher's, unless Slurm knows better."""

from datetime import datetime
from pathlib import Path
from typing import Any

from scalesweep.compute.job_spec import Asked
from scalesweep.core import disk_full
from scalesweep.core.causes import Cause
from scalesweep.core.record import RECORD, last_lines, read_failure, write_failure
from scalesweep.slurm.sacct import GONE, Job, cause_of

# Key of a failure that no launcher wrote: its times are the job's, not the program's.
BY_SLURM = "by_slurm"
# The clocks of the nodes and of the scheduler need not agree better.
_CLOCK_S = 5.0


def settle(run_folder: Path, job: Job, asked: Asked, job_log: Path | None = None) -> str | None:
    """See to it that a run of an ended job has a record or a failure; returns the cause.

    With a record there is nothing to do, and the answer is None. A failure that the launcher
    wrote in this job keeps all but cause and detail, and these too unless Slurm knows better
    (``cause_of``). Without one, the launcher was itself killed: the failure is written here.
    ``asked`` is what the job asked for, ``job_log`` the log that Slurm wrote of it. Doing it again
    changes nothing. Raises OSError where it cannot write.
    """
    if (run_folder / RECORD).exists():
        return None
    old = read_failure(run_folder) or {}
    cause = cause_of(job)
    if written_in(job, old.get("job_id"), old.get("ended")) and BY_SLURM not in old:
        failure = old
        cause = cause or (str(old.get("cause")), str(old.get("detail")))
    else:
        failure = _failure(run_folder, job, job_log)
        cause = cause or _unspoken(job, failure["last_lines"])
    said = {"cause": cause[0], "detail": cause[1], "asked": dict(asked), "nodes": job.node_list}
    write_failure(run_folder, {**failure, **said})
    return cause[0]


def _unspoken(job: Job, lines: list[str]) -> tuple[str, str]:
    """Cause and detail of a job whose launcher wrote no result."""
    if job.state == GONE:
        return Cause.LAUNCH_FAILED, f"Slurm job {job.job_id} is gone from queue and accounting"
    if full := disk_full.words_of(lines):
        return Cause.DISK_FULL, full
    code = f"exit code {job.exit_code}" + (f", signal {job.signal}" if job.signal else "")
    ended = f"Slurm job {job.job_id} ended ({job.state}, {code})"
    return Cause.KILLED, f"{ended} before the launcher wrote a result"


def written_in(job: Job, job_id: Any, ended: Any) -> bool:
    """Whether what names this ``job_id`` and time is of this try of the job.

    A job that Slurm requeues keeps its id.
    """
    started, end = epoch_s(job.started), epoch_s(ended)
    ours = started is None or end is None or end >= started - _CLOCK_S
    return ours and str(job_id) == str(job.job_id)


def _failure(run_folder: Path, job: Job, job_log: Path | None) -> dict[str, Any]:
    attempt = _attempt(run_folder, job)
    logs = [job_log] if job_log else []
    if attempt:
        folder = run_folder / f"attempt-{attempt}"
        logs = [folder / "stdout.log", folder / "stderr.log"]
    return {
        "exit_code": job.exit_code or None,
        "signal": job.signal or None,
        "attempt": attempt,
        "started": job.started,
        "ended": job.ended,
        "last_lines": [line for log in logs for line in last_lines(log)],
        "job_id": job.job_id,
        BY_SLURM: True,
    }


def _attempt(run_folder: Path, job: Job) -> int:
    """Number of the attempt that this job began, or 0 if it did not come that far."""
    started = epoch_s(job.started)
    # run.json is written when an attempt begins and never again.
    begun = {
        int(path.parent.name.removeprefix("attempt-")): path.stat().st_mtime
        for path in run_folder.glob("attempt-*/run.json")
    }
    newest = max(begun, default=0)
    return newest if newest and started is not None and begun[newest] >= started - _CLOCK_S else 0


def epoch_s(time: Any) -> float | None:
    """Seconds since the epoch of a time in ISO 8601."""
    try:
        return datetime.fromisoformat(str(time)).timestamp()
    except (ValueError, OverflowError):
        return None
