"""The best choice within a budget, as an integer programme.

Solved by CBC, which comes with PuLP: branch and bound, no part of it at random.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scalesweep.analysis.cbc import SECONDS, THRIFT, cbc


@dataclass(frozen=True)
class Item:
    """Something that can be bought: ``cost`` and ``gain`` are 0 or more.

    Of a ``group`` at most one item is bought (empty: it has none). ``after``: the place of the item
    that has to be bought too; ``needs``: places of items of which one has to be (empty: none has).
    """

    cost: float
    gain: float
    group: str = ""
    after: int | None = None
    needs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Choice:
    """Places of the items bought, in order, what they cost and gain.

    ``gap``: by how much, over the gain, a better choice may exceed it; 0 where it is the best.
    """

    places: tuple[int, ...]
    cost: float
    gain: float
    gap: float


def choose(items: Sequence[Item], budget: float, seconds: float = SECONDS) -> Choice:
    """The items with the largest sum of gains that cost no more than ``budget`` together.

    Where CBC has not proved that within ``seconds``, the best found so far, with its gap from the
    programme without whole numbers.
    """
    if not any(item.cost <= budget and item.gain > 0 for item in items):
        return Choice((), 0.0, 0.0, 0.0)
    import pulp  # some hundredths of a second, which plans are spared

    problem, bought = _programme(pulp, items, budget)
    problem.solve(cbc(seconds))
    places = tuple(i for i, variable in enumerate(bought) if (variable.value() or 0) > 0.5)
    gain = math.fsum(items[i].gain for i in places)
    cost = math.fsum(items[i].cost for i in places)
    if problem.sol_status == pulp.constants.LpSolutionOptimal:
        return Choice(places, cost, gain, 0.0)
    relaxed, _ = _programme(pulp, items, budget)
    relaxed.solve(cbc(seconds, mip=False))
    most = float(pulp.value(relaxed.objective) or math.inf)
    return Choice(places, cost, gain, max(most / gain - 1, 0.0) if gain else math.inf)


def _programme(pulp: Any, items: Sequence[Item], budget: float) -> tuple[Any, list[Any]]:
    """The programme and the variable of each item, 1 where it is bought."""
    problem = pulp.LpProblem("advice", pulp.LpMaximize)
    bought = [problem.add_variable(f"item_{i}", cat="Binary") for i in range(len(items))]
    problem += pulp.lpSum(
        (item.gain - THRIFT * item.cost / budget) * variable
        for item, variable in zip(items, bought, strict=True)
    )
    # In shares of the budget: CBC's tolerances are absolute.
    shares = [item.cost / budget for item in items]
    problem += pulp.lpSum(s * variable for s, variable in zip(shares, bought, strict=True)) <= 1
    groups: dict[str, list[Any]] = {}
    for item, variable in zip(items, bought, strict=True):
        if item.group:
            groups.setdefault(item.group, []).append(variable)
        if item.after is not None:
            problem += variable <= bought[item.after]
        if item.needs:
            problem += variable <= pulp.lpSum(bought[i] for i in item.needs)
    for variables in groups.values():
        problem += pulp.lpSum(variables) <= 1
    return problem, bought


def thrifty(costs: Mapping[Any, float], gains: Mapping[Any, float]) -> list[Any]:
    """The keys, cheapest first, that no other one of the same or a lower cost out-gains."""
    kept: list[Any] = []
    for key in sorted(costs, key=lambda kept: (costs[kept], -gains[kept])):
        if gains[key] > (gains[kept[-1]] if kept else 0.0):
            kept.append(key)
    return kept
