"""Write the report of a campaign: one self-contained HTML page."""

import argparse
import gc
from pathlib import Path

from scalesweep.analysis.table_io import read_table
from scalesweep.core.plan_format import read_plan
from scalesweep.core.shown_plan import shown
from scalesweep.experiment.load import load_results
from scalesweep.report.page import OF_SUMMARY, glance, page_content, render_page, write_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    parser.add_argument("--plan", type=Path, required=True, help="plan.json")
    parser.add_argument("--summary", type=Path, required=True, help="summary.parquet")
    parser.add_argument("--tables", type=Path, required=True, help="folder of the tables")
    parser.add_argument("--figures", type=Path, required=True, help="folder of the figures")
    parser.add_argument("--runs", type=Path, required=True, help="folder of the site's runs")
    parser.add_argument("--jobs", type=Path, help="jobs.csv, where the runs were Slurm jobs")
    parser.add_argument("--out", type=Path, required=True, help="the page")


def run(args: argparse.Namespace) -> None:
    """Read plan, summary, tables, figures and records; write the page, and its first lines to the
    log, which the end of a campaign prints."""
    # All that a page is made of is needed to the end: looking for garbage is a sixth of the time.
    gc.disable()
    plan = shown(read_plan(args.plan))
    summary = read_table(args.summary, OF_SUMMARY)
    studies = [load_results(entry, args.tables) for entry in plan["experiments"]]
    folders = (args.tables, args.figures, args.runs)
    content = page_content(plan, studies, summary, *folders, args.out, args.jobs)
    write_report(render_page(content), args.out)
    print("\n".join(glance(content)))
