"""Which varying parameters are directions of a study, and which only follow others."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from scalesweep.core.files import canonical_json
from scalesweep.core.plan_format import PlanExperiment, PointValues

Points = Sequence[Mapping[str, Any]]


def planned_points(experiment: PlanExperiment) -> list[PointValues]:
    """Every planned point of an experiment once."""
    # Of two imported experiments with the same points, the second has no repeat 0.
    return list({canonical_json(run["point"]): run["point"] for run in experiment["runs"]}.values())


def _mark(value: Any) -> Hashable:
    """What tells a value from others: 1, 1.0 and true are three."""
    if isinstance(value, int | float | str):
        return type(value), value
    return canonical_json(value)


def most_values(points: Points, given: Sequence[str], name: str) -> int:
    """The most values that ``name`` takes among points that agree in ``given``."""
    values: dict[Hashable, set[Hashable]] = {}
    for point in points:
        key = tuple([_mark(point.get(other)) for other in given])
        values.setdefault(key, set()).add(_mark(point.get(name)))
    return max(map(len, values.values()), default=0)


def determined(leader: str, follower: str, points: Points) -> bool:
    """Whether every value of ``leader`` comes with one value of ``follower`` in all points."""
    return most_values(points, [leader], follower) <= 1


def series_parameters(experiment: PlanExperiment) -> list[str]:
    """Varying parameters whose values tell one scaling series from another.

    ``experiment`` is an entry of the plan. All but what the runs scale over (``scale``: the
    ranks, or the devices) and those that follow it: a parameter with one value per rank count (a
    batch size or a share of the samples linked to the ranks) changes along a series. In strong
    scaling neither do the parameters that set the amount of work (``work`` in the plan) tell
    series apart; the samples in all do. Those that make up the scale (ranks and devices per rank)
    do so only where one series would else hold two ways to the same number of devices.
    """
    scale, parts = experiment["scale"], set(experiment["scale_parameters"])
    points = planned_points(experiment)
    work = experiment["work"] if experiment["scaling"] == "strong" else ()
    names = [
        name
        for name in experiment["axes"]
        if name not in {scale, *work, *parts} and most_values(points, [scale], name) > 1
    ]
    return names + _splits(experiment, points, names)


# The axes of a mesh that take the ranks which the others leave.
DATA_PARALLEL = ("dp", "dp_replicate", "dp_shard")


def layout_followers(experiment: PlanExperiment) -> list[str]:
    """Varying parameters of a layout that its other choices leave no room for.

    With so many ranks the data-parallel axes of the mesh take what tp, pp, ... leave, and the
    accumulation takes what micro-batch and data-parallel ranks leave of the global batch: where all
    planned points agree, comparing two values of tp "with all else equal" lets these follow.
    """
    roles = [experiment.get("mesh", {}).get(role) for role in DATA_PARALLEL]
    candidates = [*roles, experiment.get("transformer", {}).get("accumulation")]
    if not any(roles):
        return []
    points = planned_points(experiment)
    free = list(experiment["axes"])
    followers = []
    for name in candidates:
        if name not in free or name == experiment["scale"]:
            continue
        rest = [other for other in free if other != name]
        if most_values(points, rest, name) <= 1:
            free = rest
            followers.append(name)
    return followers


def _splits(experiment: PlanExperiment, points: Points, names: Sequence[str]) -> list[str]:
    """Parts of the scale, other than ranks, that ``scale`` and ``names`` leave open."""
    scale = experiment["scale"]
    return [
        part
        for part in experiment["scale_parameters"]
        if part not in ("ranks", scale)
        and part in experiment["axes"]
        and most_values(points, [scale, *names], part) > 1
    ]


def fold_axes(experiment: PlanExperiment) -> tuple[list[str], dict[str, list[str]]]:
    """Split the varying parameters into independent ones and those that only follow them.

    Linked parameters (a model with its image size; a batch size set per rank count) are one
    direction of a study, not two: drawn apart they would give a grid that is nearly empty.
    Of two that determine each other the first leads, and the scale always leads. The parts of the
    scale (ranks and devices per rank) follow it, but for what it leaves open.
    """
    scale = experiment["scale"]
    points = planned_points(experiment)
    parts = set(experiment["scale_parameters"]) - {scale}
    axes = [name for name in experiment["axes"] if name not in parts]
    order = sorted(axes, key=lambda name: name != scale)
    follows: dict[str, str] = {}
    for i, name in enumerate(order):
        if name == scale:
            continue
        for j, other in enumerate(order):
            if other == name or other in follows or not determined(other, name, points):
                continue
            if j < i or not determined(name, other, points):
                follows[name] = other
                break
    leaders = [name for name in order if name not in follows]
    leaders += _splits(experiment, points, [name for name in leaders if name != scale])
    followers: dict[str, list[str]] = {name: [] for name in leaders}
    for name, first in follows.items():
        leader = first
        while leader in follows:
            leader = follows[leader]
        followers[leader].append(name)
    return leaders, followers
