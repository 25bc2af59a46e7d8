"""Look at points that are measured until they are precise, and plan their next repeats."""

import argparse

from scalesweep.adaptive.policy import look
from scalesweep.config.campaign import Campaign
from scalesweep.core.formatting import counted
from scalesweep.jobs.job_cost import cost_of_jobs, spent_jobs
from scalesweep.jobs.job_requests import shapes_for
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.planning.plan import check_budget
from scalesweep.smk.campaign_args import add_campaign, campaign_of
from scalesweep.state.stock import take_stock


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_campaign(parser)
    parser.add_argument(
        "--budget", action="store_true", help="compare the jobs to come with the campaign's budget"
    )


def run(args: argparse.Namespace) -> None:
    """Look, and keep what was seen next to the runs.

    Raises UserError if, with --budget, the jobs of the repeats that are planned then may exceed the
    campaign's budget.
    """
    plan = look(campaign_of(args))
    for line in plan.lines():
        print(line)
    if args.budget and plan.campaign.budget_node_hours is not None:
        _check(plan.campaign)
    runs = plan.campaign.unique_runs()
    print(f"{counted(len(runs), 'run')} planned so far")


def _check(campaign: Campaign) -> None:
    states = take_stock(campaign, campaign.unique_runs())
    estimates = Estimates(campaign, states)
    shapes = shapes_for(campaign, states, estimates) or {}
    jobs = spent_jobs(campaign, campaign.budget_node_hours)
    check_budget(campaign, cost_of_jobs(campaign, shapes, jobs.rows, estimates))
