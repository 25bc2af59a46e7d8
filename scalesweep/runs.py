"""From a planned run to what the launcher needs to know of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalesweep.benchmark import Benchmark
from scalesweep.campaign import Campaign, Experiment, Run


def data_folder(campaign: Campaign, benchmark: Benchmark, point: Mapping[str, Any]) -> str | None:
    """Absolute folder of the data set a point reads, or None."""
    if benchmark.data is None:
        return None
    return str(Path(campaign.site.data).resolve() / benchmark.data.folder(point))


def run_spec(campaign: Campaign, experiment: Experiment, run: Run) -> dict[str, Any]:
    """Everything the launcher needs, as a JSON-ready dict (``scalesweep.launch.launch``).

    ``argv`` still holds ``{run_file}``, which only the launcher knows.
    """
    benchmark, site, point = experiment.benchmark, campaign.site, run.point
    values = {"{python}": site.python, "{benchmark}": str(benchmark.folder)}
    command = list(benchmark.command)
    for name, value in values.items():
        command = [word.replace(name, value) for word in command]
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
        "env": {**site.env, **env},
        "prologue": list(site.prologue),
        "time_limit_s": experiment.time_limit_minutes * 60,
    }
