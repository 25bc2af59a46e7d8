"""Plan a campaign: print it, or write plan.csv and plan.json."""

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any

from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted
from scalesweep.jobs.job_requests import shapes_for
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.planning.plan import build_plan, kept_profiles, write_plan
from scalesweep.planning.plan_text import plan_text
from scalesweep.slurm.job_end import why_pending
from scalesweep.slurm.job_table import spent
from scalesweep.smk.batch_queue import filled, run_request
from scalesweep.smk.campaign_args import plan_of
from scalesweep.smk.submission import Submission
from scalesweep.state.stock import note_state, take_stock, tell_stale

_log = logging.getLogger(__name__)


def inventory(
    campaign: str, write: bool = False, ask_slurm: bool = False, submit_cmd: str = ""
) -> None:
    """Read the campaign and the state of its runs; print the plan, and write it as plan.csv.

    ``write``: plan.json too, and note this state as the one that all results are made from: a
    record that cannot be trusted is set aside. ``ask_slurm``: say whether Slurm would accept the
    jobs. ``submit_cmd``: how a profile submits a job: say each kind of request.
    """
    chosen = plan_of(campaign)
    planned = chosen.campaign
    runs = planned.unique_runs()
    states = take_stock(planned, runs, quarantine=write)
    shapes = shapes_for(planned, states, Estimates(planned, states))
    known = {**kept_profiles(planned, runs), **states}
    jobs = _jobs(planned) if shapes is not None else ()
    plan = build_plan(planned, known, shapes, jobs)
    chosen.enter(plan)
    if write:
        note_state(planned, states)
    write_plan(planned, plan, as_json=write)
    print(plan_text(plan), end="")
    if ask_slurm and shapes:
        print(_word_of_slurm(Submission(planned, states, runs), shapes))
    if submit_cmd:
        pending = [run_id for run_id in runs if not states[run_id].settled]
        requests = [run_request(planned.site, *runs[run_id]) for run_id in pending]
        counts = Counter(filled(submit_cmd, request) for request in requests)
        lines = [f"{count} x {words}" for words, count in counts.items()]
        print("\n".join(["\nhow the pending runs are submitted:", *lines]))
    if stale := tell_stale(planned, runs, states):
        print(f"\n{stale}")
    print(f"\nevery run: {planned.results / 'plan.csv'}")


def _word_of_slurm(submission: Submission, run_ids: Iterable[str]) -> str:
    """What Slurm thinks of the jobs of these runs, and why those wait that are in the queue."""
    try:
        submission.check(run_ids)
        submission.find_live()
    except UserError as error:
        return f"Slurm: {error}"
    said = "Slurm would accept these jobs (sbatch --test-only)"
    if live := list(submission.live.values()):
        said += f"; {counted(len(live), 'job')} of an earlier snakemake in the queue"
    why = why_pending(live)
    return f"{said}\n{why}" if why else said


def _jobs(campaign: Campaign) -> list[dict[str, Any]]:
    """The campaign's jobs so far, those of calls that were killed too."""
    jobs = spent(campaign.unique_runs(), campaign.runs_folder)
    if jobs.note:
        level = logging.INFO if campaign.budget_node_hours is None else logging.WARNING
        _log.log(level, "node-hours spent: %s", jobs.note)
    return jobs.rows
