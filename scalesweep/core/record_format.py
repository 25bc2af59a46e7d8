"""record.json: its fields as types, of schema 3.

``workflow/schemas/record.yaml`` is the same as a JSON Schema, made from the types here by
``tools/schemas.py``, which alone imports them: records are checked by ``scalesweep.core.record``
(keys and types) and ``scalesweep.core.record_content``. Times are in seconds unless the name says
otherwise.
"""

from typing import Annotated, Any, Generic, NotRequired, TypedDict, TypeVar

from scalesweep.core.fields import (
    AboveZero,
    Amount,
    Better,
    Count,
    PhaseSpan,
    Positive,
    ProfileKind,
    RunId,
    Scope,
    one_of,
    rule,
)

Value = TypeVar("Value")


class Column(TypedDict, Generic[Value]):
    """What each rank (or host) has: rank r has values[at[r]].

    Without ``at`` there is a value for each, or one for all; ``at`` null where it is not known
    which rank has which.
    """

    values: Annotated[list[Value], "in the order of the first rank that has them"]
    at: NotRequired[list[Count] | None]


class Git(TypedDict):
    """State of a repository."""

    commit: Annotated[str, rule(pattern="^[0-9a-f]{40,64}$")]
    dirty: bool


class CanaryRates(TypedDict):
    """Rates of each host, or why there are none."""

    seconds: Annotated[Amount, "that it took"]
    missing: NotRequired[str]
    hosts: NotRequired[list[str]]
    compute: NotRequired[Annotated[list[AboveZero], "FLOP/s, summed over its processes"]]
    memory: NotRequired[Annotated[list[AboveZero], "bytes/s, likewise"]]
    allreduce: NotRequired[Annotated[list[AboveZero], "bus bandwidth of its slowest rank, bytes/s"]]
    read: NotRequired[
        Annotated[list[AboveZero], "of a file that the kernel was asked to forget, bytes/s"]
    ]
    left_out: NotRequired[Annotated[dict[str, str], "kind -> why there is none of it"]]


class RecordCanary(TypedDict, total=False):
    """What the machine did just before and just after the run; docs/guide/machine_check.md."""

    before: CanaryRates
    after: CanaryRates


class RecordPoint(TypedDict):
    """Value of every parameter."""

    ranks: Any
    ranks_per_node: Any


class RecordMetric(TypedDict):
    """A number that a run has measured, and what it means."""

    value: float
    std: NotRequired[Annotated[Amount, "sample standard deviation that a source states"]]
    rounding: NotRequired[
        Annotated[Amount, "by how much printing with few digits may have moved the value"]
    ]
    count: NotRequired[Annotated[Positive, "of how many values"]]
    unit: str
    better: Better
    scope: Scope


class RecordWork(TypedDict, total=False):
    """How much the run does, over all ranks."""

    samples_per_epoch: Count | None
    bytes_per_epoch: Count | None


class RecordResources(TypedDict):
    """Where the ranks ran."""

    hosts: Annotated[Column[str] | None, "host of each rank; null where none is known"]
    slurm_nodes: Annotated[
        Column[str | None] | Annotated[str, one_of("hosts")] | None,
        "name of each rank's host as Slurm knows it; \"hosts\" where that is the host's, null "
        "without Slurm",
    ]


class Hardware(TypedDict):
    """Facts of the hosts, as the first rank of each found them."""

    hosts: Annotated[
        list[str] | None, "hosts with facts, in the order of the columns; null: all of resources"
    ]
    facts: dict[str, Column[Any]]


class RecordEnvironment(TypedDict):
    """What the ranks ran in."""

    ranks: Annotated[
        dict[str, Column[Any]], "what each rank said of itself, by fact (affinity, pid, ...)"
    ]
    hardware: NotRequired[Hardware]
    versions: dict[str, str | None]
    variables: dict[str, str]
    node: dict[str, Any]


class SamplesFile(TypedDict):
    """The arrays next to the record."""

    file: Annotated[str, one_of("samples.npz")]
    bytes: Count
    blake2b: str


class RecordLoad(TypedDict):
    """What other processes took of the cores while the program ran, on the launcher's node; absent
    in older records."""

    others: Annotated[
        Annotated[float, rule(minimum=0, maximum=1)] | None,
        "share of the cores' time; null: not known",
    ]
    cores: Annotated[Positive, "that the launcher may use"]
    host: str
    missing: Annotated[str, "why it is not known; empty where it is"]


class EnergyDomain(TypedDict):
    """What each host measured of a domain."""

    hosts: Annotated[list[str] | None, "hosts that have it, in the order of the columns; null: all"]
    joules: Column[Amount]
    counted: Annotated[Column[bool], "part of the total"]
    seconds: Annotated[Column[Amount], "for which it was watched"]


class PowerTable(TypedDict):
    """power.csv next to the record, if the run has one."""

    bytes: Count
    blake2b: str


class RecordEnergy(TypedDict):
    """What the launcher measured while the program ran; docs/guide/energy.md."""

    sources: list[str]
    interval_s: Annotated[Amount | None, "seconds between samples"]
    hosts: list[str]
    missing: Annotated[str | None, "why there are no joules"]
    domains: Annotated[dict[str, EnergyDomain], "domain -> what each host measured of it"]
    joules: Annotated[Amount | None, "whole program, all hosts, counted domains"]
    seconds: Annotated[Amount | None, "over which"]
    mean_watts: Amount | None
    peak_watts: Annotated[Amount | None, "highest mean of one interval"]
    phases: Annotated[dict[str, Amount], "joules"]
    joules_per_sample: Amount | None
    sampler_cpu_s: Amount
    samples: Annotated[Count, "of all hosts"]
    table: NotRequired[PowerTable]
    notes: list[str]


class RecordOrder(TypedDict):
    """Where the run stood among all of the campaign when it was started."""

    seed: Annotated[Count | None, "null: in the order of the campaign file"]
    position: Positive
    of: Annotated[Positive, "runs of the campaign"]


class Launch(TypedDict, total=False):
    """A benchmark's own launcher."""

    single: list[str]
    multi: list[str]


class ProgramFile(TypedDict):
    """A file that was started."""

    path: str
    bytes: Count | None
    blake2b: Annotated[str | None, "null where the file could not be read, or is very large"]
    git: NotRequired[
        Annotated[Git | None, "of a foreign program: the repository that the file lies in"]
    ]


class RecordProgram(TypedDict):
    """What is started at the point, with nothing of a site in it."""

    command: Annotated[list[str], "words; {python}, {program:NAME} and the like stay in braces"]
    env: Annotated[dict[str, str], "variables that parameters and the experiment set"]
    launch: Annotated[Launch | None, "the benchmark's own launcher; null: the site's"]
    files: Annotated[
        dict[str, ProgramFile],
        "what was started, by the words of the command that name it; of a native benchmark the "
        "Python files of its folder",
    ]


class RecordProfile(TypedDict):
    """Of a profiled run, whose folder is <run_id>.<kind>."""

    kind: ProfileKind
    files: Annotated[list[str], "relative to the attempt's folder"]


class RecordFunction(TypedDict):
    """A function of the profile that a run was imported from."""

    name: str
    kind: Annotated[
        str,
        one_of("cpu", "kernel", "copy", "api", "range"),
        "the times of api and range contain those of others",
    ]
    part: Annotated[str | None, "the part that it counts for; null: it counts for none"]
    calls: Annotated[Amount | None, "null where the tool does not say"]
    own_s: Annotated[Amount, "time in the function itself"]
    total_s: Annotated[
        Amount | None, "time with all that it called; null where the tool does not say"
    ]
    min_s: Annotated[Amount | None, "the shortest call; null where the tool does not say"]
    max_s: Annotated[Amount | None, "the longest"]
    share: Annotated[Amount | None, "own_s over that of all functions of the kind"]


class RecordFunctions(TypedDict):
    """Functions of the profile that a run was imported from; calls and times are means over the
    ranks."""

    ranks: Annotated[Positive, "that were profiled"]
    rows: Annotated[list[RecordFunction], "of each kind the 200 with the most time of their own"]


class Record(TypedDict):
    """What a finished run leaves."""

    schema: Annotated[int, rule(const=3)]
    run_id: RunId
    benchmark: str
    version: Positive
    point: RecordPoint
    repeat: Count
    site: str
    source: Annotated[str, one_of("measured", "simulated", "imported")]
    started: Annotated[str, "UTC, ISO 8601"]
    ended: Annotated[str, "UTC, ISO 8601"]
    wall_s: Annotated[Amount | None, "seconds; null where it is not known"]
    attempt: Positive
    phases: Annotated[dict[str, Amount], "seconds"]
    parts: NotRequired[
        Annotated[
            dict[str, Amount],
            "seconds by named part of the program, mean over the ranks; from a profile "
            "(docs/guide/profiles.md)",
        ]
    ]
    functions: NotRequired[RecordFunctions]
    metrics: dict[str, RecordMetric]
    work: RecordWork
    resources: RecordResources
    environment: RecordEnvironment
    notes: dict[str, Any]
    git: Annotated[Git | None, "of scalesweep"]
    study: NotRequired[
        Annotated[Git | None, "of the study that the run was started in; absent without one"]
    ]
    command: list[str]
    samples: SamplesFile | None
    phase_spans: NotRequired[
        Annotated[
            list[PhaseSpan], "phases of rank 0 in their order: name, start and end in Unix seconds"
        ]
    ]
    canary: NotRequired[RecordCanary]
    load: NotRequired[RecordLoad]
    energy: NotRequired[RecordEnergy]
    order: NotRequired[RecordOrder]
    program: NotRequired[RecordProgram]
    profile: NotRequired[RecordProfile]
    unfinished: NotRequired[
        Annotated[
            str,
            "imported runs only: how the run was cut, aborted or failed; its numbers are as far as "
            "it went",
        ]
    ]
    failed: NotRequired[
        Annotated[
            str,
            "imported runs only: the cause, where the source says that the run failed; "
            "`unfinished` has the source's words",
        ]
    ]
    unsupported: NotRequired[
        Annotated[
            str, "why this machine cannot do what the point asks; such a record has no metrics"
        ]
    ]
    digest: str
