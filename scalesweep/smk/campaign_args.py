"""The arguments by which the workflow names its campaign to a script."""

import argparse
from pathlib import Path

from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.planning.repeats import plan_repeats


def add_campaign(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a campaign (``SnakemakeContext.campaign_arguments``)."""
    parser.add_argument("--campaign", type=Path, required=True, help="campaign file")
    parser.add_argument("--site", help="site instead of the campaign's own")
    parser.add_argument("--results", help="results folder instead of the campaign's own")
    parser.add_argument("--history", help="folder of the history instead of the campaign's own")
    parser.add_argument("--baseline", help="commit or tag instead of the campaign's own")
    parser.add_argument("--profile", help="kind of profile instead of the campaign's own")


def campaign_of(args: argparse.Namespace) -> Campaign:
    """The campaign that the arguments name, with the repeats planned so far. Raises UserError."""
    campaign = load_campaign(
        args.campaign,
        args.site,
        args.results,
        profile=args.profile,
        history=args.history,
        baseline=args.baseline,
    )
    return plan_repeats(campaign).campaign
