"""A run on some nodes of its job: all that it starts is there."""

from typing import Any, cast

import pytest

from scalesweep.compute.job_spec import Order
from scalesweep.compute.node_step import on_each_node
from scalesweep.compute.placement import on_nodes, placed, starts_srun


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["srun", "-n", "2", "a"], ["srun", "--nodelist=n1,n2", "-n", "2", "a"]),
        (["/opt/bin/srun", "a"], ["/opt/bin/srun", "--nodelist=n1,n2", "a"]),
        (["python", "gloo.py", "srun", "--", "srun"], None),
    ],
)
def test_the_first_srun_takes_the_nodes(words: list[str], found: list[str] | None) -> None:
    found = found or ["python", "gloo.py", "srun", "--nodelist=n1,n2", "--", "srun"]
    assert starts_srun(words) and on_nodes(words, ["n1", "n2"]) == found
    assert on_nodes(words, ()) == words


def test_what_starts_no_steps_is_left_alone() -> None:
    words = ["mpirun", "-n", "2", "srun.py"]
    assert not starts_srun(words) and on_nodes(words, ["n1"]) == words
    assert starts_srun(on_each_node(2, "power"))


def test_an_order_on_some_nodes() -> None:
    order = cast(Order, {"argv": ["srun", "a"], "canary": {"argv": ["srun", "b"], "results": 1}})
    assert placed(order, ()) is order
    found: Any = placed(order, ["n3"])
    assert found["hosts"] == ["n3"] and found["argv"] == ["srun", "--nodelist=n3", "a"]
    assert found["canary"] == {"argv": ["srun", "--nodelist=n3", "b"], "results": 1}
    assert order["argv"] == ["srun", "a"] and "hosts" not in order
