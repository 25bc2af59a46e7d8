"""Compare two campaigns, sites or results folders: one HTML page, and tables of every number."""

import argparse
from collections import Counter
from pathlib import Path
from urllib.parse import quote

from scalesweep.compare.environment_diff import surroundings
from scalesweep.compare.inputs import Side, read_sides
from scalesweep.compare.matching import join
from scalesweep.compare.page import render_comparison
from scalesweep.compare.page_tables import FOLDER
from scalesweep.compare.significance import VERDICTS, changes, counts
from scalesweep.compare.tables import TABLES, make_tables, write_tables
from scalesweep.core.files import write_atomic
from scalesweep.smk.campaign_args import open_campaign
from scalesweep.state.results_folder import claim_folder

PAGE = "compare.html"


def compare(base: Side, new: Side, results: Path) -> dict[str, int]:
    """Write ``compare.html`` and ``compare/`` into a results folder.

    Returns how many points' main metrics got each verdict, in the phases that they have.
    """
    joined = join(base, new)
    changed, unlike = changes([*joined.both, *joined.unmatched], base, new)
    around = surroundings(joined.both, base, new)
    summary = counts(changed)
    write_tables(make_tables(changed, summary, joined, around), results / FOLDER)
    files = [f"./{FOLDER}/{quote(name)}.csv" for name in TABLES]
    html = render_comparison(base, new, changed, summary, joined, around, unlike, files)
    write_atomic(results / PAGE, html)
    main = [change.verdict for change in changed if change.main]
    return {verdict: main.count(verdict) for verdict in VERDICTS if verdict in main}


def run(args: argparse.Namespace) -> None:
    """Read both sides, write the page and its tables, and say how many points did what."""
    campaign = open_campaign(args, write=False, tell=True)
    base, new = read_sides(args.base, args.new, campaign)
    claim_folder(campaign.results, "--results")
    verdicts = Counter(compare(base, new, campaign.results))
    print(f"base: {base.place}, {len(base.runs)} runs; new: {new.place}, {len(new.runs)} runs")
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    print(f"main metric: {counts or 'nothing to compare'}")
    print(f"comparison: {campaign.results / 'compare.html'}")
