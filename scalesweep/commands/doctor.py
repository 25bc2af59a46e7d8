"""Check what a campaign needs on its site: software, launcher, Slurm, folders, clocks, counters."""

import argparse
import time
from collections import Counter
from pathlib import Path

from scalesweep.compute.doctor.checks import FAILED, STATES
from scalesweep.core.errors import UserError
from scalesweep.doctor.examine import examine, line_of
from scalesweep.smk.campaign_args import add_campaign, campaign_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_campaign(parser)
    parser.add_argument("--cluster", action="store_true", help="runs are jobs of Slurm")
    parser.add_argument(
        "--outcome",
        type=Path,
        help="file for what is wrong, instead of an error: for the Snakefile",
    )


def run(args: argparse.Namespace) -> None:
    """Print a line for each check as it comes; raises UserError if any has failed."""
    campaign = campaign_of(args)
    site = campaign.site
    if site.launch is None:
        raise UserError(f"{site.file}: has no 'launch': nothing is started there")
    how = "runs are jobs of Slurm" if args.cluster else "runs start on this machine"
    print(f"doctor: campaign {campaign.name} on site {site.name} ({site.file}); {how}", flush=True)
    if args.outcome:
        args.outcome.unlink(missing_ok=True)
    begin = time.monotonic()
    counts: Counter[str] = Counter()
    for check in examine(campaign, args.cluster):
        print(line_of(check), flush=True)
        counts[check.state] += 1
    told = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    print(f"doctor: {told}; {time.monotonic() - begin:.0f} s")
    if counts[FAILED]:
        line = f"the doctor found {counts[FAILED]} check(s) failed on site {site.name}"
        if not args.outcome:
            raise UserError(line)
        args.outcome.parent.mkdir(parents=True, exist_ok=True)
        args.outcome.write_text(line)
