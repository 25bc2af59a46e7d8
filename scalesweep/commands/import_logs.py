"""Import logs of tf_cnn_benchmarks, keras-multi-gpu, MLPerf and Keras, and report on them."""

import argparse
from pathlib import Path

from scalesweep.importers import cli
from scalesweep.importers.detect_logs import RULES, read_source

add_arguments = cli.add_arguments


def run(args: argparse.Namespace) -> None:
    """Read logs into records, write a campaign of them, make its report.

    Runs that are not whole are named and do not fail the others.
    """
    cli.check_arguments(args, "import_logs", "FILE_OR_FOLDER", ranks=True)
    runs, refusals, others = read_source(Path(args.source), args.ranks)
    if others:
        names = ", ".join(str(file) for file in others[:3])
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        print(f"no such log: {names}{more}")
    cli.deliver(args, "import_logs", runs, refusals, RULES, "Runs imported from logs.")
