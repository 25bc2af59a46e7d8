"""native.json: what a program leaves of a run, as types.

The benchmarks, which import nothing of scalesweep, have types of their own;
``scalesweep.compute.program_output`` checks what they leave. Standard library only, for the
launcher.
"""

from typing import Any, NotRequired, TypedDict

NATIVE = "native.json"


class Meaning(TypedDict):
    """What a metric's number means."""

    unit: str
    better: str
    scope: str


class MetricValue(Meaning):
    """A number that a run has measured."""

    value: float


class Work(TypedDict, total=False):
    """How much a run does, over all ranks; what is not known is left out."""

    samples_per_epoch: int | None
    bytes_per_epoch: int | None
    samples: int  # handled in the phases named, over all epochs
    phases: list[str]


class Resources(TypedDict):
    """Where the ranks ran, by rank."""

    hosts: list[str]  # host of each rank
    slurm_nodes: list[str | None]  # Slurm's name of each rank's node
    slurm: NotRequired[dict[str, Any]]  # of the launcher: the job's id, and what it was asked for


class Environment(TypedDict):
    """What the ranks ran in."""

    ranks: list[dict[str, Any]]  # facts of each rank
    versions: dict[str, str | None]
    variables: dict[str, str]  # of rank 0
    node: NotRequired[dict[str, Any]]  # of the launcher: facts about its host


class Native(TypedDict):
    """native.json."""

    phases: dict[str, float]  # seconds
    # phases of rank 0 in their order: name, start and end in Unix seconds
    phase_spans: NotRequired[list[tuple[str, float, float]]]
    metrics: dict[str, MetricValue]
    work: Work  # over all ranks; what is not known is left out
    resources: Resources
    environment: Environment
    notes: dict[str, Any]


class NativeParts(Native):
    """The same as parts of a record."""

    unsupported: NotRequired[str]  # why this machine cannot do what the point asks
