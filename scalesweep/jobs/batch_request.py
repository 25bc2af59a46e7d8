"""What a job asks of a batch system other than Slurm: standard resources of a Snakemake job."""

import math
from collections import Counter
from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any

from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.config.site import Site
from scalesweep.core.errors import UserError, choices

# Beyond the limit of the program, which ends it itself: for the start, and the record.
BESIDE_MINUTES = 2
MB_PER_GB = 1024
STAGING_MINUTES = 60
RESOURCES = (
    *("nodes", "tasks", "tasks_per_node", "cpus_per_task", "cpus_per_node", "slots"),
    *("mem_mb", "gpus", "runtime"),
)


def run_request(site: Site, experiment: Experiment, run: Run) -> dict[str, int]:
    """The request of a run: ``RESOURCES``; ``mem_mb`` (MiB), ``gpus`` and ``cpus_per_node`` are of
    a node (0: not known), ``slots`` are the cores of all nodes, ``runtime`` is in minutes."""
    ranks, nodes = int(run.point["ranks"]), site.nodes_for(run.point)
    per_node = -(-ranks // nodes)
    cpus = max(1, site.cores_per_node // per_node)
    memory = experiment.memory_gib_per_rank
    gib = site.memory_gib_per_node or 0 if memory is None else memory * per_node
    return {
        "nodes": nodes,
        "tasks": ranks,
        "tasks_per_node": per_node,
        "cpus_per_task": cpus,
        "cpus_per_node": cpus * per_node,
        "slots": cpus * per_node * nodes,
        "mem_mb": math.ceil(gib * MB_PER_GB),
        "gpus": site.gpus_per_node,
        "runtime": math.ceil(experiment.time_limit_minutes) + BESIDE_MINUTES,
    }


def staging_request(site: Site) -> dict[str, int]:
    """The request of a job that makes a data set, likewise: one task on one node."""
    workers = min(site.stage_workers, site.cores_per_node)
    cores = dict.fromkeys(("cpus_per_task", "cpus_per_node", "slots"), workers)
    single = dict.fromkeys(("nodes", "tasks", "tasks_per_node"), 1)
    return {**single, **cores, "mem_mb": 0, "gpus": 0, "runtime": STAGING_MINUTES}


def request_lines(
    site: Site,
    runs: Mapping[str, tuple[Experiment, Run]],
    pending: Collection[str],
    submit_cmd: str,
) -> list[str]:
    """How the pending runs are submitted, a line for each kind of request; ``submit_cmd`` is the
    profile's, with the resources in braces. Raises UserError for what is no resource."""
    requests = [run_request(site, *runs[run_id]) for run_id in pending]
    try:
        said = Counter(submit_cmd.format(resources=SimpleNamespace(**it)) for it in requests)
    except (AttributeError, LookupError, ValueError) as error:
        name = getattr(error, "name", None) or str(error).strip("'")
        allowed = [f"resources.{resource}" for resource in RESOURCES]
        where = f"scalesweep-submit-cmd: unknown {name!r} in braces"
        raise UserError(f"{where}; {choices(f'resources.{name}', allowed)}") from None
    return [f"{count} x {words}" for words, count in said.items()]


def batch_resources(request: Any) -> dict[str, Any]:
    """The resources of a rule; ``request`` gives those of a job by its wildcards."""
    return {name: lambda wildcards, name=name: request(wildcards)[name] for name in RESOURCES}
