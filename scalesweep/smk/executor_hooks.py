"""What happens around the Slurm jobs of a campaign (``plugins/``, ``Executor.hooks``)."""

import contextlib
import os
import signal
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from scalesweep.core.errors import UserError
from scalesweep.core.orphans import end_children
from scalesweep.core.record import RECORD
from scalesweep.jobs.submission import Submission
from scalesweep.slurm import commands
from scalesweep.slurm.earlier import LEFT_TO_RUN
from scalesweep.slurm.job_identity import job_comment, job_name, joined, logs_folder
from scalesweep.slurm.job_watch import JobWatch
from scalesweep.slurm.sacct import Job, JobState
from scalesweep.smk.context import CALLS
from scalesweep.smk.job_rules import JobRules

RUN, STAGE = "run", "stage"


@dataclass(frozen=True)
class CampaignHooks:
    """The hooks of the executor, for the jobs of the rules ``run`` and ``stage``."""

    LEFT: ClassVar = LEFT_TO_RUN

    jobs: JobRules
    submission: Submission
    watch: JobWatch = field(default_factory=JobWatch)
    # Run or data set of each job of this Snakemake, and how those ended that are over.
    _made: dict[int, Path] = field(default_factory=dict)
    _ends: dict[int, Job] = field(default_factory=dict)

    @property
    def job_name(self) -> str:
        """The name of every job of the campaign's runs, which the next call knows them by."""
        return job_name(self.submission.campaign.runs_folder)

    @property
    def logs(self) -> Path:
        """Where Slurm's logs lie."""
        return logs_folder(self.submission.campaign.runs_folder).absolute()

    def before(self, rule: str, wildcards: Mapping[str, str], attempt: int) -> None:
        """Leave the job's order. Raises UserError or OSError."""
        if rule == RUN:
            run_id = wildcards["run_id"]
            if why := self.submission.refused.get(run_id):
                raise UserError(why)
            self.submission.in_hand.add(run_id)
            self.jobs.leave_order(run_id, attempt)

    def command(self, rule: str, wildcards: Mapping[str, str]) -> str:
        """What the job runs. What it prints is in Slurm's log and in the rule's."""
        if rule == STAGE:
            return self.jobs.staging_job(wildcards["folder"], wildcards["files"])
        return self.jobs.run_job(wildcards["runs"], wildcards["run_id"])

    def passes(self, said: str, queued: int) -> bool:
        """Whether what sbatch met may pass by itself: Slurm does not answer, or takes no more jobs
        than the ``queued`` ones of this call and others."""
        return commands.is_away(said) or bool(commands.submit_limit(said, queued))

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

    def submitted(self, rule: str, wildcards: Mapping[str, str], job_id: int) -> None:
        """Note what the job is to make."""
        if rule == RUN:
            self._made[job_id] = self._marker(wildcards)
        elif rule == STAGE:
            self._made[job_id] = Path(wildcards["folder"], f"staged-{wildcards['files']}")

    def refused(self, rule: str, wildcards: Mapping[str, str], why: str) -> tuple[bool, str]:
        """Note a job that was not submitted: whether it is over, and a line that says so."""
        if rule != RUN:
            return False, f"staging {wildcards.get('folder', '')}: not submitted: {why}"
        self.submission.refuse(wildcards["run_id"], why)
        return self._over(wildcards), f"{wildcards['run_id']}: not submitted: {why}"

    def ended(self, job_ids: Collection[int]) -> Mapping[int, bool]:
        """Those of these jobs that are over: whether they left what they were to make."""
        ended = self.watch.ended(list(job_ids))
        self._ends.update(ended)
        seen = [self.watch.seen[i].state for i in job_ids if i in self.watch.seen]
        queued, running = seen.count(JobState.PENDING), seen.count(JobState.RUNNING)
        self.submission.in_queue = f", {queued} queued, {running} running" if seen else ""
        return {job_id: self._is_made(job) for job_id, job in ended.items()}

    def _is_made(self, job: Job) -> bool:
        """Whether a job's output is there: also of one that was killed in its last seconds."""
        made = self._made.get(job.job_id)
        if made is not None and made.parent.parent.name == CALLS:
            if (made.parents[2] / made.name / RECORD).exists():
                if job.suspended_s:
                    self.submission.refuse_suspended(made.name, job)
                    return False
                made.parent.mkdir(parents=True, exist_ok=True)
                made.touch()
                return True
            return job.state == JobState.COMPLETED  # a network file system shows it late
        return job.state == JobState.COMPLETED or (made is not None and made.exists())

    def failed(
        self, rule: str, wildcards: Mapping[str, str], attempt: int, job_id: int
    ) -> tuple[bool, str]:
        """Whether a job that failed is over, as no other one may end better, and a line on it."""
        end = self._ends.pop(job_id)
        if rule == RUN:
            again, line = self.submission.judge(wildcards["run_id"], attempt, end)
            called_off = wildcards["run_id"] in self.submission.called_off
            return not again and not called_off and self._over(wildcards), line
        log = self.logs / f"rule_{rule}" / joined(*wildcards.values()) / f"{job_id}.log"
        return False, f"{rule} {wildcards.get('folder', '')}: {end.state}: see {log}"

    def _marker(self, wildcards: Mapping[str, str]) -> Path:
        folder = self.jobs.context.markers_of_call
        return Path(wildcards["runs"], folder, wildcards["run_id"])

    def _over(self, wildcards: Mapping[str, str]) -> bool:
        """Have what waits for a run begin, which failure.json speaks for; False on a full disk."""
        with contextlib.suppress(OSError):
            self._marker(wildcards).parent.mkdir(parents=True, exist_ok=True)
            self._marker(wildcards).touch()
            return True
        return False

    def called_off(self, left: bool) -> None:
        """Note that all jobs are cancelled, or ``left`` to the next Snakemake."""
        if left:
            self.submission.in_hand.clear()
        else:
            self.submission.call_off()


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
