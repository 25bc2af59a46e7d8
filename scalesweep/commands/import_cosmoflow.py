"""Import results of cosmoflow-benchmark's data benchmark, and report on them."""

import argparse
from pathlib import Path

from scalesweep.core.errors import UserError
from scalesweep.importers import COSMOFLOW, cli
from scalesweep.importers.cosmoflow import read_tree
from scalesweep.importers.which_importer import hint


def run(args: argparse.Namespace) -> None:
    """Read a folder of results into records, write a campaign of them, make its report.

    Folders that cannot be trusted are named and do not fail the others.
    """
    source = Path(args.source)
    try:
        runs, refusals = read_tree(source, args.ranks)
    except UserError as error:
        raise UserError(f"{error}{hint(source, COSMOFLOW)}") from None
    description = "Results of cosmoflow-benchmark's data benchmark, imported."
    cli.deliver(args, COSMOFLOW, runs, refusals, {}, description)
