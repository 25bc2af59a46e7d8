"""Ask Slurm's accounting for the jobs of a campaign: one row each, as CSV."""

import argparse
from pathlib import Path

from scalesweep.core.formatting import counted
from scalesweep.core.plan_format import read_plan
from scalesweep.slurm.job_table import collect


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    parser.add_argument("--plan", type=Path, required=True, help="plan.json")
    parser.add_argument("--runs", type=Path, required=True, help="folder with a folder per run")
    parser.add_argument("--out", type=Path, required=True, help="table to write (.csv)")


def run(args: argparse.Namespace) -> None:
    """Read the plan; write the table, whatever the accounting can say."""
    run_ids = {
        run["run_id"]
        for experiment in read_plan(args.plan)["experiments"]
        for run in (*experiment["runs"], *experiment["profiles"])
    }
    jobs = collect(run_ids, args.runs, args.out)
    for note in jobs.notes:
        print(f"accounting: {note}")
    print(f"{counted(len(jobs.rows), 'job')} in {args.out}")
