"""Import results of cosmoflow-benchmark's data benchmark, and report on them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.core.errors import UserError
from scalesweep.importers.cli import arguments, deliver
from scalesweep.importers.cosmoflow import RULES, read_tree
from scalesweep.smk.cli import run_main


def main() -> None:
    """Read a folder of results into records, write a campaign of them, make its report."""
    args = arguments("import_cosmoflow", __doc__, "FOLDER")
    runs, refusals = read_tree(Path(args.source))
    refused = deliver(
        args,
        "import_cosmoflow",
        [run.imported() for run in runs],
        refusals,
        RULES,
        "Results of cosmoflow-benchmark's data benchmark, imported.",
    )
    if refused:
        raise UserError(f"{len(refused)} of {len(runs) + len(refusals)} refused")


if __name__ == "__main__":
    run_main(main)
