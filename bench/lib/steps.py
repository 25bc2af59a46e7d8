"""The steps after the runs of a made-up campaign, each called as its rule calls it."""

import json
import shutil
import sys

from bench.lib.made_runs import Made
from bench.lib.projects import Cost, timed

PROCESSES = 2


def step_words(made: Made) -> dict[str, list[str]]:
    """Arguments of the script of each step, in the order of the rules."""
    folders = ["--results", "results", "--runs", f"results/runs/{made.runs.name}"]
    several = ["--processes", str(PROCESSES)]
    return {
        "inventory": ["--campaign", json.dumps([str(made.campaign), {}]), "--write"],
        "summarise": [*folders, *several],
        "accounting": folders,
        "tables": [*folders, "--draw", *several],
        "page": folders,
    }


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
