"""Make the tables of experiments from the summary: CSV and Parquet, LaTeX for papers."""

import argparse
from pathlib import Path

from scalesweep.analysis.table_io import read_table
from scalesweep.core.plan_format import read_plan
from scalesweep.report.export_tables import write_all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    parser.add_argument("--summary", type=Path, required=True, help="summary.parquet")
    parser.add_argument("--plan", type=Path, required=True, help="plan.json")
    parser.add_argument("--runs", type=Path, required=True, help="folder with a folder per run")
    parser.add_argument("--out", type=Path, required=True, help="folder for the tables")
    parser.add_argument("--experiments", nargs="+", default=(), help="of these only")
    parser.add_argument("--processes", type=int, default=1, help="processes that share the work")


def run(args: argparse.Namespace) -> None:
    """Read plan and summary; write the tables."""
    plan, summary = read_plan(args.plan), read_table(args.summary)
    files = write_all(summary, plan, args.runs, args.out, args.experiments, args.processes)
    print(f"{files} files in {args.out}")
