"""Check what a campaign needs on its site: software, launcher, Slurm, folders, clocks, counters."""

import argparse
import time
from collections import Counter

from scalesweep.compute.doctor.checks import FAILED, STATES
from scalesweep.core.errors import UserError
from scalesweep.doctor.examine import examine, line_of
from scalesweep.smk.campaign_args import open_campaign


def run(args: argparse.Namespace) -> None:
    """Print a line for each check as it comes; raises UserError if any has failed."""
    campaign, in_slurm = open_campaign(args), args.profile is not None
    site = campaign.site
    if site.launch is None:
        raise UserError(f"{site.file}: has no 'launch': nothing is started there")
    how = "runs are jobs of Slurm" if in_slurm else "runs start on this machine"
    print(f"doctor: campaign {campaign.name} on site {site.name} ({site.file}); {how}", flush=True)
    begin = time.monotonic()
    counts: Counter[str] = Counter()
    for check in examine(campaign, in_slurm):
        print(line_of(check), flush=True)
        counts[check.state] += 1
    tally = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    print(f"doctor: {tally}; {time.monotonic() - begin:.0f} s")
    if counts[FAILED]:
        raise UserError(f"the doctor found {counts[FAILED]} check(s) failed on site {site.name}")
