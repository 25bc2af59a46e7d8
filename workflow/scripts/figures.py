"""Draw the figures of every experiment: SVG, PDF and PNG, and an index of them."""

import argparse
import gc
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.core.plan_format import read_plan
from scalesweep.experiment.results import load_results
from scalesweep.figures import write_figures
from scalesweep.smk.cli import run_main


def main() -> None:
    """Read plan and tables, write figures; files of figures that are no longer drawn go."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", type=Path, required=True, help="plan.json")
    parser.add_argument("--tables", type=Path, required=True, help="folder of the tables")
    parser.add_argument("--out", type=Path, required=True, help="folder for the figures")
    parser.add_argument("--processes", type=int, default=1, help="processes that share the work")
    args = parser.parse_args()
    plan = read_plan(args.plan)
    studies = [load_results(entry, args.tables) for entry in plan["experiments"]]
    # Figures are many small objects that live long: looking for garbage took a tenth of the time.
    gc.freeze()
    gc.set_threshold(20_000)
    entries = write_figures(studies, args.out, processes=args.processes)
    print(f"{len(entries)} figures in {args.out}")


if __name__ == "__main__":
    run_main(main)
