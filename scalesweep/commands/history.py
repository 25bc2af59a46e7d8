"""Write the page of a history: what became slower or faster, and what changed with it."""

import argparse
from collections import Counter
from pathlib import Path

from scalesweep.analysis.verdicts import VERDICTS
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted
from scalesweep.history.run import PAGE, regressions, settled_regressions, write_history
from scalesweep.history.words import line_of, settled_line
from scalesweep.smk.campaign_args import add_campaign, campaign_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_campaign(parser)
    parser.add_argument(
        "--outcome", type=Path, help="file for how many regressions there are: for the Snakefile"
    )
    parser.add_argument("--fail", help="regression: end the call of Snakemake with exit code 1")


def run(args: argparse.Namespace) -> None:
    """Judge all sessions, write page and tables, and print a line for each regression."""
    campaign = campaign_of(args)
    if campaign.history is None:
        raise UserError(
            f"{campaign.file}: names no history: add `history: FOLDER`, or --config history=FOLDER"
        )
    if args.outcome:
        args.outcome.unlink(missing_ok=True)
    history = write_history(campaign.history)
    counts = Counter(one.verdict.kind for one in history.series)
    told = ", ".join(f"{counts[kind]} {kind}" for kind in VERDICTS if counts[kind])
    print(f"{counted(history.sessions, 'session')}: {told or 'nothing to judge'}")
    worse = [line_of(one) for one in regressions(history)]
    worse += [settled_line(*one) for one in settled_regressions(history)]
    for told_line in worse:
        print(told_line)
    if args.outcome and args.fail and worse:
        args.outcome.write_text(counted(len(worse), "regression"))
    print(f"history: {campaign.history.folder / PAGE}")
