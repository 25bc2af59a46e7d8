"""Measure two commits of the measured program alternately: a verdict for each point."""

import argparse

from scalesweep.settle.run import settle
from scalesweep.smk.campaign_args import add_campaign, campaign_of

_OPTIONS = ("points", "metric", "repeats")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_commits(parser, "base", "new")


def run(args: argparse.Namespace) -> None:
    """Measure, print a line for each point, write the verdicts and keep them in the history."""
    settle(campaign_of(args), options_of(args, "base", "new"), args.cluster, args.show, say)


def add_commits(parser: argparse.ArgumentParser, *commits: str) -> None:
    """Add the arguments of a verb that measures ``commits``."""
    add_campaign(parser)
    for name in commits:
        parser.add_argument(f"--{name}", default="", help="a commit, tag or branch")
    parser.add_argument("--points", default="", help="experiment or expression; default: all")
    parser.add_argument("--metric", default="", help="default: the main one")
    parser.add_argument("--repeats", default="", help="of each commit; default: the campaign's")
    parser.add_argument("--cluster", action="store_true", help="runs are in jobs of Slurm")
    parser.add_argument("--show", action="store_true", help="say what it costs, measure nothing")


def options_of(args: argparse.Namespace, *commits: str) -> dict[str, str]:
    """The options as ``--config`` has them."""
    return {name: getattr(args, name) for name in (*commits, *_OPTIONS)}


def say(line: str) -> None:
    """Print a line as it comes."""
    print(line, flush=True)
