"""Import published results, whatever they are, and report on them."""

import argparse
import re
from importlib import import_module
from pathlib import Path

from scalesweep.ab.commits import Repository, top_of
from scalesweep.config.campaign import load_campaign
from scalesweep.core.errors import UserError
from scalesweep.history.page import PAGE
from scalesweep.history.session import sessions_of
from scalesweep.history.store import kept_as_others
from scalesweep.importers import LOGS, PROFILES, TABLE, cli
from scalesweep.importers.imported_run import MeasuredCommit
from scalesweep.importers.which_importer import kind_of
from scalesweep.smk.campaign_args import check_apart, check_path
from scalesweep.state.results_folder import claim_folder

_DIGITS = re.compile(r"[0-9a-f]{7,64}", re.IGNORECASE)


def run(args: argparse.Namespace) -> None:
    """Recognise the source; read it into records, write a campaign of them, make its report, and
    keep the runs in a history if one is named.

    What cannot be trusted is named and does not fail the rest.
    """
    asked = (
        TABLE
        if args.map
        else LOGS
        if args.test or args.reader
        else PROFILES
        if args.benchmark
        else None
    )
    kind = args.kind or asked or kind_of(Path(args.source))
    cli.check_arguments(args, kind)
    args.measured = _measured_commit(args.commit, args.repository)
    if args.baseline and not args.history:
        raise UserError("--baseline: is of a history; add --history FOLDER")
    if args.history:
        check_path("--history", args.history)
        check_apart(Path(args.history), Path(args.results), "--history")
        claim_folder(Path(args.history), "--history", write=False)
    import_module(f"scalesweep.commands.import_{kind}").run(args)
    if args.history:
        _check_kept(args)
        print(f"history: {Path(args.history) / PAGE}")


def _measured_commit(commit: str, repository: str) -> MeasuredCommit | None:
    """The commit that a source was measured of; None where it is not named. Raises UserError."""
    if not commit:
        if repository:
            raise UserError("--repository: is that of a commit; add --commit COMMIT")
        return None
    if not repository:
        if not _DIGITS.fullmatch(commit):
            raise UserError(
                f"--commit {commit}: not a commit's hexadecimal digits (7 or more of them); for a "
                "tag or branch add --repository FOLDER"
            )
        return MeasuredCommit(commit.lower(), "")
    top = top_of(Path(repository)) if Path(repository).is_dir() else None
    if top is None:
        raise UserError(f"--repository {repository}: no git repository")
    return MeasuredCommit(Repository(top).commit(commit, "--commit"), str(top))


def _check_kept(args: argparse.Namespace) -> None:
    """Raise UserError for runs that the history has as runs of another commit: it knows a run by
    its id and time, which of a profile is that of its file."""
    history = Path(args.history)
    campaign = load_campaign(
        Path(args.results) / cli.CAMPAIGN, args.site, args.results, history=args.history
    )
    for (_, run_id, started), commit, other in kept_as_others(history, sessions_of(campaign)):
        raise UserError(
            f"{history}: has run {run_id} of {started} as a run of commit {other or 'unknown'}, "
            f"not of {commit}: import the commits into the same --results folder, or give the "
            "file another time (touch)"
        )
