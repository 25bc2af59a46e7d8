"""plan.json: its fields as types, the one function that writes it and the one that reads it.

``workflow/schemas/plan.yaml`` is the same as a JSON Schema, with what each field means. Times are
in seconds unless the name says otherwise.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from scalesweep.core.errors import UserError
from scalesweep.core.files import is_whole, sealed
from scalesweep.core.own_files import publish

PLAN = "plan.json"

# Every parameter by name, and what runs scale over.
PointValues = dict[str, Any]


class PlanRun(TypedDict):
    """A planned run and its state."""

    run_id: str
    repeat: int
    position: int  # in the order of start, from 1
    point: PointValues
    work: int | None  # samples in all
    status: str
    cause: str
    detail: str
    # Threads for each core of the fullest node; above 1 it is oversubscribed. None: not known.
    threads_per_core: float | None
    reused: bool  # an earlier experiment has it too
    to_run: bool


class PlanProfile(TypedDict):
    """A profiled run and its state."""

    run_id: str  # its folder's name
    kind: str
    point: PointValues
    status: str
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
    workload: bool


UNKNOWN_PARAMETER: ParameterInfo = {"unit": None, "doc": "", "default": None, "workload": False}


class PlanEstimate(TypedDict):
    """What the pending runs of an experiment will take; None where one of them is not known."""

    wall_s: float | None
    core_hours: float | None


class PlanRepeated(TypedDict):
    """A point that is measured until it is precise."""

    point: PointValues
    state: str  # of analysis.sequential, or "new": not looked at as it is now
    width: float | None  # half width of the interval over the mean; None: none yet
    done: int  # finished repeats
    planned: int  # repeats that are planned so far
    expected: int  # repeats in all, by the spread so far


class PlanRepeats(TypedDict):
    """Repeats until points are precise."""

    least: int
    most: int
    until: float  # half width over the mean
    level: float  # at which intervals are taken, for a coverage of 95 %
    metric: str  # that was looked at; empty: none yet
    points: list[PlanRepeated]


class PlanRound(TypedDict):
    """Runs of a point that were decided on in a round of a budget.

    ``now``, ``expected``: natural logarithms of the upper over the lower bound of what is asked;
    ``node_hours``: of the runs, at most; ``took``: of those that have finished.
    """

    round: int
    point: PointValues
    runs: int
    done: int
    question: str
    now: float
    expected: float
    node_hours: float
    took: float


class PlanSpend(TypedDict):
    """A budget that is spent in rounds (node-hours), and what was decided of an experiment."""

    budget: float
    spent: float
    reserved: float  # of planned runs, at most
    until: float | None  # half width of an interval over its value
    target: str
    ended: str  # why nothing more is decided; empty while it goes on
    rounds: list[PlanRound]


class PlanExperiment(TypedDict):
    """An experiment: what it varies, its runs and their states."""

    name: str
    description: str
    control: bool  # the control point
    benchmark: str
    summary: str
    version: int
    main_metric: str | None
    metrics: dict[str, str]  # definitions
    compare: NotRequired[dict[str, str]]  # metric -> between which runs (analysis.metrics.compared)
    kinds: NotRequired[dict[str, str]]  # metric -> extensive, intensive or latency, where declared
    scaling: str  # weak, strong or none
    scale: str  # what runs scale over: "ranks", or the benchmark's name for devices
    scale_parameters: list[str]  # that the scale is made of
    axes: list[str]  # parameters of more than one value, the scale first
    linked: list[str]  # parameters that the campaign sets together
    work: list[str]  # parameters that decide the work of a rank
    fixed: PointValues
    parameters: dict[str, ParameterInfo]
    runs: list[PlanRun]
    profiles: list[PlanProfile]
    excluded: list[ExcludedPoint]
    points: int
    estimate: PlanEstimate
    predict: NotRequired[list[int]]  # counts of what it scales over to predict; not asked: absent
    stop: NotRequired[str]  # when larger counts of a series are left out
    ceiling: NotRequired[str]  # compute, memory, network or files: its main metric is their most
    noexchange: NotRequired[bool]  # its program can leave out the exchange of gradients
    # Runs of its benchmark that an import refused; left out where there are none.
    refused: NotRequired[int]
    repeats: NotRequired[PlanRepeats]  # where their number is not fixed
    spend: NotRequired[PlanSpend]  # where its points are chosen in rounds


class RefusedRuns(TypedDict):
    """Runs that an import refused for one reason."""

    benchmark: str  # empty where the log does not tell
    reason: str  # of the first
    count: int
    places: list[str]  # of the first few: file, or file:line


class PlanImported(TypedDict):
    """What imports left out, and what is to be doubted of what they took."""

    list: str  # file that names all of it
    refused: list[RefusedRuns]
    doubts: list[str]


class JobShapeEntry(TypedDict):
    """Equal requests to Slurm."""

    sbatch: str
    nodes: int
    tasks: int
    minutes: int
    jobs: int
    runs: list[str]
    expected_s: float | None
    basis: str
    node_hours_expected: float | None
    node_hours_limit: float
    # Where runs share allocations: how many runs each of the jobs has.
    runs_each: NotRequired[list[int]]
    # Where some of these are measured at the same time: how many in a job at most.
    at_once: NotRequired[int]


class PlanUnpacked(TypedDict):
    """What the jobs of pending runs would cost if each had one to itself, and how many runs share
    none because the time limit of one of them is too long."""

    jobs: int
    node_hours_expected: float | None
    node_hours_limit: float
    minutes: int  # of an allocation, at most
    too_long: int
    # From so many seconds on, for which a job of one run holds its nodes beyond the program, shared
    # allocations cost less; null where times are not known.
    break_even_s: NotRequired[float | None]


class PlanJobs(TypedDict):
    """What the jobs of pending runs ask for and cost."""

    shapes: list[JobShapeEntry]
    node_hours_expected: float | None
    node_hours_limit: float
    spent_node_hours: float
    budget_node_hours: float | None
    overhead_s: float | None
    overhead_jobs: int
    unpacked: NotRequired[PlanUnpacked]  # where runs share allocations


class PlanOrder(TypedDict):
    """The order in which runs are started."""

    seed: int | None  # None: as written
    of: int  # runs in all


class PlanCanary(TypedDict):
    """What looking at the machine before and after each pending run costs."""

    runs: int
    seconds: float  # of one run, at most
    total_s: NotRequired[float]  # of all; not in plans of earlier versions


class Plan(TypedDict):
    """All of plan.json; ``digest`` is there once it was written."""

    campaign: str
    description: str
    file: str
    site: str
    results: str
    created: str  # ISO 8601
    order: PlanOrder
    experiments: list[PlanExperiment]
    jobs: PlanJobs | None
    canary: NotRequired[PlanCanary]  # where runs are between two looks at their machine
    ceilings: NotRequired[str]  # results folder of the campaign whose probes measured the site
    islands_per_node: NotRequired[int]  # sockets or NVLink islands of a node; one: absent
    nodes_per_switch_group: NotRequired[int]  # not known: absent
    peaks: NotRequired[dict[str, Any]]  # of a node, by data sheet: as in the site's file
    imported: NotRequired[PlanImported]  # in campaigns of imported runs, where there is any
    digest: NotRequired[str]


def write_plan_file(path: Path, plan: Plan) -> None:
    """Write a plan by rename, with the checksum of all of it."""
    publish(path, sealed(plan))


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
