"""Data sets that are larger than a node's memory, and how many nodes hold them."""

import math
from collections.abc import Sequence

from scalesweep.config.campaign import Campaign
from scalesweep.core.formatting import listed, number, scaled_unit
from scalesweep.core.plan_format import PlanDataSet

_GIB = 2**30


def data_sets(campaign: Campaign) -> list[PlanDataSet]:
    """The data sets that the campaign's points read, in their order; none where the memory of the
    site's nodes is not known."""
    memory, sets = campaign.site.memory_gib_per_node, dict[str, PlanDataSet]()
    if memory is None or campaign.site.launch is None:
        return []
    for experiment in campaign.experiments:
        data = experiment.benchmark.data
        for point in experiment.points if data else ():
            assert data is not None
            size = sum(data.needed(point).values()) * int(data.bytes_per_file(point))
            if size:
                name = data.folder(point)
                known = sets.setdefault(
                    name, {"name": name, "experiments": [], "bytes": 0, "nodes": 1}
                )
                if experiment.name not in known["experiments"]:
                    known["experiments"].append(experiment.name)
                known["bytes"] = max(known["bytes"], size)
                known["nodes"] = math.ceil(known["bytes"] / (memory * _GIB))
    return [*sets.values()]


def data_set_lines(sets: Sequence[PlanDataSet]) -> list[str]:
    """A line for each data set that takes more than a node."""
    lines = []
    for each in sets:
        if each["nodes"] > 1:
            factor, unit = scaled_unit("bytes", each["bytes"])
            lines.append(
                f"data set of {listed(each['experiments'], 3)}: files of up to "
                f"{number(each['bytes'] * factor)} {unit}, which take the memory of at least "
                f"{each['nodes']:,} nodes"
            )
    return lines
