"""Which of our jobs are over: the queue says what lives, the accounting how the rest ended.

Neither is enough alone. The accounting lags behind by seconds, shows the end of a try that Slurm
has requeued, keeps the jobs of a crashed slurmctld RUNNING for ever, and may be off or purged; the
queue forgets a job minutes after its end (MinJobAge).
"""

import logging
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted
from scalesweep.slurm import commands, sacct

_log = logging.getLogger(__name__)

# How long the accounting may take to have all of a job that has ended, and a node to be rid of it.
BOOKS_S = 10.0
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


@dataclass
class JobWatch:
    """Looks after the jobs of one Snakemake; ``ended`` is asked every few seconds."""

    queue: Callable[[], Mapping[int, commands.LiveJob]] = commands.queue_states
    books: Callable[[Sequence[int]], Mapping[int, sacct.Job]] = sacct.query
    clock: Callable[[], float] = time.monotonic
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
            queue = self.seen = self.queue()
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
            if state not in ("", *sacct.FINAL, "COMPLETING"):
                self._over_since.pop(job_id, None)  # requeued
            # Nothing is to be explained of one that completed, but for how long it was suspended.
            elif state == "COMPLETED" and job_id not in self._suspended:
                ended[job_id] = sacct.Job(job_id, state, node_list=queue[job_id].nodes)
            else:
                over[job_id] = state
        return ended | self._explained(over)

    def _explained(self, over: Mapping[int, str]) -> dict[int, sacct.Job]:
        """How those jobs ended, of which it can be said by now."""
        known: Mapping[int, sacct.Job] = {}
        accounted = True
        try:
            known = self.books(list(over)) if over else {}
        except UserError as error:
            accounted = commands.is_away(error)
        now, ended = self.clock(), {}
        for job_id, state in over.items():
            waited = now - self._over_since.setdefault(job_id, now)
            if job := _verdict(job_id, state, known.get(job_id), waited, accounted):
                ended[job_id] = job
        return ended

    def _say(self, line: str) -> None:
        """A line, if more than its numbers has changed since the last one, and not too often."""
        said, when = self._said
        kind, now = re.sub(r"[\d,]+", "", line), self.clock()
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


def _verdict(
    job_id: int, state: str, job: sacct.Job | None, waited_s: float, accounted: bool
) -> sacct.Job | None:
    """How a job ended that the queue has in ``state``, or not at all; None: to be looked at again.

    ``job`` is what the accounting has of it, ``accounted`` whether there is one.
    """
    completing = state == "COMPLETING"
    if job is not None and sacct.finished(job):
        if job.state == "COMPLETED" or waited_s >= (COMPLETING_S if completing else BOOKS_S):
            return job
        return job if sacct.settled(job) and not completing else None
    if completing:
        return None
    if state and (waited_s >= BOOKS_S or not accounted):
        return sacct.Job(job_id, state)
    return sacct.Job(job_id, sacct.GONE) if waited_s >= GONE_S else None
