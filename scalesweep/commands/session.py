"""Keep the finished points of a campaign in its history, as a session."""

import argparse
from pathlib import Path

from scalesweep.core.files import write_atomic
from scalesweep.history.page import PAGE, write_history
from scalesweep.history.session import sessions_of
from scalesweep.history.store import append
from scalesweep.smk.campaign_args import add_campaign, plan_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_campaign(parser)
    parser.add_argument("--out", type=Path, required=True, help="file that names what was written")


def run(args: argparse.Namespace) -> None:
    """Read plan, summary and records; append what the history does not have yet, and write its
    page again."""
    campaign = plan_of(args).campaign
    assert campaign.history is not None
    written = append(campaign.history.folder, sessions_of(campaign))
    if written:
        write_history(campaign.history)
    write_atomic(args.out, "".join(f"{path}\n" for path in written), durable=False)
    print(f"{campaign.history.folder / PAGE}: {len(written)} files added")
