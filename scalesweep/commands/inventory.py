"""Plan a campaign: print it, or write plan.csv and plan.json."""

import logging
from collections import Counter

from scalesweep.jobs.job_requests import shapes_for
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.planning.plan import build_plan, kept_profiles, write_plan
from scalesweep.planning.plan_text import plan_text
from scalesweep.slurm.job_table import Collected, spent
from scalesweep.smk.batch_queue import filled, run_request
from scalesweep.smk.campaign_args import plan_of
from scalesweep.state.stock import note_state, take_stock, tell_stale

_log = logging.getLogger(__name__)


def inventory(campaign: str, write: bool = False, submit_cmd: str = "") -> None:
    """Read the campaign and the state of its runs; print the plan, and write it as plan.csv.

    ``write``: plan.json too, and note this state as the one that all results are made from: a
    record that cannot be trusted is set aside. ``submit_cmd``: how a profile submits a job: say
    each kind of request.
    """
    chosen = plan_of(campaign)
    planned = chosen.campaign
    runs = planned.unique_runs()
    states = take_stock(planned, runs, quarantine=write)
    shapes = shapes_for(planned, states, Estimates(planned, states))
    jobs = Collected([]) if shapes is None else spent(runs, planned.runs_folder)
    if jobs.note and planned.budget_node_hours is not None:
        _log.warning("node-hours spent: %s", jobs.note)
    plan = build_plan(planned, {**kept_profiles(planned, runs), **states}, shapes, jobs.rows)
    chosen.enter(plan)
    if write:
        note_state(planned, states)
    write_plan(planned, plan, as_json=write)
    print(plan_text(plan), end="")
    if submit_cmd:
        requests = [run_request(planned.site, *runs[i]) for i in runs if not states[i].settled]
        for words, count in Counter(filled(submit_cmd, it) for it in requests).items():
            print(f"{count} x {words}")
    if stale := tell_stale(planned, runs, states):
        print(f"\n{stale}")
    print(f"\nevery run: {planned.results / 'plan.csv'}")
