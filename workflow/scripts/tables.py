"""Make the tables of every experiment from the summary: CSV and Parquet, LaTeX for papers."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.cli import run_main
from scalesweep.latex import write_latex
from scalesweep.profiletables import functions_table
from scalesweep.sites import summaries_elsewhere
from scalesweep.study import Study, read_plan
from scalesweep.tablefiles import read_table, write_tables
from scalesweep.tables import make_tables


def main() -> None:
    """Read plan and summary; write the tables and remove those of experiments that are gone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--summary", type=Path, required=True, help="summary.parquet")
    parser.add_argument("--plan", type=Path, required=True, help="plan.json")
    parser.add_argument("--runs", type=Path, required=True, help="folder with a folder per run")
    parser.add_argument("--out", type=Path, required=True, help="folder for the tables")
    args = parser.parse_args()
    plan = read_plan(args.plan)
    summary = read_table(args.summary)
    run_ids = dict.fromkeys(run["run_id"] for e in plan["experiments"] for run in e["runs"])
    tables = make_tables(summary, plan, summaries_elsewhere(args.runs, run_ids), args.runs)
    for experiment in plan["experiments"]:
        functions = functions_table(experiment, args.runs)
        if functions is not None:
            tables[experiment["name"]]["functions"] = functions
    write_tables(tables, args.out)
    studies = [Study(entry, tables[entry["name"]]) for entry in plan["experiments"]]
    write_latex(studies, plan["campaign"], args.out)
    print(f"{sum(map(len, tables.values()))} tables in {args.out}")


if __name__ == "__main__":
    run_main(main)
