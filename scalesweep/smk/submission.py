"""Runs as jobs of Slurm: requests, what is in the queue, checks before, retries after.

The executor in ``plugins/`` asks ``Submission`` about each job of the rules ``run`` and ``stage``.
Its jobs are Snakemake's: ``name`` of the rule, ``wildcards_dict``, ``attempt``.
"""

import contextlib
import logging
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from scalesweep.compute.job_spec import ORDER, Asked, read_order
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.core.causes import Cause
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted
from scalesweep.core.host import node_names
from scalesweep.core.record import RECORD, read_failure, write_failure
from scalesweep.jobs.job_requests import (
    Request,
    ended_so,
    may_mend,
    nodes_at_fault,
    request_for,
    tried_again,
)
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.slurm import commands, sacct
from scalesweep.slurm.job_end import JobWatch, settle
from scalesweep.slurm.job_shape import Shape, of_slurm, staging_shape
from scalesweep.state.run_state import RunState, set_aside

_log = logging.getLogger(__name__)

RUN = "run"  # the rule
AGAIN_S = 10.0  # between two submissions of a job


@dataclass
class Submission:
    """A campaign's pending runs on their way into Slurm's queue and out of it."""

    LEFT: ClassVar = commands.LEFT_TO_RUN

    campaign: Campaign
    states: Mapping[str, RunState]
    runs: Mapping[str, tuple[Experiment, Run]]
    # Jobs of earlier calls, by the run that they are at work on, and those that make data sets.
    live: dict[str, commands.LiveJob] = field(default_factory=dict)
    staging: list[commands.LiveJob] = field(default_factory=list)
    # Why the queue cannot be read: then nothing may be submitted.
    blind: str = ""
    # Runs of this Snakemake that are to be submitted, are in the queue, or are tried again.
    in_hand: set[str] = field(default_factory=set)
    # Whether this Snakemake was interrupted: the runs in hand are cancelled, none of them failed.
    ending: bool = False
    # Runs whose last job of this Snakemake failed, or was not submitted: cause and detail.
    given_up: dict[str, tuple[str, str]] = field(default_factory=dict)
    # How many jobs of this Snakemake are in the queue, in words.
    in_queue: str = ""
    # Runs whose request Slurm does not take, and its words.
    refused: dict[str, str] = field(default_factory=dict)
    watch: JobWatch = field(default_factory=JobWatch)
    _requests: dict[tuple[str, int], Request] = field(default_factory=dict)
    # Comments of the jobs that this Snakemake has handed to sbatch, and ids that it has said.
    _sent: set[str] = field(default_factory=set)
    _taken: set[int] = field(default_factory=set)
    # What sbatch was last said to have against a job.
    _said: str = ""

    @property
    def name(self) -> str:
        """The name of every job of the campaign's runs, which the next call knows them by."""
        return commands.job_name(self.campaign.runs_folder)

    @property
    def logs(self) -> Path:
        """Where Slurm's logs lie."""
        return commands.logs_folder(self.campaign.runs_folder).absolute()

    @cached_property
    def estimates(self) -> Estimates:
        """Expected times, from the runs that have finished."""
        return Estimates(self.campaign, self.states)

    def find_live(self, patience_s: float = 0.0) -> None:
        """Note which pending runs have a job in the queue, by its name and comment: of a Snakemake
        that is gone.

        Raises UserError if the queue cannot be looked at; while Slurm does not answer, it is asked
        again for ``patience_s``.
        """
        queue = commands.live_jobs(patience_s)
        mine = {job.comment: job for job in queue if job.name == self.name}
        self.live = {i: mine[i] for i in self.runs if i in mine and not self.states[i].settled}
        staging = f"{commands.staging_comment(Path(self.campaign.site.data))}/"
        self.staging = [job for job in queue if job.comment.startswith(staging)]

    def settle_past(self) -> bool:
        """Write failure.json for the runs whose job ended while no Snakemake was there to see.

        True if there was any. What was cancelled has not failed.
        """
        unseen: dict[str, int] = {}
        left = {run_id for run_id in self.runs if not self.states[run_id].settled}
        for run_id, job_id, _ in commands.logs_of(self.campaign.runs_folder, left):
            known = (read_failure(self._folder(run_id)) or {}).get("job_id") or 0
            if run_id not in self.live and job_id > max(known, unseen.get(run_id, 0)):
                unseen[run_id] = job_id
        try:
            jobs = sacct.query(sorted(unseen.values()))
        except UserError:
            return False
        for run_id, job_id in unseen.items():
            # A completed job has left a record; that it is gone is another story.
            job = jobs.get(job_id)
            as_asked = ("COMPLETED", "CANCELLED")
            if job and sacct.finished(job) and job.state not in as_asked:
                with contextlib.suppress(OSError):  # a full disk: a later call settles it
                    self._settle(run_id, job)
        return bool(jobs)

    def _settle(self, run_id: str, job: sacct.Job) -> str | None:
        """Cause of the failure of the run's last job, kept in failure.json; None if it is done."""
        log = self.logs / run_id / f"{job.job_id}.log"
        return settle(self._folder(run_id), job, self._asked(run_id), log)

    def request(self, run_id: str, attempt: int) -> Request:
        """What the run's job asks for at Snakemake's ``attempt`` (1, 2, ...).

        If its last job failed for a node, its nodes are left out, as long as Slurm can spare them.
        """
        key = (run_id, attempt)
        if key not in self._requests:
            experiment, run = self.runs[run_id]
            failure = read_failure(self._folder(run_id))
            request = request_for(self.campaign, experiment, run, self.estimates, failure)
            shape = request.shape
            if lost := nodes_at_fault(failure):
                less = replace(shape, exclude=",".join(filter(None, (shape.exclude, lost))))
                # Of those that are left none may be of the kind that is asked for.
                refused = commands.refusal(less.sbatch_words(), waits_for_nodes=False)
                request = request if refused else replace(request, shape=less)
            self._requests[key] = request
        return self._requests[key]

    def check(self, run_ids: Iterable[str], patience_s: float = 0.0) -> None:
        """Ask Slurm once per shape whether it would take the jobs, for ``patience_s`` while it does
        not answer.

        Runs of a shape that it refuses are ``refused``, and a line says so. Raises UserError if it
        refuses all.
        """
        commands.check_commands()
        if self.blind:
            raise UserError(self.blind)
        shapes = {run_id: self.request(run_id, 1).shape for run_id in sorted(run_ids)}
        # Limits may differ from point to point: Slurm that takes the longest of equal requests
        # takes the others.
        taken: set[Shape] = set()
        refused: dict[Shape, str] = {}
        for shape in sorted({*shapes.values()}, key=lambda s: (-s.minutes, -s.nodes)):
            if replace(shape, minutes=0) in taken:
                continue
            words = shape.sbatch_words()
            if why := commands.refusal(words, patience_s):
                where = f"{self.campaign.site.file}: slurm: Slurm refuses sbatch"
                refused[shape] = f"{where} {' '.join(words)}: {why}"
            else:
                taken.add(replace(shape, minutes=0))
        if refused and not taken:
            raise UserError(next(iter(refused.values())))
        for shape, why in refused.items():
            runs = [run_id for run_id, own in shapes.items() if own == shape]
            self.refused.update(dict.fromkeys(runs, why))
            _log.warning("%s: not submitted: %s", counted(len(runs), "run"), why)

    def submit(self, job: Any, script: str) -> tuple[int | None, str]:
        """Hand a job to sbatch: its id, or None and why Slurm does not take it.

        While Slurm does not answer, or takes no more jobs of this user, the job is submitted again,
        unless it is in the queue in spite of that. Raises OSError; UserError if Slurm is away for
        minutes.
        """
        words = job.wildcards_dict
        if job.name == RUN:
            shape, folder = self.request(words["run_id"], job.attempt).shape, words["run_id"]
        else:
            shape, folder = staging_shape(self.campaign.site), job.name
        logs = self.logs / folder
        logs.mkdir(parents=True, exist_ok=True)
        log = str(logs).replace("%", "%%") + "/%j.log"
        own = [f"--job-name={self.name}", f"--comment={_comment(job)}", f"--output={log}"]
        request = [*own, "--export=ALL", *shape.sbatch_words()]
        self._sent.add(_comment(job))
        job_id, said = commands.sbatch(request, script)
        while job_id is None and commands.passes(said):
            if (why := commands.last_line(said)) != self._said:
                self._said = why
                _log.warning("sbatch: %s; submitting again until Slurm takes it", why)
            time.sleep(AGAIN_S)
            queue = commands.live_jobs(commands.PATIENCE_S)
            there = {live.job_id for live in queue if self._is_of(live, {_comment(job)})}
            job_id = max(there - self._taken, default=None)
            if job_id is None:
                job_id, said = commands.sbatch(request, script)
        self._taken |= {job_id} if job_id else set()
        return job_id, "" if job_id else commands.last_line(said)

    def _is_of(self, job: commands.LiveJob, comments: Collection[str]) -> bool:
        return job.name == self.name and job.comment in comments

    def begin(self, run_id: str) -> None:
        """Note a run that is to be submitted. Raises UserError if Slurm does not take its shape."""
        if why := self.refused.get(run_id):
            raise UserError(why)
        self.in_hand.add(run_id)

    def ended(self, jobs: Mapping[int, Any]) -> dict[int, tuple[bool, str]]:
        """Those of these Slurm jobs that are over: whether what waits for them may begin, and a
        line on those that failed."""
        ends = self.watch.ended(list(jobs))
        seen = [self.watch.seen[i].state for i in jobs if i in self.watch.seen]
        queued, running = seen.count("PENDING"), seen.count("RUNNING")
        self.in_queue = f", {queued} queued, {running} running" if queued + running else ""
        return {
            i: (True, "") if self._is_made(jobs[i], end) else self.judge(jobs[i], end)
            for i, end in ends.items()
        }

    def _is_made(self, job: Any, end: sacct.Job) -> bool:
        """Whether a job's output is there: also of one that was killed in its last seconds.

        A record of a suspended job is set aside: the accounting knows what its launcher did not
        notice. Raises OSError.
        """
        # That a completed job has left nothing may be a network file system, which shows it late.
        if job.name != RUN:
            marker = Path(job.wildcards_dict["folder"], f"staged-{job.wildcards_dict['files']}")
            return end.state == "COMPLETED" or marker.exists()
        folder = self._folder(job.wildcards_dict["run_id"])
        if not (folder / RECORD).exists():
            return end.state == "COMPLETED"
        if end.suspended_s:
            why = f"job {end.job_id} was suspended for {end.suspended_s} s: its times are not the "
            more = {"job_id": end.job_id, "ended": end.ended}
            set_aside(folder, f"{why}program's", Cause.SUSPENDED, more)
        return not end.suspended_s

    def judge(self, job: Any, end: sacct.Job) -> tuple[bool, str]:
        """Whether the run of a job that failed is over, as no other one may end better, and a line
        on it. Writes failure.json. Raises OSError."""
        job_id, words = end.job_id, job.wildcards_dict
        if job.name != RUN:
            log = self.logs / job.name / f"{job_id}.log"
            return False, f"{job.name} {words.get('folder', '')}: {end.state}: see {log}"
        run_id = words["run_id"]
        if self.ending:
            return False, f"{run_id}: job {job_id} cancelled"
        asked, cause = self._asked(run_id), self._settle(run_id, end)
        if cause is None:  # its record has shown up meanwhile
            return True, ""
        failure = read_failure(self._folder(run_id)) or {}
        detail = str(failure.get("detail") or "")
        line = f"{run_id}: {ended_so(cause, detail, asked)}"
        most = of_slurm(self.campaign.site).max_attempts
        experiment, _ = self.runs[run_id]
        may = may_mend(self.campaign, experiment, cause, asked, job.attempt)
        if job.attempt >= most or not may:
            self.give_up(run_id, cause, detail)
            return True, line
        again = self.request(run_id, job.attempt + 1)
        left_out = node_names(again.shape.exclude)
        avoided = [node for node in node_names(nodes_at_fault(failure)) if node in left_out]
        retry = tried_again(cause, again, avoided)
        return False, f"{line}, {retry} (job {job.attempt + 1} of {most})"

    def call_off(self, job_ids: Collection[int], left: bool) -> None:
        """Cancel the jobs of this Snakemake, also one that sbatch was ended over; or all are
        ``left`` to the next one."""
        if left:
            self.in_hand.clear()
            return
        self.ending = True
        ids = set(map(str, job_ids))
        with contextlib.suppress(UserError):  # a queue that does not answer
            jobs = [job for job in commands.live_jobs() if self._is_of(job, self._sent)]
            ids |= {str(job.job_id) for job in jobs}
        try:
            if ids:
                commands.ask("scancel", "--quiet", *sorted(ids))
        except UserError as error:
            _log.warning("%s; `scalesweep cancel` cancels what stays in the queue", error)

    def give_up(self, run_id: str, cause: str, detail: str) -> None:
        """Note that this Snakemake does not try a run again."""
        self.in_hand.discard(run_id)
        self.given_up[run_id] = cause, detail

    def refuse(self, job: Any, why: str) -> tuple[bool, str]:
        """Note a job that was not submitted; as ``judge``."""
        words = job.wildcards_dict
        if job.name != RUN:
            return False, f"staging {words.get('folder', '')}: not submitted: {why}"
        self.give_up(words["run_id"], Cause.NOT_SUBMITTED, why)
        folder = self._folder(words["run_id"])
        failed = (read_failure(folder) or {}).get("cause", Cause.NOT_SUBMITTED)
        # The next request starts from the failure of a job that ran.
        if not (folder / RECORD).exists() and failed == Cause.NOT_SUBMITTED:
            with contextlib.suppress(OSError):  # a full disk; the call's summary names the run
                write_failure(folder, {"cause": Cause.NOT_SUBMITTED, "detail": why})
        return True, f"{words['run_id']}: not submitted: {why}"

    def _folder(self, run_id: str) -> Path:
        return self.campaign.runs_folder / run_id

    def _asked(self, run_id: str) -> Asked:
        try:
            asked = read_order(self._folder(run_id) / ORDER)["asked"]
        except UserError:
            asked = None
        return asked or {"nodes": None, "minutes": None, "limit_s": None, "mem_mb": None}


def _comment(job: Any) -> str:
    """By which a job is known in the queue."""
    if job.name == RUN:
        return str(job.wildcards_dict["run_id"])
    return commands.staging_comment(Path(job.wildcards_dict["folder"]))
