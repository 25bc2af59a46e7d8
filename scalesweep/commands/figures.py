"""Draw the figures of experiments: SVG, PDF and PNG, and an index of them."""

import argparse
import gc
from pathlib import Path

from scalesweep.aspects.draw import write_figures
from scalesweep.core.plan_format import read_plan
from scalesweep.core.shown_plan import shown
from scalesweep.experiment.load import load_results
from scalesweep.smk.cli import warn


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    parser.add_argument("--plan", type=Path, required=True, help="plan.json")
    parser.add_argument("--tables", type=Path, required=True, help="folder of the tables")
    parser.add_argument("--out", type=Path, required=True, help="folder for the figures")
    parser.add_argument("--experiments", nargs="+", default=(), help="of these only")
    parser.add_argument("--processes", type=int, default=1, help="processes that share the work")


def run(args: argparse.Namespace) -> None:
    """Read plan and tables, write figures."""
    plan = shown(read_plan(args.plan))
    studies = [
        load_results(entry, args.tables)
        for entry in plan["experiments"]
        if not args.experiments or entry["name"] in args.experiments
    ]
    # Figures are many small objects that live long: looking for garbage took a tenth of the time.
    gc.freeze()
    gc.set_threshold(20_000)
    drawn = [
        entry
        for results in studies
        for entry in write_figures(results, args.out, processes=args.processes)
    ]
    for entry in drawn:
        if "missing" in entry:
            warn(f"figure {entry['experiment']}/{entry['name']} not drawn: {entry['missing']}")
    print(f"{sum('missing' not in entry for entry in drawn)} figures in {args.out}")
