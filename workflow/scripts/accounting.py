"""Ask Slurm's accounting for the jobs of a campaign: one row each, as CSV."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.core.formatting import counted
from scalesweep.core.plan_format import read_plan
from scalesweep.slurm.job_table import collect
from scalesweep.smk.cli import run_main


def main() -> None:
    """Read the plan and the logs of jobs; write the table, whatever the accounting can say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", type=Path, required=True, help="plan.json")
    parser.add_argument("--runs", type=Path, required=True, help="folder with a folder per run")
    parser.add_argument("--logs", type=Path, required=True, help="folder of the Slurm jobs' logs")
    parser.add_argument("--out", type=Path, required=True, help="table to write (.csv)")
    args = parser.parse_args()
    run_ids = dict.fromkeys(
        run["run_id"]
        for experiment in read_plan(args.plan)["experiments"]
        for run in experiment["runs"]
    )
    found = collect(list(run_ids), args.runs, args.logs, args.out)
    for note in found.notes:
        print(f"accounting: {note}")
    print(f"{counted(len(found.rows), 'job')} in {args.out}")


if __name__ == "__main__":
    run_main(main)
