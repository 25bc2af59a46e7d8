"""Summarise the finished runs of a plan: one row each, as Parquet."""

import argparse
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.cli import run_main
from scalesweep.record import RECORD
from scalesweep.study import read_plan
from scalesweep.summaries import build_summary, write_summary


def main() -> None:
    """Read the plan and the records of its finished runs; write the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", type=Path, required=True, help="plan.json")
    parser.add_argument("--runs", type=Path, required=True, help="folder with a folder per run")
    parser.add_argument("--out", type=Path, required=True, help="summary to write (.parquet)")
    args = parser.parse_args()
    finished = dict.fromkeys(
        run["run_id"]
        for experiment in read_plan(args.plan)["experiments"]
        for run in experiment["runs"]
        if run["status"] == "done"
    )
    # A copy under another name, because Snakemake deletes outputs before it makes them anew.
    kept = args.out.with_name(f".{args.out.name}.previous")
    records = [args.runs / run_id / RECORD for run_id in finished]
    summary = build_summary(records, args.out if args.out.is_file() else kept)
    write_summary(summary, args.out)
    partial = kept.with_name(f"{kept.name}.tmp")
    shutil.copyfile(args.out, partial)
    partial.replace(kept)
    print(f"{len(summary)} finished runs summarised in {args.out}")


if __name__ == "__main__":
    run_main(main)
