"""Slurm's lists of nodes, expanded without Slurm."""

import pytest

from scalesweep.core.host_list import expand


@pytest.mark.parametrize(
    ("names", "expanded"),
    [
        ("", ()),
        ("login", ("login",)),
        ("node[1-3,07]", ("node1", "node2", "node3", "node07")),
        ("nid[0008-0011]", ("nid0008", "nid0009", "nid0010", "nid0011")),
        ("r[1-2]n[1-2].hpc,gpu5", ("r1n1.hpc", "r1n2.hpc", "r2n1.hpc", "r2n2.hpc", "gpu5")),
        ("a[1,x]", ("a1", "ax")),
        ("a[3-1]", ()),
    ],
)
def test_names_of_nodes(names: str, expanded: tuple[str, ...]) -> None:
    assert expand(names) == expanded
