"""Compare two campaigns, sites or results folders: one HTML page, and tables of every number."""

import argparse
from collections import Counter

from scalesweep.compare.inputs import read_sides
from scalesweep.compare.run import compare
from scalesweep.smk.campaign_args import open_campaign


def run(args: argparse.Namespace) -> None:
    """Read both sides, write the page and its tables, and say how many points did what."""
    campaign = open_campaign(args, tell=True)
    base, new = read_sides(args.base, args.new, campaign)
    verdicts = Counter(compare(base, new, campaign.results))
    print(f"base: {base.place}, {len(base.runs)} runs; new: {new.place}, {len(new.runs)} runs")
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    print(f"main metric: {counts or 'nothing to compare'}")
    print(f"comparison: {campaign.results / 'compare.html'}")
