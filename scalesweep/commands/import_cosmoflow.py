"""Import results of cosmoflow-benchmark's data benchmark, and report on them."""

import argparse
from pathlib import Path

from scalesweep.core.errors import UserError
from scalesweep.importers import cli
from scalesweep.importers.cosmoflow import RULES, read_tree

add_arguments = cli.add_arguments


def run(args: argparse.Namespace) -> None:
    """Read a folder of results into records, write a campaign of them, make its report."""
    cli.check_arguments(args, "import_cosmoflow", "FOLDER")
    runs, refusals = read_tree(Path(args.source))
    refused = cli.deliver(
        args,
        "import_cosmoflow",
        [run.imported() for run in runs],
        refusals,
        RULES,
        "Results of cosmoflow-benchmark's data benchmark, imported.",
    )
    if refused:
        raise UserError(f"{len(refused)} of {len(runs) + len(refusals)} refused")
