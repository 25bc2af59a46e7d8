"""The borders of a machine that a series' ranks cross, and finished series that tell what it costs.

A node is known from the points; islands in it (sockets, NVLink) and groups of nodes below a switch
from the site's file.
"""

from collections.abc import Sequence

import numpy as np

from scalesweep.analysis.prediction.topology import NODE, Border, Growth
from scalesweep.tables.machine import Machine, whole_point
from scalesweep.tables.points import ExperimentData, Measure, Point
from scalesweep.tables.rank_layout import Layout
from scalesweep.tables.witnesses import witnesses

ISLAND, SWITCH_GROUP = "island", "switch group"
# What logs of others state of nodes is read as a parameter only where they state it.
_IMPORTED = "imported"


def borders_of(
    data: ExperimentData, points: Sequence[Point], machine: Machine | None
) -> tuple[Border, ...] | None:
    """The borders between the ranks of a series, the smallest first; None where its nodes are not
    known.

    ``points`` by scale. Points that fill nodes differently have the nodes of the largest that takes
    several; where none does, no node is known. Imported points of one rank for each node are not
    believed: that is what a log gives that says nothing.
    """
    layouts = [Layout.of(whole_point(data, point)) for point in points]
    several = [layout for layout in layouts if layout.nodes > 1]
    per_node = {layout.per_node for layout in (several[-1:] or layouts)}
    # Devices of one process lie on its node, however many; a table's devices are its ranks.
    ranks_scale = all(
        layout.ranks == point.values[data.scale]
        for layout, point in zip(layouts, points, strict=True)
    )
    if not ranks_scale or len(per_node) != 1:
        return None
    ranks = per_node.pop()
    if ranks == 1 and points[-1].source == _IMPORTED:
        return None
    borders = [Border(NODE, ranks)]
    islands, group = (machine.islands, machine.switch_group) if machine else (1, 0)
    if islands > 1 and ranks % islands == 0 and ranks > islands:
        borders.insert(0, Border(ISLAND, ranks // islands))
    if group > 1:
        borders.append(Border(SWITCH_GROUP, ranks * group))
    return tuple(borders)


def similar_series(
    data: ExperimentData,
    own: Sequence[Point],
    groups: Sequence[Sequence[Point]],
    measure: Measure,
    machine: Machine | None = None,
) -> tuple[Growth, ...]:
    """Series like that of ``own`` points, which tell what a border costs: the others of the
    experiment that have its source and nodes, and what the machine knows of other experiments and
    campaigns (``tables.witnesses``). The same measured points count once."""
    growths = []
    layout = Layout.of(whole_point(data, own[-1])).per_node
    for group in groups:
        known = {
            float(point.values[data.scale]): float(values.mean())
            for point in group
            if point.source == own[-1].source
            and Layout.of(whole_point(data, point)).per_node == layout
            and (values := data.repeats(point, measure)).size
            and values.mean() > 0
        }
        if len(known) > 1 and not any(point in own for point in group):
            counts = np.array(sorted(known))
            values = np.array([known[count] for count in counts.tolist()])
            growths.append(Growth(counts, data.costs(measure, counts, values)))
    for witness in witnesses(machine, data, own, measure):
        if not any(_shares_points(witness, other) for other in growths):
            growths.append(witness)
    return tuple(growths)


def _shares_points(growth: Growth, other: Growth) -> bool:
    """Whether two series have a measured point in common."""
    pairs = (set(zip(each.ranks, each.cost, strict=True)) for each in (growth, other))
    return bool(set.intersection(*pairs))
