"""The data sets that a campaign reads: their sizes, the nodes that hold them, who shares them."""

import math
from collections.abc import Sequence

from scalesweep.config.campaign import Campaign
from scalesweep.config.site import Site
from scalesweep.core.formatting import counted, listed, number, scaled_unit
from scalesweep.core.plan_format import PlanDataSet, PlanExperiment

_GIB = 2**30


def data_sets(campaign: Campaign, entries: Sequence[PlanExperiment]) -> list[PlanDataSet]:
    """The data sets that the runs of a plan's experiments read, in plan order.

    ``entries``: of the campaign's experiments, in their order.
    """
    site = campaign.site
    sets: dict[str, PlanDataSet] = {}
    together: dict[str, int] = {}  # runs to come that are not kept apart, by data set
    for experiment, entry in zip(campaign.experiments, entries, strict=True):
        data = experiment.benchmark.data
        if data is None or site.launch is None:
            continue
        folders: dict[str, set[str]] = {}
        for point in experiment.points:
            size = sum(data.needed(point).values()) * int(data.bytes_per_file(point))
            if not size:
                continue
            name = data.folder(point)
            known = sets.setdefault(
                name,
                {"name": name, "experiments": [], "bytes": 0, "nodes": None, "spilling": 0,
                 "overlapping": 0},
            )  # fmt: skip
            if experiment.name not in known["experiments"]:
                known["experiments"].append(experiment.name)
            known["bytes"] = max(known["bytes"], size)
            least = nodes_to_hold(size, site)
            known["spilling"] += least is not None and site.nodes_for(point) < least
            folders.setdefault(name, set()).add(experiment.benchmark.identity_of(point))
        if not folders:
            continue
        identity = experiment.benchmark.identity_of
        for run, planned in zip(experiment.runs, entry["runs"], strict=True):
            if planned["reused"] or not planned["to_run"]:
                continue
            key = identity(run.point)
            for name, identities in folders.items():
                if key in identities:
                    sets[name]["overlapping"] += 1
                    together[name] = together.get(name, 0) + (not experiment.alone)
    for known in sets.values():
        known["nodes"] = nodes_to_hold(known["bytes"], site)
        # Runs that wait for all before them overlap only with those that do not.
        if site.concurrent_runs == 1 or known["overlapping"] < 2 or not together.get(known["name"]):
            known["overlapping"] = 0
    return list(sets.values())


def nodes_to_hold(size: int, site: Site) -> int | None:
    """How many of a site's nodes have memory for so many bytes together; None if it is unknown."""
    if site.memory_gib_per_node is None:
        return None
    return max(1, math.ceil(size / (site.memory_gib_per_node * _GIB)))


def data_set_lines(sets: Sequence[PlanDataSet], memory_gib: float | None) -> list[str]:
    """What the plan says of data sets that are larger than a node's memory (``memory_gib``, GiB),
    and of runs that read the same at the same time."""
    lines = [
        _size_line(each, each["nodes"], memory_gib)
        for each in sets
        if memory_gib is not None and each["nodes"] is not None and each["nodes"] > 1
    ]
    if shared := [each for each in sets if each["overlapping"]]:
        names = list(dict.fromkeys(name for each in shared for name in each["experiments"]))
        runs = sum(each["overlapping"] for each in shared)
        what = "the same data set" if len(shared) == 1 else f"{len(shared)} data sets"
        lines.append(
            f"may overlap: {counted(runs, 'run')} of {listed(names, 3)} read {what}; for one after "
            "the other: concurrent_runs: 1 in the campaign"
        )
    return lines


def _size_line(each: PlanDataSet, nodes: int, memory_gib: float) -> str:
    factor, unit = scaled_unit("bytes", each["bytes"])
    text = (
        f"data set of {listed(each['experiments'], 3)}: files of up to "
        f"{number(each['bytes'] * factor)} {unit}, which take the memory of at least {nodes:,} "
        f"nodes ({memory_gib:g} GiB each; system, framework and model need memory besides)"
    )
    if each["spilling"]:
        text += f"; {counted(each['spilling'], 'point')} on fewer nodes than hold what they read"
    return text
