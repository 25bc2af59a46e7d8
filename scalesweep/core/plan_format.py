"""plan.json: its fields as types, the one function that writes it and the one that reads it.

Times are in seconds unless the name says otherwise.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

from scalesweep.core.errors import UserError
from scalesweep.core.fields import (
    AboveZero,
    Amount,
    Count,
    Positive,
    ProfileKind,
    RunId,
    RunStatus,
    Several,
    one_of,
    rule,
)
from scalesweep.core.files import is_whole, sealed, write_atomic
from scalesweep.core.scaling_kinds import KINDS as SCALINGS

PLAN = "plan.json"

PointValues = Annotated[dict[str, Any], "value of every parameter, and what runs scale over"]


class PlanRun(TypedDict):
    """A planned run and its state."""

    run_id: RunId
    repeat: Count
    position: Annotated[Positive, "in the order of start, from 1"]
    point: PointValues
    work: Annotated[Count | None, "samples in all"]
    status: RunStatus
    cause: str
    detail: str
    threads_per_core: Annotated[
        Amount | None,
        "threads for each core of the fullest node; above 1 it is oversubscribed. null: not known",
    ]
    reused: Annotated[bool, "an earlier experiment has the same run"]
    to_run: bool


class PlanProfile(TypedDict):
    """A profiled run and its state."""

    run_id: Annotated[str, "name of the folder"]
    kind: ProfileKind
    point: PointValues
    status: RunStatus
    cause: str
    detail: str
    to_run: bool


class ExcludedPoint(TypedDict):
    """A point that is not run, and why."""

    point: PointValues
    reason: str


class ParameterInfo(TypedDict):
    """What a column of a point means."""

    unit: str | None
    doc: str
    default: Any
    workload: Annotated[bool, "whether it changes what is computed, not how"]


UNKNOWN_PARAMETER: ParameterInfo = {"unit": None, "doc": "", "default": None, "workload": False}


class PlanEstimate(TypedDict):
    """What the pending runs of an experiment will take; null where one of them is not known."""

    wall_s: Annotated[Amount | None, "seconds"]
    core_hours: Amount | None


class PlanRepeated(TypedDict):
    """A point that is measured until it is precise."""

    point: PointValues
    state: Annotated[
        str,
        one_of("new", "more", "precise", "wide", "waiting", "unknown", "identical"),
        'of analysis.sequential, or "new": not looked at as it is now',
    ]
    width: Annotated[Amount | None, "half width of the interval over the mean; null: none yet"]
    done: Annotated[Count, "finished repeats"]
    planned: Annotated[Positive, "repeats that are planned so far"]
    expected: Annotated[Positive, "repeats in all, by the spread so far"]


class PlanRepeats(TypedDict):
    """Repeats until points are precise."""

    least: Annotated[int, rule(minimum=3)]
    most: Annotated[int, rule(minimum=3)]
    until: Annotated[
        float, rule(exclusiveMinimum=0, maximum=1), "half width of an interval over the mean"
    ]
    level: Annotated[float, "at which intervals are taken, for a coverage of 0.95"]
    metric: Annotated[str, "the one that was looked at; empty if none yet"]
    points: list[PlanRepeated]


class PlanRound(TypedDict):
    """Runs of a point that were decided on in a round of a budget.

    ``now``, ``expected``: natural logarithms of the upper over the lower bound of what is asked;
    ``node_hours``: of the runs, at most; ``took``: of those that have finished.
    """

    round: Positive
    point: PointValues
    runs: Positive
    done: Count
    question: str
    now: Annotated[Amount, "logarithm of upper over lower bound when it was decided"]
    expected: Annotated[Amount, "the same as it was expected after all that was advised"]
    node_hours: Annotated[Amount, "of the runs, at most"]
    took: Annotated[Amount, "node-hours of those that have finished"]


class PlanSpend(TypedDict):
    """A budget that is spent in rounds (node-hours), and what was decided of an experiment."""

    budget: Annotated[AboveZero, "node-hours"]
    spent: Annotated[Amount, "node-hours of finished runs, and of failed attempts by their limits"]
    reserved: Annotated[Amount, "node-hours of planned runs, at most"]
    until: Annotated[float | None, "half width of an interval over its value"]
    target: Annotated[str, "what is asked; empty is everything"]
    ended: Annotated[str, "why nothing more is decided; empty while it goes on"]
    rounds: list[PlanRound]


class DerivedEntry(TypedDict):
    """A metric that is worked out for each run of an experiment."""

    formula: Annotated[str, "over metrics, parameters and facts of a run"]
    reads: Annotated[dict[str, str], "what it reads, by the names in its text"]
    unit: str
    better: Annotated[str, one_of("higher", "lower")]
    scope: Annotated[str, one_of("rank", "total")]


class PlanLayout(TypedDict):
    """Values of the parameters that lay out ranks, and what this layout is called."""

    values: PointValues
    name: str


class PlanLayouts(TypedDict):
    """How the ranks of an experiment's points share the work."""

    doc: str
    default: Annotated[str | None, "name of the layout of default values; null: not planned"]
    names: Annotated[list[PlanLayout], rule(minItems=1)]


class PlanExperiment(TypedDict):
    """An experiment: what it varies, its runs and their states."""

    name: str
    part_of: NotRequired[
        Annotated[str, "the experiment of several benchmarks of which it is one; others: absent"]
    ]
    description: str
    control: Annotated[bool, "the control point, which comes last"]
    benchmark: str
    summary: Annotated[str, "what the benchmark measures"]
    version: Positive
    main_metric: str | None
    metrics: Annotated[dict[str, str], "definitions"]
    compare: NotRequired[
        Annotated[
            dict[str, Annotated[str, one_of("always", "same_training", "never")]],
            "between which runs metrics are compared, where the benchmark says so "
            "(analysis.metrics.compared); plans of before lack it",
        ]
    ]
    kinds: NotRequired[
        Annotated[
            dict[str, Annotated[str, one_of("extensive", "intensive", "latency")]],
            "of metrics, where the benchmark says so: only extensive ones have an ideal; plans of "
            "before lack it",
        ]
    ]
    derived: NotRequired[
        Annotated[dict[str, DerivedEntry], "metrics that the campaign states; without any: absent"]
    ]
    scaling: Annotated[str, one_of(*SCALINGS), "weak, strong, model or none"]
    scale: Annotated[str, 'what runs scale over: "ranks", or the benchmark\'s name for devices']
    scale_parameters: Annotated[list[str], "parameters that make up the scale"]
    layouts: NotRequired[
        Annotated[
            PlanLayouts,
            "of benchmarks that declare a layout of several parameters; where fewer than two of "
            "them vary, or they form a grid: absent",
        ]
    ]
    mesh: NotRequired[
        Annotated[
            dict[str, str],
            "of benchmarks that declare a mesh: its axes by role, each with the expression for its "
            "ranks (config.point_shape); others: absent",
        ]
    ]
    transformer: NotRequired[
        Annotated[
            dict[str, str],
            "of benchmarks that declare a transformer: the expressions for its shape "
            "(config.point_shape); others: absent",
        ]
    ]
    memory: NotRequired[
        Annotated[
            dict[str, str],
            "of benchmarks that declare what their memory depends on: the expressions, the GiB of "
            "a rank's device among them where known, peak and rank (config.memory); others: absent",
        ]
    ]
    axes: Annotated[list[str], "parameters with more than one value, the scale first"]
    linked: Annotated[list[str], "parameters that the campaign sets together"]
    work: Annotated[
        list[str], "parameters that decide the work of a rank, without those of the mesh"
    ]
    fixed: Annotated[PointValues, "the other parameters and their values"]
    derived_parameters: NotRequired[
        Annotated[
            dict[str, str],
            "parameters that are worked out from others, each with its expression; none: absent",
        ]
    ]
    quantities: NotRequired[
        Annotated[list[str], "parameters that the program is not told of; none: absent"]
    ]
    derived_at: NotRequired[
        Annotated[
            dict[str, PointValues],
            "those of them that vary, by the values of the axes at a point (a JSON list); none: "
            "absent",
        ]
    ]
    parameters: dict[str, ParameterInfo]
    runs: list[PlanRun]
    profiles: list[PlanProfile]
    excluded: list[ExcludedPoint]
    points: Count
    estimate: PlanEstimate
    predict: NotRequired[
        Annotated[
            list[Positive],
            rule(minItems=1),
            "counts of what it scales over to predict; not asked: absent",
        ]
    ]
    stop: NotRequired[Annotated[str, "when larger counts of a series are left out"]]
    ceiling: NotRequired[
        Annotated[
            str,
            one_of("compute", "memory", "network", "files"),
            "compute, memory, network or files: its main metric is their most",
        ]
    ]
    noexchange: NotRequired[Annotated[bool, "its program can leave out the exchange of gradients"]]
    refused: NotRequired[
        Annotated[
            Positive, "runs of its benchmark that an import refused; left out where there are none."
        ]
    ]
    repeats: NotRequired[
        Annotated[
            PlanRepeats, "repeats until points are precise; left out where their number is fixed"
        ]
    ]
    spend: NotRequired[
        Annotated[PlanSpend, "what was decided of the experiment; left out without such a budget"]
    ]


class RefusedRuns(TypedDict):
    """Runs that an import refused for one reason."""

    benchmark: Annotated[str, "empty where the log does not tell"]
    reason: Annotated[str, "of the first"]
    count: Positive
    places: Annotated[list[str], "of the first few: file, or file:line"]


class PlanImported(TypedDict):
    """What imports left out, and what is to be doubted of what they took."""

    list: Annotated[str, "file that names all of it"]
    refused: list[RefusedRuns]
    doubts: list[str]


class JobShapeEntry(TypedDict):
    """Equal requests to Slurm."""

    sbatch: Annotated[str, "options of sbatch"]
    nodes: Positive
    tasks: Positive
    minutes: Annotated[Positive, "time limit of the job"]
    jobs: Positive
    runs: Annotated[list[str], "ids"]
    expected_s: Annotated[Amount | None, "seconds of a run, median"]
    basis: Annotated[str, "what the estimate rests on"]
    node_hours_expected: Amount | None
    node_hours_limit: Amount


class PlanJobs(TypedDict):
    """What the jobs of pending runs ask for and cost."""

    shapes: list[JobShapeEntry]
    node_hours_expected: Amount | None
    node_hours_limit: Amount
    spent_node_hours: Amount
    budget_node_hours: Amount | None
    overhead_s: Annotated[
        float | None, "seconds that jobs held their nodes beyond the program, median"
    ]
    overhead_jobs: Annotated[Count, "the jobs of which that is known"]


class PlanOrder(TypedDict):
    """The order in which runs are started."""

    seed: Annotated[Count | None, "null: in the order of the campaign file"]
    of: Annotated[Count, "runs of the campaign"]


class PlanCanary(TypedDict):
    """What looking at the machine before and after each pending run costs."""

    runs: Count
    seconds: Annotated[Amount, "of one run, at most"]
    total_s: NotRequired[Annotated[Amount, "of all runs; not in plans of earlier versions"]]


class PlanDataSet(TypedDict):
    """A data set that runs read, and whether it fits in memory."""

    name: Annotated[str, "its folder in the site's `data`"]
    experiments: list[str]
    bytes: Annotated[Count, "files of the point that reads most"]
    nodes: Annotated[
        Positive | None, "whose memory holds so many bytes, at least; null: memory not known"
    ]
    spilling: Annotated[Count, "points that read more than the memory of their nodes"]
    overlapping: Annotated[
        Count, "runs to come that read it and may do so at the same time; 0 where none overlap"
    ]


class Plan(TypedDict):
    """All of plan.json; ``digest`` is there once it was written."""

    campaign: str
    description: str
    file: Annotated[str, "campaign file"]
    site: str
    results: Annotated[str, "results folder"]
    created: Annotated[str, "UTC, ISO 8601"]
    order: PlanOrder
    experiments: list[PlanExperiment]
    jobs: Annotated[
        PlanJobs | None,
        "what the jobs of pending runs ask of Slurm and cost; null on a site without Slurm",
    ]
    canary: NotRequired[
        Annotated[PlanCanary, "what looking at the machine before and after each pending run costs"]
    ]
    data_sets: NotRequired[
        Annotated[list[PlanDataSet], "what runs read; absent where they read no data set"]
    ]
    memory_gib_per_node: NotRequired[
        Annotated[AboveZero, "GiB of a node for jobs, with data_sets; absent where not known"]
    ]
    consumer: NotRequired[
        Annotated[str, "results folder of a campaign whose training reading is held against"]
    ]
    ceilings: NotRequired[
        Annotated[str, "results folder of the campaign whose probes measured the site"]
    ]
    islands_per_node: NotRequired[
        Annotated[Several, "sockets or NVLink islands of a node; absent for one"]
    ]
    nodes_per_switch_group: NotRequired[
        Annotated[Several, "nodes below one switch; absent where not known"]
    ]
    peaks: NotRequired[
        Annotated[
            dict[str, Any],
            "FLOP/s by type (flops) and bytes/s (bytes_per_s) of a node, as data sheets state "
            "them; where the site names a device, how many a node has (devices)",
        ]
    ]
    imported: NotRequired[
        Annotated[
            PlanImported, "what imports left out or is to be doubted, in campaigns of imported runs"
        ]
    ]
    digest: NotRequired[Annotated[str, "blake2b of the text before it, closed by a brace"]]


def write_plan_file(path: Path, plan: Plan) -> None:
    """Write a plan by rename, with the checksum of all of it."""
    write_atomic(path, sealed(plan))


def read_plan(path: Path) -> Plan:
    """Read a plan.

    Raises UserError if it is none, was changed after it was written, or lacks a field, and OSError
    if it cannot be read.
    """
    try:
        content = path.read_bytes()
        plan = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not a plan ({error})") from None
    if not is_whole(content):
        raise UserError(f"{path}: was changed after it was written (digest differs)")
    for why in _faults(plan):
        raise UserError(f"{path}: {why}")
    checked: Plan = plan
    return checked


def parameter_of(experiment: PlanExperiment, name: str) -> ParameterInfo:
    """What a parameter means; nothing is known of one that the plan does not name."""
    return experiment["parameters"].get(name, UNKNOWN_PARAMETER)


_OLDER = (
    "written by another version of scalesweep; rebuild it with `snakemake report` and its campaign"
)


def _faults(plan: Any) -> Iterator[str]:
    """What keeps the content of a file from being a plan: nothing, in one that was written here.

    All objects whose keys are fixed are looked at; of values, only that lists and objects are so.
    """
    if not isinstance(plan, dict) or not isinstance(plan.get("experiments"), list):
        yield "not a plan (no list 'experiments')"
        return
    yield from _lacking(plan, Plan, "")
    yield from _lacking(plan["order"], PlanOrder, "order: ")
    for number, entry in enumerate(plan["experiments"]):
        where = f"experiments[{number}]"
        yield from _lacking(entry, PlanExperiment, f"{where}: ")
        yield from _lacking(entry["estimate"], PlanEstimate, f"{where}.estimate: ")
        for key, kind in _LISTS.items():
            if not isinstance(entry[key], list):
                yield f"not a plan ({where}.{key} is not a list)"
            for place, item in enumerate(entry[key]):
                if not isinstance(item, dict) or not item.keys() >= kind.__required_keys__:
                    yield from _lacking(item, kind, f"{where}.{key}[{place}]: ")
        if not isinstance(entry["parameters"], dict):
            yield f"not a plan ({where}.parameters is not an object)"
        for name, info in entry["parameters"].items():
            yield from _lacking(info, ParameterInfo, f"{where}.parameters.{name}: ")
    if plan["jobs"] is not None:
        yield from _lacking(plan["jobs"], PlanJobs, "jobs: ")
        if not isinstance(plan["jobs"]["shapes"], list):
            yield "not a plan (jobs.shapes is not a list)"
        for place, shape in enumerate(plan["jobs"]["shapes"]):
            yield from _lacking(shape, JobShapeEntry, f"jobs.shapes[{place}]: ")


_LISTS: dict[str, Any] = {"runs": PlanRun, "profiles": PlanProfile, "excluded": ExcludedPoint}


def _lacking(value: Any, kind: Any, where: str) -> Iterator[str]:
    """The first key that an object of the TypedDict ``kind`` lacks."""
    if not isinstance(value, Mapping):
        yield f"not a plan ({where}not an object)"
        return
    for key in sorted(kind.__required_keys__ - value.keys()):
        yield f"{where}lacks {key!r}: {_OLDER}"
