"""From a planned run to what the launcher needs to know of it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalesweep.compute.job_spec import Order
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.config.site import Site
from scalesweep.config.study import study_folder
from scalesweep.core.paths import LAUNCHERS
from scalesweep.core.profilers import split_name, wrapper
from scalesweep.jobs.job_requests import Request
from scalesweep.state.programs import folders_of, launcher_words, program_order

PROFILED_RANK = "profiled_rank.py"  # starts a rank's program under a profiler


def data_folder(campaign: Campaign, benchmark: Benchmark, point: Mapping[str, Any]) -> str | None:
    """Absolute folder of the data set a point reads, or None if it reads none."""
    if benchmark.data is None or not any(benchmark.data.needed(point).values()):
        return None
    return str(Path(campaign.site.data).resolve() / benchmark.data.folder(point))


def site_environment(site: Site) -> dict[str, str]:
    """The variables that every program on a site is started with."""
    # What Slurm's commands need to find their cluster; the plugin takes it out of jobs.
    cluster = {"SLURM_CONF": os.environ["SLURM_CONF"]} if "SLURM_CONF" in os.environ else {}
    return {**(cluster if site.slurm else {}), **site.env}


def run_spec(
    campaign: Campaign, experiment: Experiment, run: Run, request: Request | None = None
) -> Order:
    """Everything the launcher needs (``scalesweep.compute.launcher.launch``).

    ``request`` is that of the Slurm job in which it will be. ``argv`` still holds ``{run_file}``
    and ``{out}``, which only the launcher knows. ``extract`` is there for a foreign program.
    """
    benchmark, site, point = experiment.benchmark, campaign.site, run.point
    launcher = launcher_words(site, point, benchmark.framework, benchmark.launch)
    values = {"python": site.python_for(benchmark.framework), **folders_of(benchmark)}
    command = benchmark.command.fill(point, values, campaign.programs)
    profiler = wrapper(run.profile, site.python, LAUNCHERS / PROFILED_RANK)
    order: Order = {
        "run_id": split_name(run.run_id)[0],
        "profile": run.profile,
        "benchmark": benchmark.name,
        "version": benchmark.version,
        "params": {n: v for n, v in point.items() if n not in benchmark.quantities},
        "repeat": run.repeat,
        "site": site.name,
        "folder": str(campaign.runs_folder / run.run_id),
        "data": data_folder(campaign, benchmark, point),
        "node_local": site.node_local,
        "argv": [*launcher, *profiler, *command],
        "env": {**site_environment(site), **benchmark.variables(point)},
        "prologue": list(site.prologue),
        "time_limit_s": request.limit_s if request else experiment.time_limit_minutes * 60,
        "asked": request.asked() if request else None,
        "power": None
        if site.power is None
        else {
            "interval_s": site.power.interval_s,
            "sources": site.power.sources,
            "sysfs": site.power.sysfs,
            "nodes": site.nodes_for(point),
        },
        "program": program_order(campaign, benchmark, point),
    }
    # Nothing but these words tells the labels of ``srun --label`` from the first column of a table.
    words = [*launcher, *site.env]
    after_srun = words[[Path(word).name for word in (*words, "srun")].index("srun") + 1 :]
    order["srun_labels"] = bool({"-l", "--label", "SLURM_LABELIO"} & set(after_srun))
    if benchmark.extract is not None:
        samples = benchmark.total_work(point)
        work = {} if samples is None else {"samples_per_epoch": samples}
        order["extract"] = {**benchmark.extract.order, "work": work}
    if site.image:
        order["container"] = site.image
    if study := study_folder():
        order["study"] = str(study)
    return order
