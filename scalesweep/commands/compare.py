"""Compare two campaigns, sites or results folders: one HTML page, and tables of every number."""

import argparse

from scalesweep.compare.page import PAGE, VERDICTS, write_comparison
from scalesweep.compare.sides import read_sides
from scalesweep.smk.campaign_args import open_campaign
from scalesweep.state.results_folder import claim_folder


def run(args: argparse.Namespace) -> None:
    """Read both sides, write the page and its tables, and say how many points did what."""
    campaign = open_campaign(args, write=False, tell=True)
    base, new = read_sides(args.BASE, args.NEW, campaign)
    claim_folder(campaign.results, "--results")
    verdicts = write_comparison(base, new, campaign.results)
    print(f"{new.place} ({len(new.summary)} runs) over {base.place} ({len(base.summary)} runs)")
    counts = ", ".join(f"{verdicts[it]} {it}" for it in VERDICTS if it in verdicts)
    print(f"main metric: {counts or 'nothing to compare'}")
    print(f"comparison: {campaign.results / PAGE}")
