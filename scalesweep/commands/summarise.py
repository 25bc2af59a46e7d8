"""Summarise the finished runs of a plan: one row each, as Parquet."""

import argparse
import gc
from pathlib import Path

from scalesweep.core.causes import Cause
from scalesweep.core.plan_format import read_plan
from scalesweep.core.record import RECORD
from scalesweep.core.status import Status
from scalesweep.planning.plan import note_failures
from scalesweep.state.set_aside import set_aside
from scalesweep.state.stock import tell_set_aside
from scalesweep.tables.derived import missing_everywhere, with_derived
from scalesweep.tables.summary import ROWS, build_summary, write_summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    parser.add_argument("--plan", type=Path, required=True, help="plan.json")
    parser.add_argument("--runs", type=Path, required=True, help="folder with a folder per run")
    parser.add_argument("--out", type=Path, required=True, help="summary to write (.parquet)")
    parser.add_argument("--processes", type=int, default=1, help="processes that share the work")


def run(args: argparse.Namespace) -> None:
    """Read the plan and the records of its finished runs; write the summary.

    A run whose record or samples turn out to be damaged has failed from here on: plan.json and
    plan.csv say so too, and all that follows is made of the others.
    """
    # What is read is kept to the end: looking for garbage takes a tenth of the time and finds none.
    gc.disable()
    experiments = read_plan(args.plan)["experiments"]
    finished = dict.fromkeys(
        run["run_id"]
        for experiment in experiments
        for run in experiment["runs"]
        if run["status"] == Status.DONE
    )
    broken: dict[str, str] = {}
    records = [args.runs / run_id / RECORD for run_id in finished]
    summary = build_summary(records, broken, args.processes, args.runs / ROWS)
    for run_id, why in broken.items():
        set_aside(args.runs / run_id, why)
    if broken:
        # The plan counts them as done, as it was made before they were read. Snakemake will make
        # all of it again with the next call, for the states have changed.
        note_failures(args.plan, {i: (Cause.BAD_RECORD, why) for i, why in broken.items()})
        print(tell_set_aside(broken))
    summary = with_derived(summary, experiments)
    for line in missing_everywhere(summary, experiments):
        print(line)
    write_summary(summary, args.out)
    # It imports pandas: after the processes that read have started.
    from scalesweep.report.export_tables import note_inputs

    note_inputs(summary, read_plan(args.plan), args.runs, args.out.parent)
    print(f"{len(summary)} finished runs summarised in {args.out}")
