"""The steps after the runs of a made-up campaign, each called as its rule calls it."""

import json
import shutil
import sys

from bench.lib.made_runs import Made
from bench.lib.projects import Cost, timed

PROCESSES = 2


def step_words(made: Made) -> dict[str, list[str]]:
    """Arguments of the script of each step, in the order of the rules."""
    plan, summary = ["--plan", "results/plan.json"], ["--summary", "results/summary.parquet"]
    runs, several = ["--runs", f"results/runs/{made.runs.name}"], ["--processes", str(PROCESSES)]
    tables, figures = "results/tables", "results/figures"
    return {
        "inventory": ["--campaign", json.dumps([str(made.campaign), {}]), "--write"],
        "summarise": [*plan, *runs, "--out", summary[1], *several],
        "accounting": [*plan, *runs, "--out", "results/jobs.csv"],
        "tables": [*plan, *summary, *runs, "--out", tables, "--figures", figures, *several],
        "page": [
            *plan, *summary, *runs, "--jobs", "results/jobs.csv", "--tables", tables,
            "--figures", figures, "--out", "results/report.html",
        ],
    }  # fmt: skip


def take_steps(made: Made, *names: str) -> dict[str, Cost]:
    """Cost of each of these steps (default: all), without Snakemake between them."""
    words = step_words(made)
    costs = {}
    for name in names or words:
        for folder in ("tables", "figures") if name == "tables" else ():
            shutil.rmtree(made.results / folder, ignore_errors=True)  # as Snakemake does first
        command = [sys.executable, "workflow/scripts/step.py", name, *words[name]]
        costs[name] = timed(command, made.folder)
    return costs
