"""What is looked at before any job starts: programs, other Snakemakes, Slurm, the budget.

One Snakemake has to itself while it works the runs of a results folder, or what is made of them.
Any number may look at the same folder meanwhile (`plan`, `-n`).
"""

import logging
import os
import shutil
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from io import FileIO

from scalesweep.core.errors import UserError
from scalesweep.core.locks import REPORT, RUNS, claim
from scalesweep.core.orphans import end_orphans, marked
from scalesweep.core.record import RECORD
from scalesweep.jobs.job_cost import cost_of_jobs
from scalesweep.jobs.job_requests import shapes_for
from scalesweep.jobs.missing_programs import missing_programs
from scalesweep.planning.plan import check_budget
from scalesweep.slurm.commands import PATIENCE_S
from scalesweep.slurm.job_table import spent
from scalesweep.smk.campaign_args import claim_results
from scalesweep.smk.context import CALLS, SnakemakeContext
from scalesweep.smk.submission import Submission
from scalesweep.state.run_state import forget_unsupported, scan
from scalesweep.state.stock import untrusted

_log = logging.getLogger(__name__)

STAGING_POLL_S = 10.0
# A launcher whose Snakemake was killed ends its program within this time.
LEFTOVERS_S = 30.0
_POLL_S = 0.1
EXECUTOR = "scalesweep"


@dataclass
class Preflight:
    """The checks of one Snakemake, and what it has to itself of the results folder."""

    context: SnakemakeContext
    # Found while Snakemake builds its DAG, where an exception would come out as a traceback; the
    # Snakefile ends with the first of them before any job starts.
    problems: dict[str, str] = field(default_factory=dict)
    # Locks, which end with this process, however it ends.
    held: dict[str, FileIO] = field(default_factory=dict)
    begun: bool = False

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
        where = context.campaign, experiment.benchmark, run.point
        self.problems.update(missing_programs(*where, not context.away, run.profile))
        return True

    def begin(self, executor: str | None) -> None:
        """Before jobs start: raise UserError for whatever hinders them.

        ``executor``: the name of Snakemake's. Keeps other Snakemakes out of what the jobs write.
        """
        for problem in self.problems.values():
            raise UserError(problem)
        claim_results(self.context.campaign, self.context.options)
        results = self.context.campaign.results
        if not os.access(results, os.W_OK):  # every call keeps its log there
            raise UserError(f"{results}: cannot write to this folder: it is read-only")
        to_run = self.context.to_run
        if self.context.submission and to_run and executor != EXECUTOR:
            raise UserError(
                f"--executor {executor}: runs are submitted by the executor {EXECUTOR} of "
                "profiles/slurm, which writes what their jobs read; leave out --executor"
            )
        states = self.context.states
        pending = {run_id for run_id in to_run if not states[run_id].settled}
        if pending:
            self.claim_runs()
            self._make_way(pending)
        self.begun = True
        if (submission := self.context.submission) and to_run:
            self._check_submission(submission)
            while jobs := submission.staging:  # of an earlier call: two must not make a file
                _log.info("waiting for staging job(s) %s", ", ".join(str(j.job_id) for j in jobs))
                time.sleep(STAGING_POLL_S)
                submission.find_live(PATIENCE_S)

    def claim_runs(self) -> None:
        """Claim the folder's runs; raises UserError if another Snakemake is at work there, or
        something that a killed one has left on this machine."""
        campaign = self.context.campaign
        self.held[RUNS] = claim(campaign.results)
        deadline = time.monotonic() + LEFTOVERS_S
        while not self.context.away:  # of jobs their batch system tells
            end_orphans(campaign.runs_folder)
            left = marked(campaign.runs_folder)
            if not left:
                return
            launcher = left[0].launcher
            if time.monotonic() > deadline:
                raise UserError(
                    f"{campaign.runs_folder}: {left[0].run_id} is still being measured by process "
                    f"{launcher}, started by an earlier snakemake; measurements never overlap: "
                    f"wait for it to finish, or run `kill {launcher}`"
                )
            time.sleep(_POLL_S)

    def claim_report(self) -> None:
        """Claim what is made of the runs, when the first job of it starts; waits for another's end.

        Not before: `snakemake report` may be called while runs are made.
        """
        # Snakemake evaluates a rule's parameters once more while it plans.
        if self.begun and REPORT not in self.held:
            self.held[REPORT] = claim(self.context.campaign.results, REPORT, wait=True)

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

    def _check_submission(self, submission: Submission) -> None:
        """Look before jobs are submitted; raises UserError if Slurm or the budget says no."""
        submission.check(self.context.to_run, PATIENCE_S)
        campaign = self.context.campaign
        if campaign.keys.budget_node_hours is not None:
            shapes = shapes_for(campaign, self.context.states, submission.estimates) or {}
            jobs = spent(campaign.unique_runs(), campaign.runs_folder)
            if jobs.note:
                raise UserError(
                    f"{campaign.file}: there is a budget, and what was spent is not known: "
                    f"{jobs.note}; submit again once the accounting answers, or without a budget"
                )
            cost = cost_of_jobs(campaign, shapes, jobs.rows, submission.estimates)
            check_budget(campaign, cost)
