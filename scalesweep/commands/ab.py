"""Measure two commits of the measured program alternately: a verdict for each point."""

import argparse

from scalesweep.ab.session import measure_ab
from scalesweep.smk.campaign_args import open_campaign


def run(args: argparse.Namespace) -> None:
    """Say what it costs; measure, print a line for each point, write the verdicts and keep them in
    the history."""
    campaign = open_campaign(args, write=not args.dry_run)
    measure_ab(campaign, vars(args), args.dry_run)
