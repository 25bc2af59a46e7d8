"""Cancel the Slurm jobs of a campaign's runs."""

import argparse

from scalesweep.core.formatting import counted
from scalesweep.slurm.commands import cancel_jobs
from scalesweep.smk.campaign_args import open_campaign


def run(args: argparse.Namespace) -> None:
    """Cancel what is in the queue, and say how many jobs that were."""
    args.profile = "slurm"  # of a campaign with a site for each way to run: that of Slurm
    count = cancel_jobs(open_campaign(args, write=False).runs_folder)
    print(f"{counted(count, 'job')} cancelled" if count else "no job in Slurm's queue")
