"""Import logs of tf_cnn_benchmarks, keras-multi-gpu, MLPerf, Keras, OSU and nccl-tests; report."""

import argparse
from pathlib import Path

from scalesweep.importers import cli
from scalesweep.importers.collective_logs import check_test
from scalesweep.importers.detect_logs import RULES, read_items
from scalesweep.importers.rank_map import RankMap


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of every import, and the test of logs of nccl-tests."""
    cli.add_arguments(parser)
    parser.add_argument("--test", default="", help="test of nccl-tests, where logs do not say it")


def run(args: argparse.Namespace) -> None:
    """Read logs into records, write a campaign of them, make its report.

    Runs that are not whole are named and do not fail the others.
    """
    cli.check_arguments(args, "import_logs", "FILE_OR_FOLDER", ranks=True)
    items = read_items(Path(args.source), args.ranks or RankMap({}), check_test(args.test))
    cli.deliver(args, "import_logs", items, (), RULES, "Runs imported from logs.")
