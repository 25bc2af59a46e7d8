"""Summarise the finished runs of a plan: one row each, as Parquet."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import read_plan
from scalesweep.core.record import RECORD
from scalesweep.planning.run_state import set_aside, tell_set_aside
from scalesweep.smk.cli import run_main
from scalesweep.tables.summary import build_summary, write_summary
from scalesweep.tables.summary_cache import keep_summary


def main() -> None:
    """Read the plan and the records of its finished runs; write the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", type=Path, required=True, help="plan.json")
    parser.add_argument("--runs", type=Path, required=True, help="folder with a folder per run")
    parser.add_argument("--out", type=Path, required=True, help="summary to write (.parquet)")
    parser.add_argument("--processes", type=int, default=1, help="processes that share the work")
    args = parser.parse_args()
    finished = dict.fromkeys(
        run["run_id"]
        for experiment in read_plan(args.plan)["experiments"]
        for run in experiment["runs"]
        if run["status"] == "done"
    )
    # A copy under another name, because Snakemake deletes outputs before it makes them anew.
    kept = args.out.with_name(f".{args.out.name}.previous")
    broken: dict[str, str] = {}
    records = [args.runs / run_id / RECORD for run_id in finished]
    summary = build_summary(records, kept, broken, args.processes)
    for run_id, why in broken.items():
        set_aside(args.runs / run_id, why)
    if broken:
        # The plan counts them as done: it is to be made again first.
        raise UserError(f"{tell_set_aside(broken)}; call snakemake again to measure them anew")
    write_summary(summary, args.out)
    keep_summary(args.out, kept)
    print(f"{len(summary)} finished runs summarised in {args.out}")


if __name__ == "__main__":
    run_main(main)
