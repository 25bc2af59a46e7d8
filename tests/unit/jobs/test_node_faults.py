"""Which nodes are at fault; and chance, or a wrong program, makes none a suspect for long."""

import random
from pathlib import Path

import pytest

from scalesweep.jobs.node_faults import MOST_NODES, Ending, NodeFaults, suspicions

WRONG = "NON_ZERO_EXIT: exit code 3"
# Runs of other points that succeeded elsewhere, so many that chance explains no two failures.
OTHERS = [Ending(f"x{n}", "x", (f"n{5 + n % 3}",), "", 0.0) for n in range(20)]


def end(run: str, node: str, kind: str = "", at: float = 0.0, point: str = "p") -> Ending:
    return Ending(run, point, tuple(node.split("+")), kind, at)


@pytest.mark.parametrize(
    ("endings", "nodes"),
    [
        # Two runs failed there in the same way, and one of their point succeeded elsewhere.
        ([end("a", "n1", WRONG), end("b", "n1", WRONG), end("c", "n2")], {"n1": True}),
        # Not tried anywhere else so far.
        ([end("a", "n1", WRONG), end("b", "n1", WRONG)], {"n1": False}),
        # What succeeded elsewhere is another point.
        ([end("a", "n1", WRONG), end("b", "n1", WRONG), end("c", "n2", point="q")], {"n1": False}),
        # One run twice is one run; two ways to fail are two.
        ([end("a", "n1", WRONG), end("a", "n1", WRONG), end("c", "n2")], {}),
        ([end("a", "n1", WRONG), end("b", "n1", "TIMEOUT"), end("c", "n2")], {}),
        # It fails elsewhere too, or succeeds there.
        ([end("a", "n1", WRONG), end("b", "n1", WRONG), end("c", "n2", WRONG), end("d", "n2")], {}),
        ([end("a", "n1", WRONG), end("b", "n1", WRONG), end("c", "n1", at=1), end("d", "n2")], {}),
        # It had worked there before.
        ([end("c", "n1", at=-1), end("a", "n1", WRONG), end("b", "n1", WRONG), end("d", "n2")],
         {"n1": True}),
        # Of nodes that are always together none can be told from the others.
        ([end("a", "n1+n2", WRONG), end("b", "n1+n3", WRONG), end("c", "n2+n3")], {"n1": True}),
    ],
)  # fmt: skip
def test_what_makes_a_node_a_suspect(endings: list[Ending], nodes: dict[str, bool]) -> None:
    found = {one.node: one.confirmed for one in suspicions([*endings, *OTHERS])}
    assert found == nodes
    # With little else to go by, it may be chance.
    assert not any(one.confirmed for one in suspicions(endings))


def test_many_nodes_say_nothing_of_one() -> None:
    many = "+".join(f"n{n}" for n in range(MOST_NODES + 1))
    assert suspicions([end(run, many, WRONG) for run in "ab"] + [end("c", "m1")]) == []


def accused(runs: int, crashes: float, broken: set[int], seed: int) -> tuple[bool, int]:
    """Whether a sound node is called at fault in a campaign of 10 points, some of which fail always
    and any run by chance; and how many runs were tried again elsewhere."""
    draw, endings, trials, told = random.Random(seed), list[Ending](), 0, False
    for number in range(runs):
        point = number % 10
        # Slurm fills one node before it takes the next: most runs are on few nodes.
        node = min(3, int(draw.expovariate(1.0)))
        for _ in range(2):
            kind = WRONG if point in broken else "KILLED" if draw.random() < crashes else ""
            endings.append(end(str(number), f"n{node}", kind, number, str(point)))
            now = suspicions(endings)
            told = told or any(one.confirmed for one in now)
            if not any(str(number) in one.run_ids and not one.confirmed for one in now):
                break
            trials, node = trials + 1, (node + 1) % 4
    return told, trials


@pytest.mark.parametrize(
    ("crashes", "broken"), [(0.05, {1, 2}), (0.05, set()), (0.0, {3, 4}), (0.2, set())]
)
def test_a_sound_node_is_rarely_called_at_fault(crashes: float, broken: set[int]) -> None:
    found = [accused(40, crashes, broken, seed) for seed in range(100)]
    assert sum(told for told, _ in found) <= 5
    # A program that is wrong costs a job or two.
    assert sum(trials for _, trials in found) <= 200


def test_a_node_that_swallows_runs_is_found_after_two(tmp_path: Path) -> None:
    faults = NodeFaults(tmp_path, clock=lambda: 1000.0)
    faults.endings += [one._replace(at=1000.0) for one in OTHERS]
    assert faults.note_end(end("a", "n1", WRONG, 1000.0)) == []
    assert faults.worth_a_trial("a") == ""
    assert faults.note_end(end("b", "n1", WRONG, 1001.0)) == []
    assert faults.worth_a_trial("b") == "n1" and faults.worth_a_trial("a") == ""
    (line,) = faults.note_end(end("b", "n2", "", 1002.0))
    assert line.startswith(
        f"n1: 2 runs failed there in the same way ({WRONG}), none succeeded there"
    )
    assert faults.worth_a_trial("a") == "n1" and faults.avoided() == ["n1"]
    faults.keep()
    assert NodeFaults.read(tmp_path, lambda: 2000.0).avoided() == ["n1"]
    assert NodeFaults.read(tmp_path, lambda: 90_000.0).avoided() == []


def test_a_program_that_fails_elsewhere_too_clears_the_node(tmp_path: Path) -> None:
    faults = NodeFaults(tmp_path, clock=lambda: 1000.0)
    for run in "ab":
        faults.note_end(end(run, "n1", WRONG, 1000.0))
    assert faults.worth_a_trial("b") == "n1"
    (line,) = faults.note_end(end("b", "n2", WRONG, 1001.0))
    assert line.startswith("n1: asked for again") and faults.avoided() == []


def test_a_damaged_file_is_none(tmp_path: Path) -> None:
    (tmp_path / ".nodes.json").write_text('{"format": 1, "lost": 3}')
    assert NodeFaults.read(tmp_path).avoided() == []
