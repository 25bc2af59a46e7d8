"""native.json: what a program leaves of a run, as types.

The benchmarks, which import nothing of scalesweep, have types of their own;
``scalesweep.compute.program_output`` checks what they leave. Standard library only, for the
launcher.
"""

from typing import Annotated, Any, NotRequired, TypedDict

from scalesweep.core.fields import NOT_IN_FILE, Amount, Better, Count, PhaseSpan, Scope

NATIVE = "native.json"


class Meaning(TypedDict):
    """What a metric's number means."""

    unit: str
    better: Better
    scope: Scope


class MetricValue(Meaning):
    """A number that a run has measured."""

    value: float


class Work(TypedDict, total=False):
    """How much a run does, over all ranks; what is not known is left out."""

    samples_per_epoch: Count | None
    bytes_per_epoch: Count | None
    samples: Annotated[Count, "handled in the phases named, over all epochs"]
    phases: list[str]


class Resources(TypedDict):
    """Where the ranks ran, by rank."""

    hosts: Annotated[list[str], "host of each rank"]
    slurm_nodes: Annotated[list[str | None], "Slurm's name of each rank's node"]
    slurm: NotRequired[
        Annotated[
            dict[str, Any],
            NOT_IN_FILE,
            "of the launcher: the job's id, and what it was asked for",
        ]
    ]


class Environment(TypedDict):
    """What the ranks ran in."""

    ranks: Annotated[list[dict[str, Any]], "facts of each rank"]
    versions: dict[str, str | None]
    variables: Annotated[dict[str, str], "of rank 0"]
    node: NotRequired[
        Annotated[dict[str, Any], NOT_IN_FILE, "of the launcher: facts about its host"]
    ]


class Native(TypedDict):
    """native.json."""

    phases: Annotated[dict[str, Amount], "seconds"]
    phase_spans: NotRequired[
        Annotated[
            list[PhaseSpan],
            "phases of rank 0 in their order: name, start and end in Unix seconds",
        ]
    ]
    metrics: dict[str, MetricValue]
    work: Annotated[Work, "over all ranks; what is not known is left out"]
    resources: Resources
    environment: Environment
    notes: dict[str, Any]


class NativeParts(Native):
    """The same as parts of a record."""

    unsupported: NotRequired[str]  # why this machine cannot do what the point asks
