"""Measure commits of the measured program: two alternately, or those that bisection looks at."""

import argparse

from scalesweep.ab.first_bad import first_bad
from scalesweep.ab.session import measure_ab
from scalesweep.smk.campaign_args import open_campaign


def run(args: argparse.Namespace) -> None:
    """Say what it costs; measure, and print a verdict for each point (``ab``), or name the first
    commit that is slower (``bisect``)."""
    campaign = open_campaign(args, write=not args.dry_run)
    {"ab": measure_ab, "bisect": first_bad}[args.command](campaign, vars(args), args.dry_run)
