"""What is looked at before any job starts: programs, other Snakemakes, Slurm, the budget."""

import logging
import os
import shutil
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property

from scalesweep.core.errors import UserError
from scalesweep.core.record import RECORD
from scalesweep.jobs.job_cost import cost_of_jobs, spent_jobs
from scalesweep.jobs.job_requests import shapes_for
from scalesweep.jobs.missing_programs import missing_programs
from scalesweep.planning.plan import budget_left, check_budget
from scalesweep.slurm.commands import PATIENCE_S, live_jobs
from scalesweep.smk.campaign_args import claim_results
from scalesweep.smk.context import CALLS, SnakemakeContext
from scalesweep.smk.results_lock import Claims
from scalesweep.state.run_state import forget_unsupported, scan
from scalesweep.state.stock import untrusted

_log = logging.getLogger(__name__)

STAGING_POLL_S = 10.0
EXECUTOR = "scalesweep"


@dataclass(frozen=True)
class Preflight:
    """The checks of one Snakemake, and what it has to itself of the results folder."""

    context: SnakemakeContext
    # Found while Snakemake builds its DAG, where an exception would come out as a traceback; the
    # Snakefile ends with the first of them before any job starts.
    problems: dict[str, str] = field(default_factory=dict)

    def look_at(self, run_id: str) -> bool:
        """Note a run that is to be made, and what hinders it; False if its site makes none."""
        context = self.context
        experiment, run = context.runs[run_id]
        site = context.campaign.site
        context.to_run.add(run_id)
        if site.launch is None:
            self.problems["launch"] = (
                f"{context.campaign.file}: {len(context.awaited)} run(s) are missing, and site "
                f"{site.name} has no 'launch' to start them: import them again; "
                "`snakemake report` reports on the others"
            )
            return False
        benchmark = experiment.benchmark
        here = not context.away
        campaign, point = context.campaign, run.point
        self.problems.update(missing_programs(campaign, benchmark, point, here, run.profile))
        return True

    @cached_property
    def claims(self) -> Claims:
        """What this Snakemake has to itself of the results folder."""
        return Claims(self.context.campaign.results, self.context.campaign.runs_folder)

    def begin(self, rules: Collection[str], executor: str | None) -> None:
        """Before jobs of these ``rules`` start: raise UserError for whatever hinders them.

        ``executor``: the name of Snakemake's. Keeps other Snakemakes out of what the jobs write.
        """
        for problem in self.problems.values():
            raise UserError(problem)
        claim_results(self.context.campaign, self.context.options)
        results = self.context.campaign.results
        if not os.access(results, os.W_OK):  # every call keeps its log there
            raise UserError(f"{results}: cannot write to this folder: it is read-only")
        submission = self.context.submission
        to_run = self.context.to_run
        submits = bool(to_run)
        if submission and submits and executor != EXECUTOR:
            raise UserError(
                f"--executor {executor}: runs are submitted by the executor {EXECUTOR} of "
                "profiles/slurm, which writes what their jobs read; leave out --executor"
            )
        states = self.context.states
        pending = {run_id for run_id in to_run if not states[run_id].settled}
        self.claims.begin(rules, bool(pending), here=not self.context.away)
        if pending:
            self._make_way(pending)
        if submits:
            self._check_submission()
        self._await_staging()

    def _make_way(self, pending: Collection[str]) -> None:
        """Take away what pending runs have left: a launcher that finds a record measures nothing.

        Raises UserError if another Snakemake has finished some of them since this one has looked.
        """
        folder = self.context.campaign.runs_folder
        shutil.rmtree(folder / CALLS, ignore_errors=True)  # of a call that was killed
        broken = untrusted({run_id: self.context.states[run_id] for run_id in pending})
        scan(folder, broken, quarantine=True)
        if "retry" in self.context.options:
            forget_unsupported(folder, pending)
        if done := sum((folder / run_id / RECORD).exists() for run_id in pending):
            raise UserError(
                f"{self.context.results}: another snakemake has meanwhile finished {done} of the "
                "pending runs; run snakemake again for the rest"
            )

    def _check_submission(self) -> None:
        """Look before jobs are submitted; raises UserError if Slurm or the budget says no."""
        submission = self.context.submission
        if submission is None:
            return
        submission.check(self.context.to_run, PATIENCE_S)
        campaign = self.context.campaign
        if campaign.budget_node_hours is not None:
            shapes = shapes_for(campaign, self.context.states, submission.estimates) or {}
            jobs = spent_jobs(campaign, campaign.budget_node_hours)
            for note in jobs.notes:
                _log.warning("node-hours spent: %s", note)
            cost = cost_of_jobs(campaign, shapes, jobs.rows, submission.estimates)
            check_budget(campaign, cost)
            submission.budget_left = budget_left(cost)

    def _await_staging(self) -> None:
        """Wait for the staging jobs of an earlier Snakemake: two must not make the same files."""
        staging = self.context.submission.staging if self.context.submission else []
        while staging:
            names = ", ".join(str(job.job_id) for job in staging)
            _log.info("waiting for staging job(s) %s", names)
            time.sleep(STAGING_POLL_S)
            here = {job.job_id for job in live_jobs(PATIENCE_S)}
            staging = [job for job in staging if job.job_id in here]
