"""Summarise the finished runs of a plan: one row each, as Parquet."""

import argparse
import gc
from pathlib import Path

from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import read_plan
from scalesweep.core.record import RECORD
from scalesweep.planning.run_state import set_aside, tell_set_aside
from scalesweep.tables.summary import build_summary, write_summary
from scalesweep.tables.summary_cache import keep_summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    parser.add_argument("--plan", type=Path, required=True, help="plan.json")
    parser.add_argument("--runs", type=Path, required=True, help="folder with a folder per run")
    parser.add_argument("--out", type=Path, required=True, help="summary to write (.parquet)")
    parser.add_argument("--processes", type=int, default=1, help="processes that share the work")


def run(args: argparse.Namespace) -> None:
    """Read the plan and the records of its finished runs; write the summary."""
    # What is read is kept to the end: looking for garbage takes a tenth of the time and finds none.
    gc.disable()
    finished = dict.fromkeys(
        run["run_id"]
        for experiment in read_plan(args.plan)["experiments"]
        for run in experiment["runs"]
        if run["status"] == "done"
    )
    # A copy under another name, because Snakemake deletes outputs before it makes them again.
    kept = args.out.with_name(f".{args.out.name}.previous")
    broken: dict[str, str] = {}
    records = [args.runs / run_id / RECORD for run_id in finished]
    summary = build_summary(records, kept, broken, args.processes)
    for run_id, why in broken.items():
        set_aside(args.runs / run_id, why)
    if broken:
        # The plan counts them as done: it is to be made again first.
        raise UserError(
            f"{tell_set_aside(broken)}; run snakemake again to repeat these measurements"
        )
    write_summary(summary, args.out)
    keep_summary(args.out, kept)
    print(f"{len(summary)} finished runs summarised in {args.out}")
