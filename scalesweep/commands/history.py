"""Write the page of a history: what became slower or faster, and what changed with it."""

import argparse
from collections import Counter

from scalesweep.analysis.verdicts import VERDICTS
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted
from scalesweep.history.run import PAGE, regressions, settled_regressions, write_history
from scalesweep.history.words import line_of, settled_line
from scalesweep.smk.campaign_args import open_campaign


def run(args: argparse.Namespace) -> None:
    """Judge all sessions, write page and tables, and print a line for each regression.

    Raises UserError if there is one, and that was asked for.
    """
    campaign = open_campaign(args, write=False)
    if campaign.history is None:
        raise UserError(
            f"{campaign.file}: names no history: add `history: FOLDER`, or --history FOLDER"
        )
    history = write_history(campaign.history)
    counts = Counter(series.verdict.kind for series in history.series)
    tally = ", ".join(f"{counts[kind]} {kind}" for kind in VERDICTS if counts[kind])
    print(f"{counted(history.sessions, 'session')}: {tally or 'nothing to judge'}")
    worse = [line_of(regression) for regression in regressions(history)]
    worse += [settled_line(*regression) for regression in settled_regressions(history)]
    for told_line in worse:
        print(told_line)
    print(f"history: {campaign.history.folder / PAGE}")
    if args.fail_on and worse:
        raise UserError(counted(len(worse), "regression"))
