"""Write the page of a history: what became slower or faster, and what changed with it."""

import argparse
from collections import Counter

from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted
from scalesweep.history.page import PAGE, newest_alone, regressions, told_of, write_history
from scalesweep.judge.change import VERDICTS
from scalesweep.smk.campaign_args import open_campaign


def run(args: argparse.Namespace) -> None:
    """Judge all sessions, write page and tables, and print a line for each regression. Raises
    UserError if there is one, and that was asked for."""
    campaign = open_campaign(args, write=False)
    if campaign.history is None:
        raise UserError(f"{campaign.file}: names no history: add `history:` or --history FOLDER")
    history = write_history(campaign.history)
    counts = Counter(line.change.verdict for line in history.judged)
    tally = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    sessions, worse = counted(history.sessions, "session"), regressions(history)
    alone = [f"{told_of(line)} But {line.change.reason}." for line in newest_alone(history)]
    print(f"{sessions}: {tally or 'nothing to judge'}", *worse, *alone, sep="\n")
    print(f"history: {campaign.history.folder / PAGE}")
    if args.fail_on and worse:
        raise UserError(counted(len(worse), "regression"))
