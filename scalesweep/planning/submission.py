"""Submitting runs: their requests, what is still in the queue, checks before, retries after."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from scalesweep.compute.job_spec import ORDER, Asked, read_order
from scalesweep.config.campaign import Campaign, Experiment, Run
from scalesweep.core.errors import UserError
from scalesweep.core.record import RECORD, read_failure
from scalesweep.planning.job_requests import Request, may_mend, request_for
from scalesweep.planning.run_state import RunState
from scalesweep.planning.runtime_estimates import Estimates
from scalesweep.slurm import commands, sacct
from scalesweep.slurm.failure import settle
from scalesweep.slurm.job_shape import Shape, of_slurm, staging_shape
from scalesweep.slurm.job_table import job_ids

LOGS = Path("results", "logs", "slurm")  # slurm-logdir in profiles/slurm
BOOKS_S = 10.0  # how long Slurm's accounting may take to have all of a job that has ended


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
    # Why nobody knows what is in the queue: then nothing may be submitted.
    blind: str = ""
    _requests: dict[tuple[str, int], Request] = field(default_factory=dict)

    @cached_property
    def estimates(self) -> Estimates:
        """Expected times, from the runs that have finished."""
        return Estimates(self.campaign, self.states)

    @cached_property
    def default_account(self) -> str:
        """Named to the plugin where the site names none: it would guess one, job by job."""
        return commands.default_account()

    def find_live(self) -> None:
        """Note which pending runs have a job in the queue, from a Snakemake that is gone.

        Raises UserError if the queue cannot be looked at.
        """
        jobs = {job.comment: job for job in commands.live_jobs(Path.cwd())}
        self.live.clear()
        for run_id in self.runs:
            job = jobs.get(commands.job_comment("run", self._runs, run_id))
            if job is not None and not self.states[run_id].settled:
                self.live[run_id] = job
        self.staging = [job for job in jobs.values() if job.comment.startswith("rule_stage_")]

    def settle_past(self, run_ids: Iterable[str]) -> bool:
        """Write failure.json for the runs whose job ended while no Snakemake was there to see.

        True if there was any.
        """
        last: dict[str, int] = {}
        for job_id, run_id in job_ids(LOGS, self._runs, run_ids).items():
            told = (read_failure(self._folder(run_id)) or {}).get("job_id") or 0
            if run_id not in self.live and job_id > max(told, last.get(run_id, 0)):
                last[run_id] = job_id
        jobs = _ended(list(last.values()))
        for run_id, job_id in last.items():
            # A completed job has left a record; that it is gone is another story.
            if job_id in jobs and jobs[job_id].state != "COMPLETED":
                self._settle(run_id, jobs[job_id])
        return bool(jobs)

    def settle_now(self, run_id: str) -> str | None:
        """Cause of the failure of the run's last job, kept in failure.json; None if it is done."""
        folder = self._folder(run_id)
        ids = job_ids(LOGS, self._runs, [run_id])
        if not ids or (folder / RECORD).exists():
            return None
        jobs = _ended([max(ids)])
        if jobs:
            return self._settle(run_id, jobs[max(ids)])
        # No accounting here: what the launcher has left must do.
        failure = read_failure(folder) or {}
        return str(failure["cause"]) if failure.get("job_id") == max(ids) else None

    def _settle(self, run_id: str, job: sacct.Job) -> str | None:
        log = LOGS / "rule_run" / commands.joined(self._runs, run_id) / f"{job.job_id}.log"
        return settle(self._folder(run_id), run_id, job, self._asked(run_id), log)

    @property
    def _runs(self) -> str:
        return str(self.campaign.runs_folder)

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

    def check(self, run_ids: Iterable[str]) -> None:
        """Raise UserError if Slurm would not take the jobs; asks it once per shape."""
        site = self.campaign.site
        where = f"config/sites/{site.name}.yaml: slurm"
        commands.check_commands()
        if self.blind:
            raise UserError(self.blind)
        shapes = {self.request(run_id, 1).shape: run_id for run_id in sorted(run_ids)}
        if not shapes:
            return
        longest = max(shape.minutes for shape in shapes)
        constraints = {shape.constraint for shape in shapes}
        commands.check_names(of_slurm(site).partition, constraints, longest, where)
        # Limits may differ from point to point: the longest of like requests stands for all.
        alike: dict[Shape, Shape] = {}
        for shape in (*shapes, staging_shape(site)):
            key = replace(shape, minutes=0)
            alike[key] = max(shape, alike.get(key, shape), key=lambda one: one.minutes)
        for shape in alike.values():
            words = shape.sbatch_words()
            if why := commands.refusal(words):
                raise UserError(
                    f"{where}: Slurm refuses sbatch {' '.join(words)}: {why} "
                    f"(for {shapes.get(shape, 'staging')})"
                )

    def restarts(self, run_id: str, attempt: int) -> int:
        """How often Snakemake may restart a run whose job number ``attempt`` has just failed."""
        experiment, _ = self.runs[run_id]
        slurm = of_slurm(self.campaign.site)
        asked = self._asked(run_id)
        cause = self.settle_now(run_id)
        if cause is None or attempt >= slurm.max_attempts:
            return 0
        if not may_mend(self.campaign, experiment, cause, asked, attempt):
            return 0
        if self.budget_left is not None:
            cost = self.request(run_id, attempt + 1).shape.node_hours
            if cost > self.budget_left:
                return 0
            self.budget_left -= cost
        return attempt

    def _folder(self, run_id: str) -> Path:
        return self.campaign.runs_folder / run_id

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
