"""What a program leaves in native.json, as types. Standard library only.

The launcher checks the same when it makes a record of it (docs/architecture.md).
"""

from typing import Any, Literal, TypedDict


class Metric(TypedDict):
    """A number that a run has measured."""

    value: float  # in `unit`; finite
    unit: str
    better: Literal["lower", "higher"]
    scope: Literal["total", "rank"]  # of all ranks together, or the mean over ranks


class Work(TypedDict, total=False):
    """How much was done, over all ranks; what does not apply is left out."""

    samples_per_epoch: int
    bytes_per_epoch: int  # read from files
    samples: int  # handled in `phases`, over all epochs
    phases: list[str]


class Resources(TypedDict):
    """Where the ranks ran, by rank."""

    hosts: list[str]
    slurm_nodes: list[str | None]  # names that Slurm knows the nodes by


class Hardware(TypedDict):
    """A host's hardware; None for what cannot be read."""

    cpu_model: str | None
    cpus: int | None  # logical ones
    governor: str | None
    memory_bytes: int | None
    numa_nodes: int | None
    gpus: list[dict[str, Any]]
    gpu_links: dict[str, str]  # by pair, "GPU0-GPU1"


class RankFacts(TypedDict):
    """One rank: where it ran and with which threads."""

    hardware: Hardware | None  # from the first rank of each host
    visible_gpus: str | None
    host: str
    slurm_node: str | None
    affinity: str  # CPUs, as ranges: "0-11,24"
    pid: int
    omp_num_threads: str | None
    inter_threads: int  # 0: the framework's choice
    intra_threads: int


Versions = dict[str, str | None]  # by name, of what a program runs on; None if not in use


class Environment(TypedDict):
    """What the ranks ran in."""

    ranks: list[RankFacts]
    versions: Versions
    variables: dict[str, str]  # of rank 0


class Native(TypedDict):
    """The content of native.json."""

    phases: dict[str, float]  # seconds of rank 0, by phase
    phase_spans: list[tuple[str, float, float]]  # phase, begin, end (Unix seconds, rank 0)
    metrics: dict[str, Metric]
    work: Work
    resources: Resources
    environment: Environment
    notes: dict[str, Any]


def metric(
    value: float,
    unit: str,
    better: Literal["lower", "higher"] = "lower",
    scope: Literal["total", "rank"] = "total",
) -> Metric:
    """Return a metric; `value` may be NumPy's."""
    return {"value": float(value), "unit": unit, "better": better, "scope": scope}
