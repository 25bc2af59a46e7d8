"""Numbers and names of machines in the forms of the kernel and of Slurm."""

import pytest

from scalesweep.core.host import cpu_set, node_names


@pytest.mark.parametrize(
    ("names", "expanded"),
    [
        ("", ()),
        ("node[1-3,07],login", ("node1", "node2", "node3", "node07", "login")),
        ("nid[0008-0010]", ("nid0008", "nid0009", "nid0010")),
        ("r[1-2]n[1-2].hpc,gpu5", ("r1n1.hpc", "r1n2.hpc", "r2n1.hpc", "r2n2.hpc", "gpu5")),
    ],
)
def test_names_of_nodes(names: str, expanded: tuple[str, ...]) -> None:
    assert node_names(names) == expanded


def test_a_set_of_cpus() -> None:
    assert (cpu_set({9, 0, 1, 2, 7, 10}), cpu_set(set())) == ("0-2,7,9-10", "")
