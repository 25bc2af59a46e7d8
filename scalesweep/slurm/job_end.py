"""Which of our jobs are over, and the last word on their runs: the launcher's, unless Slurm knows
better.

The queue says what lives, the accounting how the rest ended. Neither is enough alone: the
accounting lags behind by seconds, shows the end of a try that Slurm has requeued, keeps the jobs of
a crashed slurmctld RUNNING for ever, and may be off or purged; the queue forgets a job minutes
after its end (MinJobAge).
"""

import contextlib
import logging
import math
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from scalesweep.compute.job_spec import Asked
from scalesweep.core import disk_full
from scalesweep.core.causes import Cause
from scalesweep.core.errors import UserError
from scalesweep.core.files import natural_order
from scalesweep.core.formatting import counted
from scalesweep.core.record import RECORD, last_lines, read_failure, write_failure
from scalesweep.slurm import commands, sacct

_log = logging.getLogger(__name__)

# How long the accounting may take to have all of a job that has ended.
BOOKS_S = 10.0
# How long a node may take to be rid of a job that the accounting says is over.
COMPLETING_S = 120.0
# A job that neither queue nor accounting knows for so long is gone.
GONE_S = 60.0
# How often at most a line says why jobs are pending, or that Slurm does not answer.
SAID_S = 60.0
# What Slurm's words for the usual reasons mean (squeue's REASON).
_REASONS = {
    "Resources": "waits for free nodes",
    "Priority": "other jobs come first",
    "Dependency": "waits for another job of these results",
    "BeginTime": "not before its begin time",
    "JobHeldUser": "held by its user: scontrol release",
    "JobHeldAdmin": "held by an administrator",
    "ReqNodeNotAvail": "a node it needs is down, drained or reserved",
}
# What a job waits for in vain: limits of a job, of a partition or an association, and the like.
_NEVER = re.compile(
    r"Partition(?:Time|Node)Limit|(?:QOS|Assoc)\w*(?:PerJob|WallDuration)\w*Limit"
    r"|DependencyNeverSatisfied|BadConstraints"
)
# Key of a failure that no launcher wrote: its times are the job's, not the program's.
BY_SLURM = "by_slurm"
# The clocks of the nodes and of the scheduler need not agree better.
_CLOCK_S = 5.0


@dataclass
class JobWatch:
    """Looks after the jobs of one Snakemake; ``ended`` is asked every few seconds."""

    # The queue when it was last looked at.
    seen: Mapping[int, commands.LiveJob] = field(default_factory=dict)
    # Jobs that were suspended when they were looked at.
    _suspended: set[int] = field(default_factory=set)
    # When each job was first seen to live no more.
    _over_since: dict[int, float] = field(default_factory=dict)
    # What was last said, and when.
    _said: tuple[str, float] = ("", -math.inf)

    def ended(self, job_ids: Sequence[int]) -> dict[int, sacct.Job]:
        """Those of the jobs that are over for good, with all that is known of them.

        While Slurm does not answer none is: the jobs go on without it, and a line says so.
        """
        try:
            queue = self.seen = commands.queue_states()
        except UserError as error:
            self._say(f"Slurm does not answer ({error}); jobs go on without it")
            return {}
        self._say(why_pending(queue[i] for i in job_ids if i in queue))
        ended: dict[int, sacct.Job] = {}
        over: dict[int, str] = {}  # to be explained by the accounting
        for job_id in job_ids:
            state = queue[job_id].state if job_id in queue else ""
            if state == "SUSPENDED":
                self._suspended.add(job_id)
            if state not in ("", "COMPLETING", *sacct.FINAL):
                self._over_since.pop(job_id, None)  # maybe requeued
            # Nothing is to be explained of one that completed, but for how long it was suspended.
            elif state == "COMPLETED" and job_id not in self._suspended:
                ended[job_id] = sacct.Job(job_id, state, node_list=queue[job_id].nodes)
            else:
                over[job_id] = state
        return ended | self._explained(over)

    def _explained(self, over: Mapping[int, str]) -> dict[int, sacct.Job]:
        """How those jobs ended, of which it can be said by now."""
        known: Mapping[int, sacct.Job] = {}
        with contextlib.suppress(UserError):  # there is none, or it does not answer
            known = sacct.query(list(over))
        now, ended = time.monotonic(), {}
        for job_id, state in over.items():
            waited = now - self._over_since.setdefault(job_id, now)
            going = state == "COMPLETING"
            job, late = known.get(job_id), waited >= (COMPLETING_S if going else BOOKS_S)
            if job and sacct.finished(job):
                if late or job.state == "COMPLETED" or (sacct.settled(job) and not going):
                    ended[job_id] = job
            elif not going and ((state and late) or waited >= GONE_S):
                ended[job_id] = sacct.Job(job_id, state or sacct.GONE)
        return ended

    def _say(self, line: str) -> None:
        """A line, if more than its numbers has changed since the last one, and not too often."""
        said, when = self._said
        kind, now = re.sub(r"[\d,]+", "", line), time.monotonic()
        if line and kind != said and now - when >= SAID_S:
            _log.info("%s", line)
            self._said = kind, now


def why_pending(jobs: Iterable[commands.LiveJob]) -> str:
    """``3 jobs are pending: 2 Resources (waits for free nodes), 1 ...``; empty for none."""
    # Slurm may add which: ReqNodeNotAvail, UnavailableNodes:node3; or why: ..., Reserved for
    # maintenance. All of it is said.
    counts = Counter(job.reason for job in jobs if job.state == "PENDING")
    counts.pop("None", None)
    if not counts:
        return ""
    parts = []
    for reason, count in counts.most_common():
        known = _REASONS.get(reason.partition(",")[0], "")
        if _NEVER.match(reason):
            known = "will never start as it is: scancel it, and ask for less"
        if reason == "Resources" and (own := os.environ.get(commands.HEAD_JOB)):
            known += f"; job {own}, which this call runs in, holds nodes too"
        parts.append(f"{count} {reason}" + (f" ({known})" if known else ""))
    number = counts.total()
    are = "is" if number == 1 else "are"
    return f"{counted(number, 'job')} {are} pending: {', '.join(parts)}"


def settle(
    run_folder: Path, job: sacct.Job, asked: Asked, job_log: Path | None = None
) -> str | None:
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
    cause = sacct.cause_of(job)
    if written_in(job, old.get("job_id"), old.get("ended")) and BY_SLURM not in old:
        failure = old
        cause = cause or (str(old.get("cause")), str(old.get("detail")))
    else:
        failure = _failure(run_folder, job, job_log)
        cause = cause or _unspoken(job, failure["last_lines"])
    said = {"cause": cause[0], "detail": cause[1], "asked": dict(asked), "nodes": job.node_list}
    write_failure(run_folder, {**failure, **said})
    return cause[0]


def _unspoken(job: sacct.Job, lines: list[str]) -> tuple[str, str]:
    """Cause and detail of a job whose launcher wrote no result."""
    if job.state == sacct.GONE:
        return Cause.LAUNCH_FAILED, f"Slurm job {job.job_id} is gone from queue and accounting"
    if full := disk_full.words_of(lines):
        return Cause.DISK_FULL, full
    code = f"exit code {job.exit_code}" + (f", signal {job.signal}" if job.signal else "")
    ended = f"Slurm job {job.job_id} ended ({job.state}, {code})"
    return Cause.KILLED, f"{ended} before the launcher wrote a result"


def written_in(job: sacct.Job, job_id: Any, ended: Any) -> bool:
    """Whether what names this ``job_id`` and time is of this try of the job.

    A job that Slurm requeues keeps its id.
    """
    started, end = epoch_s(job.started), epoch_s(ended)
    ours = started is None or end is None or end >= started - _CLOCK_S
    return ours and str(job_id) == str(job.job_id)


def _failure(run_folder: Path, job: sacct.Job, job_log: Path | None) -> dict[str, Any]:
    # run.json is written when an attempt begins and never again.
    begun = max(run_folder.glob("attempt-*/run.json"), key=natural_order, default=None)
    started, logs, attempt = epoch_s(job.started), [job_log] if job_log else [], 0
    if begun and started is not None and begun.stat().st_mtime >= started - _CLOCK_S:
        attempt = int(begun.parent.name.removeprefix("attempt-"))
        logs = [begun.with_name(name) for name in ("stdout.log", "stderr.log")]
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


def epoch_s(time: Any) -> float | None:
    """Seconds since the epoch of a time in ISO 8601."""
    try:
        return datetime.fromisoformat(str(time)).timestamp()
    except (ValueError, OverflowError):
        return None
