"""Find the first commit of the measured program that made it slower, by bisection."""

import argparse

from scalesweep.ab.first_bad import first_bad
from scalesweep.smk.campaign_args import open_campaign


def run(args: argparse.Namespace) -> None:
    """Say what it costs; measure about as many commits as halving takes, and name the first bad
    one."""
    campaign = open_campaign(args, write=not args.dry_run)
    first_bad(campaign, vars(args), args.dry_run)
