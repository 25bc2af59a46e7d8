"""From a planned run to what the launcher needs to know of it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalesweep.benchmark import Benchmark
from scalesweep.campaign import Campaign, Experiment, Run
from scalesweep.slurm.requests import Request


def data_folder(campaign: Campaign, benchmark: Benchmark, point: Mapping[str, Any]) -> str | None:
    """Absolute folder of the data set a point reads, or None."""
    if benchmark.data is None:
        return None
    return str(Path(campaign.site.data).resolve() / benchmark.data.folder(point))


def run_spec(
    campaign: Campaign, experiment: Experiment, run: Run, request: Request | None = None
) -> dict[str, Any]:
    """Everything the launcher needs, as a JSON-ready dict (``scalesweep.launch.launch``).

    ``request`` is that of the Slurm job in which it will be. ``argv`` still holds ``{run_file}``,
    which only the launcher knows.
    """
    benchmark, site, point = experiment.benchmark, campaign.site, run.point
    values = {"{python}": site.python, "{benchmark}": str(benchmark.folder)}
    command = list(benchmark.command)
    for name, value in values.items():
        command = [word.replace(name, value) for word in command]
    # What Slurm's commands need to find their cluster; the plugin takes it out of jobs.
    cluster = {"SLURM_CONF": os.environ["SLURM_CONF"]} if "SLURM_CONF" in os.environ else {}
    env = {
        variable: str(point[parameter])
        for variable, parameter in benchmark.env.items()
        if point[parameter] is not None
    }
    return {
        "run_id": run.run_id,
        "benchmark": benchmark.name,
        "version": benchmark.version,
        "params": dict(point),
        "repeat": run.repeat,
        "site": site.name,
        "folder": str(campaign.runs_folder / run.run_id),
        "data": data_folder(campaign, benchmark, point),
        "node_local": site.node_local,
        "argv": [*site.launcher(point), *command],
        "env": {**(cluster if site.slurm else {}), **site.env, **env},
        "prologue": list(site.prologue),
        "time_limit_s": request.limit_s if request else experiment.time_limit_minutes * 60,
        "asked": request.asked() if request else None,
    }
