"""Find the first commit of the measured program that made it slower, by bisection."""

import argparse

from scalesweep.commands.settle import add_commits, options_of, say
from scalesweep.settle.first_bad import first_bad
from scalesweep.smk.campaign_args import campaign_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_commits(parser, "good", "bad")


def run(args: argparse.Namespace) -> None:
    """Measure about as many commits as halving takes, and name the first bad one."""
    first_bad(campaign_of(args), options_of(args, "good", "bad"), args.cluster, args.show, say)
