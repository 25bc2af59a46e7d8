"""Submitting runs: their requests, what is still in the queue, checks before, retries after."""

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from scalesweep.compute.job_spec import ORDER, Asked, read_order
from scalesweep.compute.pack import LAUNCHER_LOG, ended_in, is_over, nodes_of, was_begun
from scalesweep.config.campaign import Campaign, Experiment
from scalesweep.config.repeats import Run
from scalesweep.core import disk_full
from scalesweep.core.errors import UserError
from scalesweep.core.record import RECORD, read_failure
from scalesweep.planning.job_requests import (
    Request,
    ended_so,
    may_mend,
    request_for,
    tried_again,
)
from scalesweep.planning.packing import Allocation, allocations
from scalesweep.planning.run_state import RunState
from scalesweep.planning.runtime_estimates import Estimates
from scalesweep.slurm import commands, sacct
from scalesweep.slurm.failure import NOT_SUBMITTED, leave_refusal, settle
from scalesweep.slurm.job_file import (
    SubmittedJob,
    forget_submitted,
    note_submitted,
    submitted_jobs,
)
from scalesweep.slurm.job_identity import job_name, joined, pack_of, runs_of, stages_into
from scalesweep.slurm.job_shape import Shape, of_slurm, staging_shape
from scalesweep.slurm.job_table import job_ids

# What became of a run whose job ended before its turn: it is not a failure of its own.
NOT_BEGUN = "NOT_BEGUN"
BOOKS_S = 10.0  # how long Slurm's accounting may take to have all of a job that has ended


LOGS = Path("results", "logs", "slurm")  # scalesweep-logdir in profiles/slurm


@dataclass
class Submission:
    """A campaign's pending runs on their way into Slurm's queue and out of it."""

    campaign: Campaign
    states: Mapping[str, RunState]
    runs: Mapping[str, tuple[Experiment, Run]]
    live: dict[str, commands.LiveJob] = field(default_factory=dict)
    staging: list[commands.LiveJob] = field(default_factory=list)
    # Node-hours that retries may still ask for; None without a budget.
    budget_left: float | None = None
    # Why the queue cannot be read: then nothing may be submitted.
    blind: str = ""
    # Runs of this Snakemake that are to be submitted, are in the queue, or are tried again.
    in_hand: set[str] = field(default_factory=set)
    # Runs whose last job of this Snakemake failed, or was not submitted: cause and detail.
    given_up: dict[str, tuple[str, str]] = field(default_factory=dict)
    # Whether no more runs are to be started (stop_after).
    stopped: bool = False
    _requests: dict[tuple[str, int], Request] = field(default_factory=dict)
    _over: set[tuple[str, int]] = field(default_factory=set)

    @cached_property
    def estimates(self) -> Estimates:
        """Expected times, from the runs that have finished."""
        return Estimates(self.campaign, self.states)

    @cached_property
    def default_account(self) -> str:
        """Named to the plugin where the site names none: it would guess one, job by job."""
        return commands.default_account()

    def grow(
        self,
        campaign: Campaign,
        states: Mapping[str, RunState],
        runs: Mapping[str, tuple[Experiment, Run]],
        new: Iterable[str],
    ) -> None:
        """Take over a plan with further runs, of which those that are ``new`` are to be submitted;
        what they may cost is taken off what retries may ask for."""
        self.campaign, self.states, self.runs = campaign, states, runs
        self.__dict__.pop("estimates", None)
        if self.budget_left is not None:
            jobs = self.allocations(dict.fromkeys(new, 1))
            self.budget_left -= sum(job.shape.node_hours for job in jobs)

    def find_live(self, patience_s: float = 0.0) -> None:
        """Note which pending runs have a job in the queue, from a Snakemake that is gone.

        A job is known by its id in job.json, or, where none was noted (Snakemake was killed in
        between), by its name and comment. Raises UserError if the queue cannot be looked at; while
        Slurm does not answer, it is asked again for ``patience_s``.
        """
        queue = commands.live_jobs(patience_s)
        runs_folder = self.campaign.runs_folder
        name = job_name(runs_folder)
        by_id = {job.job_id: job for job in queue}
        owners = {job.job_id: runs_of(job.comment, runs_folder, self.runs) for job in queue}
        by_run = {i: job for job in queue if job.name == name for i in owners[job.job_id]}
        self.live.clear()
        for run_id in self.runs if queue else ():
            if self.states[run_id].settled:
                continue
            noted = [job.job_id for job in self._noted(run_id) if job.job_id in by_id]
            # A slurmctld that has lost its state gives ids again.
            mine = [by_id[i] for i in noted if not owners[i] or run_id in owners[i]]
            job = mine[-1] if mine else by_run.get(run_id)
            if job is None or (pack_of(job.comment) and self._is_over(run_id, job.job_id)):
                continue
            self.live[run_id] = job
        data = Path(self.campaign.site.data)
        self.staging = [job for job in queue if stages_into(job.comment, data)]

    def note_live(self) -> None:
        """Note the live jobs that a Snakemake was killed before it could note. Raises OSError."""
        for run_id, job in self.live.items():
            if job.job_id not in {noted.job_id for noted in self._noted(run_id)}:
                pack = pack_of(job.comment)
                note_submitted(self._folder(run_id), SubmittedJob(job.job_id, 1, "", pack))

    def settle_past(self, run_ids: Iterable[str]) -> bool:
        """Write failure.json for the runs whose job ended while no Snakemake was there to see.

        True if there was any.
        """
        last: dict[str, int] = {}
        for job_id, owners in job_ids(self.campaign.runs_folder, run_ids).items():
            for run_id in owners:
                known = (read_failure(self._folder(run_id)) or {}).get("job_id") or 0
                if run_id not in self.live and job_id > max(known, last.get(run_id, 0)):
                    last[run_id] = job_id
        jobs = _ended(sorted(set(last.values())))
        for run_id, job_id in last.items():
            # A completed job has left a record; that it is gone is another story.
            if job_id in jobs and jobs[job_id].state != "COMPLETED":
                with disk_full.may_be():  # then a later call settles it
                    self._settle(run_id, jobs[job_id])
        return bool(jobs)

    def settle_now(self, run_id: str) -> str | None:
        """Cause of the failure of the run's last job, kept in failure.json; None if it is done."""
        ids = job_ids(self.campaign.runs_folder, [run_id])
        return self._settle_job(run_id, max(ids)) if ids else None

    def _settle_job(self, run_id: str, job_id: int) -> str | None:
        """The same for the job with this id."""
        if (self._folder(run_id) / RECORD).exists():
            return None
        jobs = _ended([job_id])
        if not jobs and self._pack(run_id, job_id) and ended_in(self._folder(run_id), job_id):
            with contextlib.suppress(UserError):  # the job goes on without this run
                jobs = sacct.query([job_id])
        return self._settle(run_id, jobs[job_id]) if jobs else self._left(run_id, job_id)

    def _left(self, run_id: str, job_id: int) -> str | None:
        """The cause that the launcher has left, which must do where there is no accounting."""
        failure = read_failure(self._folder(run_id)) or {}
        return str(failure["cause"]) if failure.get("job_id") == job_id else None

    def _settle(self, run_id: str, job: sacct.Job) -> str | None:
        folder, pack = self._folder(run_id), self._pack(run_id, job.job_id)
        if pack and not self._was_begun(run_id, job.job_id, pack):
            with disk_full.may_be():
                forget_submitted(folder, job.job_id)
            return NOT_BEGUN
        noted = {one.job_id: one.log for one in self._noted(run_id)}
        # Where a disk was too full to note it.
        name = joined(str(self.campaign.runs_folder), run_id)
        log = Path(noted.get(job.job_id) or LOGS / "rule_run" / name / f"{job.job_id}.log")
        log = folder / LAUNCHER_LOG if pack else log
        nodes = nodes_of(self.campaign.runs_folder, pack, run_id) if pack else ""
        return settle(folder, run_id, job, self._asked(run_id), log, bool(pack), nodes)

    def _pack(self, run_id: str, job_id: int) -> str:
        """Name of the pack that a job of a run is of; empty if it has no other run."""
        return next((job.pack for job in self._noted(run_id) if job.job_id == job_id), "")

    def _was_begun(self, run_id: str, job_id: int, pack: str) -> bool:
        begun = was_begun(self.campaign.runs_folder, pack, run_id)
        return begun or ended_in(self._folder(run_id), job_id)

    def _is_over(self, run_id: str, job_id: int) -> bool:
        """Whether a run has ended in a job that goes on with others."""
        if (run_id, job_id) not in self._over and is_over(self._folder(run_id), job_id):
            self._over.add((run_id, job_id))  # no record is read twice
        return (run_id, job_id) in self._over

    def allocations(self, attempts: Mapping[str, int]) -> list[Allocation]:
        """The jobs of these runs, each at this attempt: several in one where the site says so."""
        shapes = {run_id: self.request(run_id, n).shape for run_id, n in attempts.items()}
        return allocations(self.campaign, shapes, self.estimates)

    def request(self, run_id: str, attempt: int) -> Request:
        """What the run's job asks for at Snakemake's ``attempt`` (1, 2, ...)."""
        key = (run_id, attempt)
        if key not in self._requests:
            experiment, run = self.runs[run_id]
            failure = read_failure(self._folder(run_id))
            self._requests[key] = request_for(
                self.campaign, experiment, run, self.estimates, failure
            )
        return self._requests[key]

    def check(self, run_ids: Iterable[str], patience_s: float = 0.0) -> None:
        """Raise UserError if Slurm would not take the jobs; asks it once per shape.

        While it does not answer, for ``patience_s``.
        """
        site = self.campaign.site
        where = f"{site.file}: slurm"
        commands.check_commands()
        if self.blind:
            raise UserError(self.blind)
        jobs = self.allocations(dict.fromkeys(sorted(run_ids), 1))
        shapes = {job.shape: job.run_ids[0] for job in jobs}
        if not shapes:
            return
        longest = max(shape.minutes for shape in shapes)
        constraints = {shape.constraint for shape in shapes}
        largest = max(shape.nodes for shape in shapes)
        commands.check_names(
            of_slurm(site).partition, constraints, longest, where, patience_s, largest
        )
        # Limits may differ from point to point: the longest of equal requests is checked.
        longest_of: dict[Shape, Shape] = {}
        for shape in (*shapes, staging_shape(site)):
            key = replace(shape, minutes=0)
            longest_of[key] = max(shape, longest_of.get(key, shape), key=lambda one: one.minutes)
        for shape in longest_of.values():
            words = shape.sbatch_words()
            if why := commands.refusal(words, patience_s):
                raise UserError(
                    f"{where}: Slurm refuses sbatch {' '.join(words)}: {why} "
                    f"(for {shapes.get(shape, 'staging')})"
                )

    def unbegun(self, run_id: str, job_id: int, job: sacct.Job | None) -> tuple[bool, str] | None:
        """Whether a run that its job, which has ended, did not come to is submitted again, and a
        line on it; None if the job has begun it.

        The job that takes its place is taken off the budget.
        """
        pack = self._pack(run_id, job_id)
        if not pack or self._was_begun(run_id, job_id, pack):
            return None
        with disk_full.may_be():
            forget_submitted(self._folder(run_id), job_id)
        state = sacct.GONE if job is None else job.state
        if self.stopped:
            self.in_hand.discard(run_id)  # it stays as it was
            return False, f"{run_id}: not begun in job {job_id} (stop_after)"
        cost = self.request(run_id, 1).shape.node_hours
        why = f"job {job_id} ended before this run began ({state})"
        if state not in ("CANCELLED", "DEADLINE"):
            if self.budget_left is None or cost <= self.budget_left:
                self.budget_left = None if self.budget_left is None else self.budget_left - cost
                return True, f"{run_id}: {why}, submitting it again"
            why += "; budget_node_hours allows no other"
        self.give_up(run_id, NOT_BEGUN, why)
        return False, f"{run_id}: {NOT_BEGUN}: {why}"

    def judge(
        self, run_id: str, attempt: int, job_id: int, job: sacct.Job | None = None
    ) -> tuple[bool, str]:
        """Whether a run whose job number ``attempt`` has failed is worth another, and a line on it.

        ``job`` is what the accounting has of the job; None: it is asked. Writes failure.json, and
        takes what the next job may cost off the budget: to be asked once per job that has failed.
        """
        if self.stopped and job is not None and job.state == "CANCELLED" and job.started is None:
            self.in_hand.discard(run_id)  # by us; it stays as it was
            with disk_full.may_be():
                forget_submitted(self._folder(run_id), job_id)
            return False, f"{run_id}: job {job_id} taken out of the queue (stop_after)"
        folder = self._folder(run_id)
        asked = self._asked(run_id)
        try:
            cause = self._settle_job(run_id, job_id) if job is None else self._settle(run_id, job)
        except OSError as error:
            if not disk_full.is_full(error):
                raise
            cause, failure = disk_full.CAUSE, {"detail": disk_full.told(error, folder)}
        else:
            failure = read_failure(folder) or {}
        if cause is None:
            cause, failure = "KILLED", {"detail": f"job {job_id} left neither record nor failure"}
        detail = str(failure.get("detail") or "")
        again = self._another(run_id, attempt, cause, asked)
        line = f"{run_id}: {ended_so(cause, detail, asked)}"
        if again is None:
            self.give_up(run_id, cause, detail)
            return False, line
        most = of_slurm(self.campaign.site).max_attempts
        return True, f"{line}, {tried_again(cause, again)} (job {attempt + 1} of {most})"

    def _another(self, run_id: str, attempt: int, cause: str, asked: Asked) -> Request | None:
        """What the next job of a run asks for; None if it has had its last."""
        experiment, _ = self.runs[run_id]
        if self.stopped or attempt >= of_slurm(self.campaign.site).max_attempts:
            return None
        if not may_mend(self.campaign, experiment, cause, asked, attempt):
            return None
        request = self.request(run_id, attempt + 1)
        if self.budget_left is not None:
            cost = request.shape.node_hours
            if cost > self.budget_left:
                return None
            self.budget_left -= cost
        return request

    def give_up(self, run_id: str, cause: str, detail: str) -> None:
        """Note that this Snakemake does not try a run again."""
        self.in_hand.discard(run_id)
        self.given_up[run_id] = cause, detail

    def stop(self, job_ids: Iterable[int]) -> None:
        """Start no more runs; those of these jobs that are pending are cancelled."""
        self.stopped = True
        if ids := list(map(str, job_ids)):
            with contextlib.suppress(UserError):  # then they run
                commands.ask("scancel", "--quiet", "--state=PENDING", *ids)

    def refuse(self, run_id: str, why: str) -> None:
        """Note a run that was not submitted: where nothing is known of it yet, in failure.json."""
        if self.stopped:
            self.in_hand.discard(run_id)
            return
        self.give_up(run_id, NOT_SUBMITTED, why)
        with disk_full.may_be():  # the call's summary names the run
            leave_refusal(self._folder(run_id), run_id, why)

    def _folder(self, run_id: str) -> Path:
        return self.campaign.runs_folder / run_id

    def _noted(self, run_id: str) -> list[SubmittedJob]:
        return submitted_jobs(self._folder(run_id))

    def _asked(self, run_id: str) -> Asked:
        try:
            asked = read_order(self._folder(run_id) / ORDER)["asked"]
        except UserError:
            asked = None
        return asked or {"nodes": None, "minutes": None, "limit_s": None, "mem_mb": None}


def _ended(job_ids: Sequence[int]) -> dict[int, sacct.Job]:
    """Those of the jobs that have ended, as the accounting has them; none without one.

    Waits a little for the books of a job that has just ended: its cause may hang on them.
    """
    last = time.monotonic() + BOOKS_S
    while job_ids:
        try:
            jobs = sacct.query(job_ids)
        except UserError:
            return {}
        ended = {job_id: job for job_id, job in jobs.items() if sacct.finished(job)}
        if all(map(sacct.settled, ended.values())) or time.monotonic() > last:
            return ended
        time.sleep(1)
    return {}
