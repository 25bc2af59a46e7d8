"""What happens around the Slurm jobs of a campaign (``plugins/``, ``Executor.hooks``)."""

import logging
import os
import signal
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from getpass import getuser
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from scalesweep.core.errors import UserError
from scalesweep.core.files import stamp_of
from scalesweep.core.orphans import end_children
from scalesweep.core.record import RECORD
from scalesweep.jobs.submission import LOGS, Submission
from scalesweep.slurm import commands, sacct
from scalesweep.slurm.job_file import SubmittedJob, note_submitted
from scalesweep.slurm.job_identity import job_comment, job_name, joined
from scalesweep.slurm.job_watch import JobWatch
from scalesweep.slurm.sacct import Job, JobState
from scalesweep.smk.context import MARKER
from scalesweep.smk.job_rules import JobRules

_log = logging.getLogger(__name__)

RUN, STAGE = "run", "stage"


class Failed(NamedTuple):
    """What comes of a job that failed: whether it is tried again, and a line that says so.

    ``forgiven``: others wait for this run however it ends, and its marker is there.
    """

    again: bool
    line: str
    forgiven: bool = False


@dataclass(frozen=True)
class CampaignHooks:
    """The hooks of the executor, for the jobs of the rules ``run`` and ``stage``."""

    jobs: JobRules
    submission: Submission
    watch: JobWatch = field(default_factory=JobWatch)
    # Run or data set of each job of this Snakemake, and how those ended that are over.
    _made: dict[int, Path] = field(default_factory=dict)
    _ends: dict[int, Job] = field(default_factory=dict)
    # Runs that were to be submitted, also those that were refused.
    _begun: set[str] = field(default_factory=set)

    @property
    def job_name(self) -> str:
        """The name of every job of the campaign's runs, which the next call knows them by."""
        return job_name(self.submission.campaign.runs_folder)

    def before(self, rule: str, wildcards: Mapping[str, str], attempt: int) -> None:
        """Leave the job's order. Raises UserError or OSError."""
        if rule == RUN:
            run_id = wildcards["run_id"]
            self._begun.add(run_id)
            if why := self.submission.refused.get(run_id):
                raise UserError(why)
            self.submission.in_hand.add(run_id)
            self.jobs.leave_order(run_id, attempt)

    def request(
        self, rule: str, wildcards: Mapping[str, str], attempt: int
    ) -> Mapping[str, int | str]:
        """What the job of a run asks for as of now: Snakemake keeps what was asked when the run was
        first ready. Nothing: what it says."""
        if rule != RUN:
            return {}
        return self.submission.request(wildcards["run_id"], attempt).shape.resources()

    def command(self, rule: str, wildcards: Mapping[str, str]) -> str:
        """What the job runs. What it prints is in Slurm's log and in the rule's."""
        if rule == STAGE:
            return self.jobs.staging_job(wildcards["folder"], wildcards["files"])
        return self.jobs.run_job(wildcards["runs"], wildcards["run_id"])

    def is_away(self, said: str) -> bool:
        """Whether sbatch failed because Slurm does not answer at the moment."""
        return commands.is_away(said)

    def full(self, said: str, queued: int) -> str:
        """Slurm's word for a limit of jobs that are submitted, where sbatch failed for it."""
        return commands.submit_limit(said, queued)

    def any_queued(self) -> bool:
        """Whether this user has any job in the queue; yes while Slurm does not answer."""
        try:
            states = commands.queue_states().values()
        except UserError:
            return True
        return any(job.state not in sacct.FINAL for job in states)

    def queued(self, rule: str, wildcards: Mapping[str, str], patient: bool) -> int | None:
        """Id of a job of this Snakemake that sbatch left without saying so.

        ``patient``: wait for Slurm, which did not answer a moment ago. Raises UserError if it does
        not answer.
        """
        ours = (self.job_name, job_comment(rule, *wildcards.values()))
        for job in commands.live_jobs(commands.PATIENCE_S if patient else 0.0):
            if (job.name, job.comment) == ours and job.job_id not in self._made:
                return job.job_id
        return None

    def submitted(
        self, rule: str, wildcards: Mapping[str, str], attempt: int, job_id: int, log: str
    ) -> None:
        """Note the job in its run's folder. Raises OSError."""
        if rule == RUN:
            folder = Path(wildcards["runs"], wildcards["run_id"])
            self._made[job_id] = folder / MARKER
            note_submitted(folder, SubmittedJob(job_id, attempt, log, user=getuser()))
        elif rule == STAGE:
            self._made[job_id] = Path(wildcards["folder"], f"staged-{wildcards['files']}")

    def refused(self, rule: str, wildcards: Mapping[str, str], why: str) -> str:
        """Note a job that was not submitted; a line that says so."""
        if rule != RUN:
            return f"staging {wildcards.get('folder', '')}: not submitted: {why}"
        self.submission.refuse(wildcards["run_id"], why)
        return f"{wildcards['run_id']}: not submitted: {why}"

    def waiting(self) -> int:
        """How many runs are planned that have not been submitted yet."""
        return len(set(self.jobs.context.pending) - self._begun)

    def ended(self, job_ids: Collection[int]) -> Mapping[int, bool]:
        """Those of these jobs that are over: whether they left what they were to make."""
        ended = self.watch.ended(list(job_ids))
        self._ends.update(ended)
        return {job_id: self._is_made(job) for job_id, job in ended.items()}

    def _is_recorded(self, marker: Path) -> bool:
        """Whether a run has a record of today, which its marker then says."""
        if self._is_new(marker):
            marker.touch()
            return True
        return False

    def _is_new(self, marker: Path) -> bool:
        """Whether a run has a record of today."""
        record = stamp_of(str(marker.with_name(RECORD)))
        return record not in (None, self.jobs.replaced.get(marker.parent.name))

    def _is_made(self, job: Job) -> bool:
        """Whether a job's output is there: also of one that was killed in its last seconds."""
        made = self._made.get(job.job_id)
        if made is not None and made.name == MARKER:
            if job.suspended_s and self._is_new(made):
                self.submission.refuse_suspended(made.parent.name, job)
                return False
            if self._is_recorded(made):
                return True
        return job.state == JobState.COMPLETED or (made is not None and made.exists())

    def failed(
        self, rule: str, wildcards: Mapping[str, str], attempt: int, job_id: int, lost: bool
    ) -> Failed:
        """Whether the cause of a run's failure lets another job end better.

        ``lost``: Slurm has given the id of the job to another one.
        """
        end = sacct.unaccounted(job_id, sacct.GONE) if lost else self._ends.pop(job_id, None)
        if rule == RUN:
            again, line = self.submission.judge(wildcards["run_id"], attempt, job_id, end)
            forgiven = not again and self.jobs.context.forgives(wildcards["run_id"])
            if forgiven:
                Path(wildcards["runs"], wildcards["run_id"], MARKER).touch()
                return Failed(False, line, forgiven=True)
            return Failed(again, line)
        state = JobState.FAILED if end is None else end.state
        log = LOGS / f"rule_{rule}" / joined(*wildcards.values()) / f"{job_id}.log"
        return Failed(False, f"{rule} {wildcards.get('folder', '')}: {state}: see {log}")

    def called_off(self, left: bool) -> None:
        """Note that all jobs are cancelled, or ``left`` to the next Snakemake."""
        (self.submission.leave if left else self.submission.call_off)()


def leave_on_sigterm(executor: Any) -> None:
    """Have SIGTERM end this Snakemake within seconds, its jobs left to the next one.

    Snakemake would wait for the end of every job, for which a batch system or a user that is
    logging off gives it no time. ``executor`` is the class of the executor.
    """

    def leave(number: int, _frame: Any) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)
        executor.leaving.set()
        sys.exit(128 + number)  # Snakemake's scheduler shuts down its executor

    signal.signal(signal.SIGTERM, leave)


def leave_now() -> NoReturn:
    """End this Snakemake and what it started here, as SIGTERM would.

    An exit of Python's would wait for the threads of local jobs. What a process holds of the
    results folder ends with it.
    """
    end_children()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(128 + signal.SIGTERM)
