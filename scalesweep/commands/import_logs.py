"""Import logs of tf_cnn_benchmarks, keras-multi-gpu, MLPerf, Keras, OSU and nccl-tests; report."""

import argparse
from pathlib import Path

from scalesweep.importers import LOGS, cli
from scalesweep.importers.collective_logs import check_test
from scalesweep.importers.detect_logs import RULES, read_items
from scalesweep.importers.rank_map import RankMap


def run(args: argparse.Namespace) -> None:
    """Read logs into records, write a campaign of them, make its report.

    Runs that are not whole are named and do not fail the others.
    """
    items = read_items(Path(args.source), args.ranks or RankMap({}), check_test(args.test))
    cli.deliver(args, LOGS, items, (), RULES, "Runs imported from logs.")
