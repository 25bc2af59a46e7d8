"""Import published results, whatever they are, and report on them."""

import argparse
from importlib import import_module
from pathlib import Path

from scalesweep.importers import LOGS, PROFILES, TABLE, cli
from scalesweep.importers.which_importer import kind_of


def run(args: argparse.Namespace) -> None:
    """Recognise the source; read it into records, write a campaign of them, make its report.

    What cannot be trusted is named and does not fail the rest.
    """
    asked = (
        TABLE
        if args.map
        else LOGS
        if args.test
        else PROFILES
        if args.benchmark or args.window
        else None
    )
    kind = args.kind or asked or kind_of(Path(args.source))
    cli.check_arguments(args, kind)
    import_module(f"scalesweep.commands.import_{kind}").run(args)
