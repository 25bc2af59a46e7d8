"""Import logs of programs, MLPerf, OSU and nccl-tests; report."""

import argparse
from pathlib import Path

from scalesweep.config.log_readers import load_reader
from scalesweep.importers import LOGS, cli, lines
from scalesweep.importers.collective_logs import check_test
from scalesweep.importers.detect_logs import RULES, read_items
from scalesweep.importers.rank_map import RankMap


def run(args: argparse.Namespace) -> None:
    """Read logs into records, write a campaign of them, make its report.

    Runs that are not whole are named and do not fail the others.
    """
    reader = load_reader(Path(args.reader)) if args.reader else None
    ranks, test = args.ranks or RankMap({}), check_test(args.test)
    items = read_items(Path(args.source), ranks, test, reader)
    rules = {reader.benchmark: lines.rules_of(reader)} if reader else {}
    cli.deliver(args, LOGS, items, (), {**RULES, **rules}, "Runs imported from logs.")
