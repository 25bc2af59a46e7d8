"""The integer programme, against every subset of small problems."""

import math

import numpy as np
import pytest

from scalesweep.analysis.advice.choice import Choice, Item, choose, thrifty
from scalesweep.analysis.cbc import THRIFT


def exhaustive(items: list[Item], budget: float) -> Choice:
    """The best subset, by trying all."""
    best = Choice((), 0.0, 0.0, 0.0)
    for number in range(2 ** len(items)):
        places = tuple(i for i in range(len(items)) if number >> i & 1)
        there, picked = set(places), [items[i] for i in places]
        groups = [item.group for item in picked if item.group]
        cost = math.fsum(item.cost for item in picked)
        gain = math.fsum(item.gain for item in picked)
        allowed = len(set(groups)) == len(groups) and all(
            (item.after is None or item.after in there)
            and (not item.needs or there & set(item.needs))
            for item in picked
        )
        if allowed and cost <= budget and gain > best.gain:
            best = Choice(places, cost, gain, 0.0)
    return best


def made(seed: int) -> tuple[list[Item], float]:
    """Two groups of sets, steps of repeats that need one of them, and a chain of its own."""
    random = np.random.default_rng(seed)
    items = [Item(float(random.uniform(1, 9)), float(random.uniform(0, 1)), group=group)
             for group in "aabbb"]  # fmt: skip
    for needs in ((0, 1), (2,), ()):
        after = None
        gain, cost = float(random.uniform(0.1, 0.6)), float(random.uniform(0.2, 3))
        for step in range(3):
            first = needs if after is None else ()
            items.append(Item(cost, gain / math.sqrt(step + 1), after=after, needs=first))
            after = len(items) - 1
    return items, float(random.uniform(4, 16))


@pytest.mark.parametrize("seed", range(8))
def test_as_good_as_the_best_of_all_subsets(seed: int) -> None:
    items, budget = made(seed)
    found, best = choose(items, budget), exhaustive(items, budget)
    assert found.gap == 0
    assert found.cost == pytest.approx(math.fsum(items[i].cost for i in found.places))
    assert found.cost <= budget * (1 + 1e-9)
    assert found.gain == pytest.approx(best.gain, abs=THRIFT)


def test_repeats_come_in_their_order_and_only_with_their_count() -> None:
    items = [
        Item(5, 0.5, group="s"),
        Item(1, 0.4, needs=(0,)),
        Item(1, 0.3, after=1),
    ]
    assert choose(items, 7).places == (0, 1, 2)
    assert choose(items, 6).places == (0, 1)
    assert choose(items, 4).places == ()  # no repeat of what was not measured


def test_nothing_is_bought_that_teaches_nothing_or_costs_too_much() -> None:
    assert choose([], 10) == Choice((), 0, 0, 0)
    assert choose([Item(1, 0), Item(11, 1)], 10).places == ()
    assert choose([Item(9, 1e-4), Item(1, 0.2)], 10).places == (1,)


def test_the_gap_is_stated_where_the_best_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    import pulp

    items, budget = made(3)
    whole = pulp.LpProblem.solve

    def hurried(problem: pulp.LpProblem, solver: pulp.COIN_CMD) -> int:
        status = int(whole(problem, solver))
        problem.sol_status = pulp.constants.LpSolutionIntegerFeasible
        return status

    monkeypatch.setattr(pulp.LpProblem, "solve", hurried)
    found = choose(items, budget)
    best = exhaustive(items, budget)
    assert found.gain * (1 + found.gap) >= best.gain
    assert 0 <= found.gap < 1


def test_what_costs_more_and_gains_less_is_left_out() -> None:
    costs = {"a": 1.0, "b": 2.0, "c": 2.0, "d": 3.0, "none": 0.5}
    gains = {"a": 0.2, "b": 0.1, "c": 0.4, "d": 0.4, "none": 0.0}
    assert thrifty(costs, gains) == ["a", "c"]
