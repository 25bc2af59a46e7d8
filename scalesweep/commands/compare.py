"""Compare two campaigns, sites or results folders: one HTML page, and tables of every number."""

import argparse
from pathlib import Path

from scalesweep.compare.page import PAGE, write_comparison
from scalesweep.compare.sides import read_sides
from scalesweep.smk.campaign_args import DEFAULT_CAMPAIGN, open_campaign
from scalesweep.state.results_folder import claim_folder


def run(args: argparse.Namespace) -> None:
    """Read both sides, write the page and its tables, and say what the page says first."""
    if (
        not (args.campaign or args.results or DEFAULT_CAMPAIGN.is_file())
        and Path(args.NEW).is_dir()
    ):
        args.results = args.NEW  # of two folders the comparison is beside the new one's report
    campaign = open_campaign(args, write=False, tell=True)
    base, new = read_sides(args.BASE, args.NEW, campaign)
    claim_folder(campaign.results, "--results")
    said = write_comparison(base, new, campaign.results)
    print(f"{new.place} ({len(new.summary)} runs) over {base.place} ({len(base.summary)} runs)")
    print("\n".join(said) or "no point is on both sides")
    print(f"comparison: {campaign.results / PAGE}")
