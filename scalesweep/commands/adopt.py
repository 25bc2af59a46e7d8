"""Wait for the jobs of earlier Snakemake calls that are at work on runs of a campaign."""

import argparse
import time
from functools import partial

from scalesweep.core import disk_full
from scalesweep.core.errors import UserError
from scalesweep.core.record import RECORD, read_failure
from scalesweep.jobs.submission import Submission
from scalesweep.slurm.commands import PATIENCE_S
from scalesweep.slurm.sacct import JobState
from scalesweep.smk.campaign_args import add_campaign, campaign_of
from scalesweep.state.run_state import scan

SHORTEST_S, LONGEST_S = 2.0, 15.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_campaign(parser)
    parser.add_argument("--jobs", nargs="+", type=int, required=True, help="ids of the jobs")


def run(args: argparse.Namespace) -> None:
    """Say which jobs are waited for and how each ended; fail if a run has no record then."""
    say = partial(print, flush=True)  # through a pipe, it would show what is waited for at the end
    campaign = campaign_of(args)
    runs = campaign.unique_runs()
    queue = Submission(campaign, scan(campaign.runs_folder, runs), runs)

    def live() -> dict[str, int]:
        queue.find_live(PATIENCE_S)
        return {r: job.job_id for r, job in queue.live.items() if job.job_id in args.jobs}

    waiting = live()
    with disk_full.may_be():
        queue.note_live()
    for run_id, job_id in waiting.items():
        job = queue.live[run_id]
        state = f"{job.state}: {job.reason}" if job.state == JobState.PENDING else job.state
        whose = f"user {job.user}'s snakemake" if job.user else "an earlier snakemake"
        say(f"{run_id}: job {job_id} of {whose} has it ({state}); waiting")
    failed = 0
    pause = SHORTEST_S
    while waiting:
        time.sleep(pause)
        here = live()
        for run_id in sorted(waiting.keys() - here.keys()):
            folder = campaign.runs_folder / run_id
            cause = queue.settle_now(run_id)
            if not (folder / RECORD).exists():
                failed += 1
                detail = (read_failure(folder) or {}).get("detail", "it left no trace")
                say(f"{run_id}: job {waiting[run_id]} failed: {cause}: {detail}")
            else:
                say(f"{run_id}: job {waiting[run_id]} is done")
        pause = SHORTEST_S if len(here) < len(waiting) else min(1.5 * pause, LONGEST_S)
        waiting = here
    if failed:
        raise UserError(f"{failed} of these runs failed")
