"""Runs as jobs of Slurm: requests, what is in the queue, checks before, retries after.

The executor in ``plugins/`` asks ``Submission`` about each job of the rules ``run`` and ``stage``.
Its jobs are Snakemake's: ``name`` of the rule, ``wildcards_dict``, ``attempt``.
"""

import contextlib
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from scalesweep.compute.job_spec import ORDER, Asked, read_order
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.core import disk_full
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
from scalesweep.jobs.run_spec import data_folder
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.slurm import commands, sacct
from scalesweep.slurm.failure import settle
from scalesweep.slurm.job_identity import (
    job_name,
    logs_folder,
    logs_of,
    stages_into,
    staging_comment,
)
from scalesweep.slurm.job_shape import Shape, of_slurm, staging_shape
from scalesweep.slurm.job_watch import JobWatch
from scalesweep.state.run_state import RunState, set_aside

_log = logging.getLogger(__name__)

RUN = "run"  # the rule


@dataclass
class Submission:
    """A campaign's pending runs on their way into Slurm's queue and out of it."""

    LEFT: ClassVar = commands.LEFT_TO_RUN
    passes: ClassVar = staticmethod(commands.passes)

    campaign: Campaign
    states: Mapping[str, RunState]
    runs: Mapping[str, tuple[Experiment, Run]]
    # Jobs of earlier calls, by the run that they are at work on, and those that make data sets.
    live: dict[str, commands.LiveJob] = field(default_factory=dict)
    staging: list[commands.LiveJob] = field(default_factory=list)
    # Node-hours that retries may still ask for; None without a budget.
    budget_left: float | None = None
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
    # How the jobs ended that are over without what they were to make.
    _ends: dict[int, sacct.Job] = field(default_factory=dict)
    _requests: dict[tuple[str, int], Request] = field(default_factory=dict)
    # Whether Slurm takes a request that leaves out nodes.
    _accepted: dict[Shape, bool] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of every job of the campaign's runs, which the next call knows them by."""
        return job_name(self.campaign.runs_folder)

    @property
    def logs(self) -> Path:
        """Where Slurm's logs lie."""
        return logs_folder(self.campaign.runs_folder).absolute()

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
        data = Path(self.campaign.site.data)
        self.staging = [job for job in queue if stages_into(job.comment, data)]

    def settle_past(self, run_ids: Collection[str]) -> bool:
        """Write failure.json for the runs whose job ended while no Snakemake was there to see.

        True if there was any. What was cancelled has not failed.
        """
        unseen: dict[str, int] = {}
        for run_id, job_id, _ in logs_of(self.campaign.runs_folder, set(run_ids)):
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
                request = replace(request, shape=less) if self._may_be(less) else request
            self._requests[key] = request
        return self._requests[key]

    def _may_be(self, shape: Shape) -> bool:
        """Whether a request that leaves out nodes can be met."""
        key = replace(shape, minutes=0)
        if key not in self._accepted:
            left = self.campaign.site.nodes - len({*node_names(shape.exclude)})
            # Of those that are left none may be of the kind that is asked for.
            self._accepted[key] = left >= shape.nodes and not commands.refusal(
                shape.sbatch_words(), waits_for_nodes=False
            )
        return self._accepted[key]

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
        reading = (data_folder(self.campaign, e.benchmark, run.point)
                   for e, run in map(self.runs.__getitem__, shapes))  # fmt: skip
        staging = staging_shape(self.campaign.site) if any(reading) else None
        if staging and (why := self._against(staging, patience_s)):
            raise UserError(f"{why} (for staging)")
        # Limits may differ from point to point: Slurm that takes the longest of equal requests
        # takes the others.
        taken: set[Shape] = set()
        refused: dict[Shape, str] = {}
        for shape in sorted({*shapes.values()}, key=lambda s: (-s.minutes, -s.nodes)):
            if replace(shape, minutes=0) in taken:
                continue
            if why := self._against(shape, patience_s):
                refused[shape] = why
            else:
                taken.add(replace(shape, minutes=0))
        if refused and not taken:
            raise UserError(next(iter(refused.values())))
        for shape, why in refused.items():
            runs = [run_id for run_id, own in shapes.items() if own == shape]
            self.refused.update(dict.fromkeys(runs, why))
            _log.warning("%s: not submitted: %s", counted(len(runs), "run"), why)

    def _against(self, shape: Shape, patience_s: float) -> str:
        """What Slurm has against a request, with the words to change; empty for nothing."""
        words = shape.sbatch_words()
        why = commands.refusal(words, patience_s)
        where = f"{self.campaign.site.file}: slurm: Slurm refuses sbatch {' '.join(words)}"
        return f"{where}: {why}" if why else ""

    def submit(self, job: Any, script: str) -> tuple[int | None, str]:
        """Hand a job to sbatch once, as ``commands.sbatch``. Raises OSError."""
        words = job.wildcards_dict
        if job.name == RUN:
            shape, folder = self.request(words["run_id"], job.attempt).shape, words["run_id"]
        else:
            shape, folder = staging_shape(self.campaign.site), job.name
        logs = self.logs / folder
        logs.mkdir(parents=True, exist_ok=True)
        log = str(logs).replace("%", "%%") + "/%j.log"
        own = [f"--job-name={self.name}", f"--comment={_comment(job)}", f"--output={log}"]
        return commands.sbatch([*own, "--export=ALL", *shape.sbatch_words()], script)

    def begin(self, run_id: str) -> None:
        """Note a run that is to be submitted. Raises UserError if Slurm does not take its shape."""
        if why := self.refused.get(run_id):
            raise UserError(why)
        self.in_hand.add(run_id)

    def queued(self, job: Any, known: Collection[int], patient: bool) -> int | None:
        """Id of this job in the queue, which sbatch left there without saying so.

        ``known``: ids that sbatch has said. ``patient``: wait for Slurm, which did not answer a
        moment ago. Raises UserError if it does not answer.
        """
        ours = (self.name, _comment(job))
        for live in commands.live_jobs(commands.PATIENCE_S if patient else 0.0):
            if (live.name, live.comment) == ours and live.job_id not in known:
                return live.job_id
        return None

    def ended(self, jobs: Mapping[int, Any]) -> dict[int, bool]:
        """Those of these Slurm jobs that are over: whether they left what they were to make."""
        ends = self.watch.ended(list(jobs))
        seen = [self.watch.seen[i].state for i in jobs if i in self.watch.seen]
        queued, running = seen.count("PENDING"), seen.count("RUNNING")
        self.in_queue = f", {queued} queued, {running} running" if seen else ""
        made = {job_id: self._is_made(jobs[job_id], end) for job_id, end in ends.items()}
        self._ends |= {job_id: end for job_id, end in ends.items() if not made[job_id]}
        return made

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

    def judge(self, job: Any, job_id: int) -> tuple[bool, str]:
        """Whether the run of a job that failed is over, as no other one may end better, and a line
        on it.

        Writes failure.json, and takes what the next job may cost off the budget: to be asked once
        per job that has failed.
        """
        end, words = self._ends.pop(job_id), job.wildcards_dict
        if job.name != RUN:
            log = self.logs / job.name / f"{job_id}.log"
            return False, f"{job.name} {words.get('folder', '')}: {end.state}: see {log}"
        run_id = words["run_id"]
        if self.ending:
            return False, f"{run_id}: job {job_id} cancelled"
        folder, asked = self._folder(run_id), self._asked(run_id)
        try:
            cause = self._settle(run_id, end)
            failure = read_failure(folder) or {}
        except OSError as error:
            if not disk_full.is_full(error):
                raise
            cause, failure = Cause.DISK_FULL, {"detail": disk_full.failure_text(error, folder)}
        if cause is None:
            cause = Cause.KILLED
            failure = {"detail": f"job {job_id} left neither record nor failure"}
        detail = str(failure.get("detail") or "")
        again, why_not = self._another(run_id, job.attempt, cause, asked)
        line = f"{run_id}: {ended_so(cause, detail, asked)}"
        if again is None:
            self.give_up(run_id, cause, detail)
            return True, f"{line}, not tried again: {why_not}" if why_not else line
        left_out = node_names(again.shape.exclude)
        avoided = [node for node in node_names(nodes_at_fault(failure)) if node in left_out]
        retry, most = tried_again(cause, again, avoided), of_slurm(self.campaign.site).max_attempts
        return False, f"{line}, {retry} (job {job.attempt + 1} of {most})"

    def _another(
        self, run_id: str, attempt: int, cause: str, asked: Asked
    ) -> tuple[Request | None, str]:
        """What the next job of a run asks for; None if it has had its last, and why where that is
        not a matter of the failure."""
        experiment, _ = self.runs[run_id]
        if attempt >= of_slurm(self.campaign.site).max_attempts:
            return None, ""
        if not may_mend(self.campaign, experiment, cause, asked, attempt):
            return None, ""
        request = self.request(run_id, attempt + 1)
        if self.budget_left is not None:
            cost = request.shape.node_hours
            if cost > self.budget_left:
                left = max(self.budget_left, 0.0)
                return None, (
                    f"the budget has {left:.3g} node-hours left, the next job may take {cost:.3g}"
                )
            self.budget_left -= cost
        return request, ""

    def call_off(self, job_ids: Collection[int], left: bool) -> None:
        """Cancel these jobs, the last of this Snakemake; or all are ``left`` to the next one."""
        if left:
            self.in_hand.clear()
            return
        self.ending = True
        if job_ids:
            with contextlib.suppress(UserError):  # it does not answer: they stay
                commands.ask("scancel", "--quiet", *map(str, job_ids))

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
    words = job.wildcards_dict
    return str(words["run_id"]) if job.name == RUN else staging_comment(Path(words["folder"]))
