"""plan.json: its fields as types, the one function that writes it and the one that reads it.

Times are in seconds unless the name says otherwise.
"""

import json
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic

PLAN = "plan.json"

PointValues = dict[str, Any]  # value of every parameter, and what runs scale over


class PlanState(TypedDict):
    """The state of a run."""

    run_id: str  # name of the folder
    point: PointValues
    status: str
    cause: str
    detail: str
    to_run: bool


class PlanRun(PlanState):
    """A planned run and its state."""

    repeat: int
    position: int  # in the order of start, from 1
    work: int | None  # samples in all
    # threads for each core of the fullest node; above 1 it is oversubscribed. null: not known
    threads_per_core: float | None
    reused: bool  # an earlier experiment has the same run


class PlanProfile(PlanState):
    """A profiled run and its state."""

    kind: str


class ExcludedPoint(TypedDict):
    """A point that is not run, and why."""

    point: PointValues
    reason: str


class ParameterInfo(TypedDict):
    """What a column of a point means."""

    unit: str | None
    doc: str
    default: Any
    workload: bool  # whether it changes what is computed, not how


UNKNOWN_PARAMETER: ParameterInfo = {"unit": None, "doc": "", "default": None, "workload": False}


class PlanRepeated(TypedDict):
    """A point that is measured until it is precise."""

    point: PointValues
    # new (not looked at as it is now), more, precise, wide, waiting, unknown, identical
    # (analysis.sequential)
    state: str
    width: float | None  # half width of the interval over the mean; null: none yet
    done: int  # finished repeats
    planned: int  # repeats that are planned so far
    expected: int  # repeats in all, by the spread so far


class PlanRepeats(TypedDict):
    """Repeats until points are precise."""

    least: int
    most: int
    until: float  # half width of an interval over the mean
    level: float  # at which intervals are taken, for a coverage of 0.95
    metric: str  # the one that was looked at; empty if none yet
    points: list[PlanRepeated]


class PlanExperiment(TypedDict):
    """An experiment: what it varies, its runs and their states."""

    name: str
    # the experiment of several benchmarks of which it is one; others: absent
    part_of: NotRequired[str]
    # of one whose parts are one (core.joined_experiments): the version of each benchmark, and by
    # benchmark the constant parameters that others lack or have with another value
    benchmarks: NotRequired[dict[str, int]]
    fixed_of: NotRequired[dict[str, dict[str, Any]]]
    description: str
    control: bool  # the control point, which comes last
    benchmark: str
    summary: str  # what the benchmark measures
    version: int
    main_metric: str | None
    metrics: dict[str, str]  # definitions
    # always, same_training or never: between which runs metrics are compared, where the benchmark
    # says so (analysis.metrics.compared)
    compare: NotRequired[dict[str, str]]
    # extensive, intensive or latency, where the benchmark says so: only extensive metrics have an
    # ideal
    kinds: NotRequired[dict[str, str]]
    # metrics that the campaign states, each with unit, better, scope, its formula over metrics,
    # parameters and facts of a run, and what it reads, by the names in its text; none: absent
    derived: NotRequired[dict[str, dict[str, Any]]]
    scaling: str  # weak, strong, model or none
    target_efficiency: NotRequired[float]  # as a share; absent: TARGET_EFFICIENCY
    scale: str  # what runs scale over: "ranks", or the benchmark's name for devices
    scale_parameters: list[str]  # parameters that make up the scale
    # expressions of benchmarks that declare them (config.shapes), others: absent. For the ranks of
    # a mesh's axes, by role; for the shape of a transformer; for what memory depends on, the GiB of
    # a rank's device among them where known, peak and rank
    mesh: NotRequired[dict[str, str]]
    transformer: NotRequired[dict[str, str]]
    memory: NotRequired[dict[str, str]]
    axes: list[str]  # parameters with more than one value, the scale first
    linked: list[str]  # parameters that the campaign sets together
    work: list[str]  # parameters that decide the work of a rank, without those of the mesh
    fixed: PointValues  # the other parameters and their values
    # parameters that are worked out from others, each with its expression; none: absent
    derived_parameters: NotRequired[dict[str, str]]
    # those of them that vary, by the values of the axes at a point (a JSON list); none: absent
    derived_at: NotRequired[dict[str, PointValues]]
    parameters: dict[str, ParameterInfo]
    runs: list[PlanRun]
    profiles: list[PlanProfile]
    excluded: list[ExcludedPoint]
    points: int
    wall_s: float | None  # seconds that its pending runs take; null: of one it is not known
    predict: NotRequired[list[int]]  # counts of what it scales over to predict; not asked: absent
    stop: NotRequired[str]  # when larger counts of a series are left out
    # compute, memory, network or files: its main metric is their most
    ceiling: NotRequired[str]
    noexchange: NotRequired[bool]  # its program can leave out the exchange of gradients
    idle: NotRequired[list[str]]  # reasons to exclude that no point gives; left out without any
    # runs of its benchmark that an import refused; left out where there are none.
    refused: NotRequired[int]
    # repeats until points are precise; left out where their number is fixed
    repeats: NotRequired[PlanRepeats]


class JobShapeEntry(TypedDict):
    """Equal requests to Slurm."""

    sbatch: str  # options of sbatch
    nodes: int
    tasks: int
    minutes: int  # time limit of the job
    jobs: int
    runs: list[str]  # ids
    expected_s: float | None  # seconds of a run, median
    basis: str  # what the estimate rests on
    node_hours_expected: float | None
    node_hours_limit: float


class PlanJobs(TypedDict):
    """What the jobs of pending runs ask for and cost."""

    shapes: list[JobShapeEntry]
    node_hours_expected: float | None
    node_hours_limit: float
    spent_node_hours: float
    budget_node_hours: float | None


class PlanDataSet(TypedDict):
    """A data set that runs read, and whether it fits in memory."""

    name: str  # its folder in the site's `data`
    experiments: list[str]
    bytes: int  # files of the point that reads most
    nodes: int  # whose memory holds so many bytes, at least


class Plan(TypedDict):
    """All of plan.json."""

    campaign: str
    description: str
    file: str  # campaign file
    site: str
    results: str  # results folder
    created: str  # UTC, ISO 8601
    order: dict[str, int | None]  # seed (null: as the file lists them); of: runs of the campaign
    experiments: list[PlanExperiment]
    # what the jobs of pending runs ask of Slurm and cost; null on a site without Slurm
    jobs: PlanJobs | None
    # what runs read; absent without any, or if memory is not known
    data_sets: NotRequired[list[PlanDataSet]]
    # results folder of a campaign whose training reading is held against
    consumer: NotRequired[str]
    ceilings: NotRequired[str]  # results folder of the campaign whose probes measured the site
    # FLOP/s by type (flops) and bytes/s (bytes_per_s) of a node, as data sheets state them; where
    # the site names a device, how many a node has (devices)
    peaks: NotRequired[dict[str, Any]]
    # in campaigns of imported runs: what was refused (benchmark, empty where the log does not tell;
    # reason, count, places), what is to be doubted (doubts), the file that names all of it (list)
    imported: NotRequired[dict[str, Any]]


def write_plan_file(path: Path, plan: Plan) -> None:
    """Write a plan by rename."""
    write_atomic(path, json.dumps(plan) + "\n")


def read_plan(path: Path) -> Plan:
    """Read a plan. Raises UserError if it is none or lacks a field, and OSError if it cannot be
    read."""
    try:
        plan = json.loads(path.read_bytes())
        experiments = plan["experiments"]
        whole = not Plan.__required_keys__ - plan.keys() and not any(
            PlanExperiment.__required_keys__ - experiment.keys() for experiment in experiments
        )
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: not a plan ({error})") from None
    if not whole:
        raise UserError(
            f"{path}: written by another version of scalesweep; rebuild it with `snakemake report` "
            "and its campaign"
        )
    checked: Plan = plan
    return checked


# From which efficiency on a scale is worth running, where a campaign says nothing.
TARGET_EFFICIENCY = 0.8


def target_efficiency(experiment: PlanExperiment) -> float:
    """From which efficiency on a scale of an experiment is worth running, as a share."""
    return experiment.get("target_efficiency", TARGET_EFFICIENCY)


def parameter_of(experiment: PlanExperiment, name: str) -> ParameterInfo:
    """What a parameter means; nothing is known of one that the plan does not name."""
    return experiment["parameters"].get(name, UNKNOWN_PARAMETER)
