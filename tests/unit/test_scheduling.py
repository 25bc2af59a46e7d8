"""The order in which `make test` gives tests to its workers."""

from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from tests.conftest import ROOT
from tests.scheduling import (
    OTHER_S,
    SECOND,
    SECONDS,
    SMALL,
    SMALL_CAMPAIGNS,
    WAITING,
    LongestFirst,
    group_of,
    seconds_of,
)

SLOW = ("tests/workflow/test_campaigns.py::test_a", "tests/slurm/test_b.py::T::test_b[x::y]")


def test_groups_are_files_and_two_of_slurm() -> None:
    assert [group_of(test) for test in SLOW] == ["workflow/test_campaigns", "slurm"]
    assert {group_of(f"tests/workflow/{name}.py::test_a") for name in SMALL} == {SMALL_CAMPAIGNS}
    part_2 = (f"tests/slurm/{SECOND[0]}.py::test_a", "tests/acceptance/test_a.py::test_on_slurm")
    assert {group_of(test) for test in part_2} == {"slurm, part 2"}


def test_a_worker_gets_what_takes_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = [f"tests/unit/a/test_{n}.py::test_{place}" for n in (1, 2) for place in range(3 * n)]
    other = "tests/soak/test_new.py::test_c"
    tests = [*unit, other, *SLOW]
    assert seconds_of("soak/test_new", [other]) == OTHER_S
    options = SimpleNamespace(loadscopereorder=True)
    config: Any = SimpleNamespace(option=options, getvalue=lambda name: ["popen"])
    scheduler = LongestFirst(config)
    given: list[str] = []
    node = mock.Mock(shutting_down=False)
    node.send_runtest_some = lambda places: given.extend(tests[place] for place in places)
    scheduler.add_node(node)
    scheduler.add_node_collection(node, tests)
    scheduler.schedule()
    for place in range(len(tests)):
        scheduler.mark_test_complete(node, tests.index(given[place]))
    assert given == [SLOW[1], SLOW[0], other, *unit[3:], *unit[:3]]


def test_a_worker_that_waits_for_slurm_gets_nothing_else() -> None:
    tests = [*SLOW, *(f"tests/workflow/test_{n}.py::test_a" for n in range(4))]
    config: Any = SimpleNamespace(
        option=SimpleNamespace(loadscopereorder=True), getvalue=lambda name: ["popen"] * 3
    )
    scheduler = LongestFirst(config)
    nodes = [mock.Mock(shutting_down=False) for _ in range(3)]
    for node in nodes:
        scheduler.add_node(node)
    for node in nodes:
        scheduler.add_node_collection(node, tests)
    scheduler.schedule()
    waiting, *others = nodes
    waiting.send_runtest_some.assert_called_once_with([tests.index(SLOW[1])])
    waiting.shutdown.assert_called_once_with()
    given = [call.args[0] for node in others for call in node.send_runtest_some.call_args_list]
    assert sorted(place for places in given for place in places) == [0, 2, 3, 4]  # two each


def test_every_known_group_is_there() -> None:
    for group in SECONDS:
        shared = (*WAITING, SMALL_CAMPAIGNS)
        assert group in shared or (ROOT / "tests" / f"{group}.py").is_file(), group
    for name in SMALL:
        assert (ROOT / "tests" / "workflow" / f"{name}.py").is_file(), name
    for name in SECOND:
        assert (ROOT / "tests" / "slurm" / f"{name}.py").is_file(), name
