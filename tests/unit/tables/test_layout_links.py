"""Links of layouts from all-reduce probes."""

import numpy as np
import pytest

from scalesweep.analysis.model_shape import ModelShape
from scalesweep.analysis.network_fit import fit_network, predicted_seconds
from scalesweep.tables.layout_links import probed_costs
from scalesweep.tables.machine import UNKNOWN, Machine, Network
from scalesweep.tables.rank_layout import Layout

SHAPE = ModelShape(layers=32, width=4096, sequence=4096, parameters=8e9, dtype="bfloat16")
SIZES = np.geomspace(1e3, 1e9, 13)
POINT = {"ranks": 8, "ranks_per_node": 8}


def network(algorithm: str, ranks: int, bandwidth: float, where: str = "probe") -> Network:
    seconds = predicted_seconds(algorithm, ranks, SIZES, 1e-5, bandwidth)
    fits = fit_network(np.full(len(SIZES), float(ranks)), SIZES, seconds)
    return Network(Layout(ranks, 8), {}, fits, where)


def test_links_within_a_node_and_between_nodes_are_told_apart() -> None:
    machine = Machine(networks=[network("ring", 8, 4e11), network("ring", 32, 5e10)])
    costs = probed_costs(machine, POINT, 8, SHAPE, "samples/s")
    assert costs["dp ring inside"] == pytest.approx(4 / 4e11, rel=0.01)
    assert costs["dp ring between"] == pytest.approx(4 / 5e10, rel=0.02)
    # 31 hops of 32 ranks on four nodes: three between nodes.
    assert costs["dp hops between"] == pytest.approx(2 * 1e-5 * 31 / 3, rel=0.05)
    tokens = probed_costs(machine, POINT, 8, SHAPE, "tokens/s")
    assert tokens["dp ring inside"] == pytest.approx(costs["dp ring inside"] / 4096)


def test_a_tree_is_read_as_the_bandwidth_that_a_rank_sees() -> None:
    machine = Machine(networks=[network("tree", 8, 4e11)])
    costs = probed_costs(machine, POINT, 8, SHAPE, "samples/s")
    # 2 log2(8) S / B for what a ring moves in 2 (7/8) S / B'.
    assert costs["dp ring inside"] == pytest.approx(4 * (3 * 8 / 7) / 4e11, rel=0.01)
    assert "dp ring between" not in costs


def test_without_probes_of_these_ways_nothing_is_said() -> None:
    assert probed_costs(UNKNOWN, POINT, 8, SHAPE, "samples/s") == {}
    machine = Machine(networks=[network("ring", 16, 5e10)])
    assert probed_costs(machine, POINT, 4, SHAPE, "samples/s") == {}  # nodes are fuller there
    assert probed_costs(machine, POINT, 8, SHAPE, "steps/s") == {}
