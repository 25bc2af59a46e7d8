"""What one job asks of Slurm, derived from a point and its site: the only place where it is."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scalesweep.config.site import Site, SlurmSite
from scalesweep.core.errors import UserError

MB_PER_GB = 1024
# The launcher, its samplers and srun take less than this on the first node of a job, beside the
# ranks (measured: 60 MiB).
STARTUP_MB = 128
_EXCLUDE = "--exclude"


@dataclass(frozen=True, slots=True)
class Shape:
    """A job's request: nodes, tasks (ranks), CPUs of each, limit, memory of a node, and the rest.

    ``minutes`` is the job's limit. ``mem_mb`` (MiB), ``gpus_per_node`` and ``gres`` (instead of
    the latter) are per node. None, 0 and empty are not asked for. ``exclude`` has the nodes that
    the site's ``extra`` leaves out, and those that scalesweep avoids.
    """

    nodes: int
    tasks: int
    tasks_per_node: int
    cpus_per_task: int
    minutes: int
    mem_mb: int | None = None
    gpus_per_node: int = 0
    gres: str = ""
    exclusive: bool = False
    exclude: str = ""
    constraint: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    extra: tuple[str, ...] = ()

    @property
    def node_hours(self) -> float:
        """The most that the job can cost: nodes times its limit, in hours."""
        return self.nodes * self.minutes / 60

    def sbatch_words(self) -> list[str]:
        """The request as options of sbatch."""
        words = [f"--nodes={self.nodes}", f"--ntasks={self.tasks}"]
        words += [f"--cpus-per-task={self.cpus_per_task}", f"--time={self.minutes}"]
        if self.mem_mb is not None:
            words.append(f"--mem={self.mem_mb}")
        for name in ("account", "partition", "qos", "constraint", "gres"):
            if value := getattr(self, name):
                words.append(f"--{name}={value}")
        words.append(f"--ntasks-per-node={self.tasks_per_node}")
        if self.gpus_per_node:
            words.append(f"--gpus-per-node={self.gpus_per_node}")
        if self.exclusive:
            words.append("--exclusive")
        if self.exclude:
            words.append(f"--exclude={self.exclude}")
        return [*words, *self.extra]


def run_shape(
    site: Site,
    point: Mapping[str, Any],
    limit_s: float,
    memory_gib_per_rank: float | None = None,
    mem_mb: int | None = None,
    constraint: str | None = None,
    alone: bool = False,
) -> Shape:
    """The shape of the job of a point.

    ``limit_s`` is the limit of its program in seconds. Memory (MiB per node) is ``mem_mb``, else
    ``memory_gib_per_rank`` (GiB) times the ranks of a node and STARTUP_MB, else the share of the
    node's memory that goes with the CPUs asked for. ``constraint`` is an expression of node
    features, which may name parameters in braces (``features``). ``alone``: the job starts when
    those before it have ended. Raises UserError where the site cannot hold the point.
    """
    slurm = of_slurm(site)
    ranks, nodes = int(point["ranks"]), site.nodes_for(point)
    per_node = -(-ranks // nodes)
    cpus = max(1, site.cores_per_node // per_node)
    node_mb = (
        None if site.memory_gib_per_node is None else int(site.memory_gib_per_node * MB_PER_GB)
    )
    if mem_mb is None and memory_gib_per_rank is not None:
        mem_mb = math.ceil(memory_gib_per_rank * per_node * MB_PER_GB) + STARTUP_MB
    if mem_mb is None and node_mb is not None:
        share = 1.0 if slurm.exclusive else per_node * cpus / site.cores_per_node
        mem_mb = max(1, int(node_mb * share))
    if mem_mb is not None and node_mb is not None and mem_mb > node_mb:
        raise UserError(
            f"{per_node} ranks on a node take {mem_mb / MB_PER_GB:g} GiB, a node of site "
            f"{site.name} has {site.memory_gib_per_node:g}; lower ranks_per_node or "
            "memory_gib_per_rank"
        )
    return Shape(
        nodes=nodes,
        tasks=ranks,
        tasks_per_node=per_node,
        cpus_per_task=cpus,
        minutes=math.ceil(limit_s / 60 + slurm.startup_minutes),
        mem_mb=mem_mb,
        gpus_per_node=0 if slurm.gres else site.gpus_per_node,
        gres=slurm.gres,
        exclusive=slurm.exclusive,
        exclude=_excluded(slurm),
        constraint=features(slurm.constraint, (constraint or "").format_map(point)),
        account=slurm.account,
        partition=slurm.partition,
        qos=slurm.qos,
        extra=_extra(site, alone),
    )


def staging_shape(site: Site) -> Shape:
    """The shape of a job that makes a data set: one task on one node."""
    slurm = of_slurm(site)
    return Shape(
        nodes=1,
        tasks=1,
        tasks_per_node=1,
        cpus_per_task=min(site.stage_workers, site.cores_per_node),
        minutes=math.ceil(slurm.staging_minutes),
        mem_mb=math.ceil(slurm.staging_memory_gib * MB_PER_GB),
        exclude=_excluded(slurm),
        constraint=slurm.constraint,
        account=slurm.account,
        partition=slurm.partition,
        qos=slurm.qos,
        extra=_extra(site),
    )


def of_slurm(site: Site) -> SlurmSite:
    """The site's Slurm section; raises UserError if it has none."""
    if site.slurm is None:
        raise UserError(f"{site.file}: has no 'slurm' section")
    return site.slurm


def features(site: str, own: str) -> str:
    """The node features that an experiment asks for: its ``own`` in place of the site's, or, where
    they begin with ``+``, besides these."""
    if not own.startswith("+"):
        return own or site
    parts = [part for part in (site, own.removeprefix("+")) if part]
    # Slurm reads an expression from left to right; brackets hold a choice together.
    single = len(parts) == 1
    return "&".join(part if single or "|" not in part else f"({part})" for part in parts)


def _excluded(slurm: SlurmSite) -> str:
    """The nodes that the site leaves out."""
    given = (word.partition("=") for word in slurm.extra)
    return ",".join(nodes for name, _, nodes in given if name == _EXCLUDE)


def _extra(site: Site, alone: bool = False) -> tuple[str, ...]:
    """Further options: scalesweep's, then the user's; of two alike Slurm takes the last."""
    slurm = of_slurm(site)
    # Requeued, a job would start again two minutes later, behind the workflow's back.
    words = ["--no-requeue"]
    if alone or site.concurrent_runs == 1:
        words.append("--dependency=singleton")  # all jobs of one Snakemake have one name
    return (*words, *(word for word in slurm.extra if not word.startswith(f"{_EXCLUDE}=")))
