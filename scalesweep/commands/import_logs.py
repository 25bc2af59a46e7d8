"""Import logs of tf_cnn_benchmarks, keras-multi-gpu, MLPerf, Keras, OSU and nccl-tests; report."""

import argparse
from pathlib import Path

from scalesweep.importers import cli
from scalesweep.importers.detect_logs import RULES, read_items
from scalesweep.importers.rank_map import RankMap

add_arguments = cli.add_arguments


def run(args: argparse.Namespace) -> None:
    """Read logs into records, write a campaign of them, make its report.

    Runs that are not whole are named and do not fail the others.
    """
    cli.check_arguments(args, "import_logs", "FILE_OR_FOLDER", ranks=True)
    items = read_items(Path(args.source), args.ranks or RankMap({}))
    cli.deliver(args, "import_logs", items, (), RULES, "Runs imported from logs.")
