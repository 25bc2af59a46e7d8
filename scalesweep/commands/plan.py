"""Plan a campaign: print it, or write plan.csv and plan.json."""

import argparse
import logging
from collections import Counter
from pathlib import Path
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.planning.artifacts import forget_made
from scalesweep.planning.job_requests import shapes_for
from scalesweep.planning.plan import build_plan, kept_profiles, stamp_state, write_plan
from scalesweep.planning.plan_text import plan_text
from scalesweep.planning.reextract import runs_to_reread
from scalesweep.planning.runtime_estimates import Estimates
from scalesweep.planning.stock import take_stock, tell_stale
from scalesweep.slurm.job_table import read_jobs
from scalesweep.smk.campaign_args import add_campaign, campaign_of

_log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_campaign(parser)
    parser.add_argument(
        "--inventory",
        action="store_true",
        help="write plan.json too, and mark this state as the one that all results are made from",
    )


def run(args: argparse.Namespace) -> None:
    """Read the campaign and the state of its runs; write both plan files.

    With --inventory everything that follows rests on the plan: what new runs have left is read
    whole, and a record that cannot be trusted is set aside.
    """
    campaign = campaign_of(args)
    runs = campaign.unique_runs()
    states = take_stock(campaign, runs, quarantine=args.inventory, verify=args.inventory)
    shapes = shapes_for(campaign, states, Estimates(campaign, states))
    known = {**kept_profiles(campaign, runs), **states}
    plan = build_plan(campaign, known, shapes, _jobs(campaign.results / "jobs.csv"))
    if args.inventory:
        forget_made(campaign.results)
        stamp_state(campaign, states)
    write_plan(campaign, plan, as_json=args.inventory)
    print(plan_text(plan), end="")
    if stale := tell_stale(campaign, runs, states):
        print(f"\n{stale}")
    rereads = Counter(runs[run_id][0].benchmark.name for run_id in runs_to_reread(runs, states))
    for name, count in rereads.items():
        print(f"to be re-read: the logs of {count} run(s): the patterns of {name} have changed")
    print(f"\nevery run: {campaign.results / 'plan.csv'}")


def _jobs(path: Path) -> list[dict[str, Any]]:
    """What is known of the campaign's jobs; nothing where the table is damaged: it is rebuilt."""
    try:
        return read_jobs(path)
    except UserError as error:
        _log.warning("%s", error)
        return []
