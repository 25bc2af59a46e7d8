"""The steps after the runs of a made-up campaign, each called as its rule calls it."""

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
        "inventory": ["--campaign", made.campaign, "--write"],
        "summarise": [*plan, *runs, "--out", summary[1], *several],
        "accounting": [*plan, *runs, "--out", "results/jobs.csv"],
        "tables": [*plan, *summary, *runs, "--out", tables, *several],
        "figures": [*plan, "--tables", tables, "--out", figures, *several],
        "page": [
            *plan, *summary, *runs, "--jobs", "results/jobs.csv", "--tables", tables,
            "--figures", figures, "--out", "results/report.html",
        ],
    }  # fmt: skip


def take_steps(made: Made, *names: str, anew: bool = False) -> dict[str, Cost]:
    """Cost of each of these steps (default: all), without Snakemake between them.

    With ``anew``, tables and figures of an earlier call are not put back but made again.
    """
    words = step_words(made)
    costs = {}
    for name in names or words:
        if name in ("tables", "figures"):
            shutil.rmtree(made.results / name, ignore_errors=True)  # as Snakemake does first
            if anew:
                shutil.rmtree(made.results / f".{name}.previous", ignore_errors=True)
        command = [sys.executable, f"workflow/scripts/{name}.py", *words[name]]
        costs[name] = timed(command, made.folder)
    return costs
