"""Which few of many options to try, where only the best of those that are tried will be used.

A second option that is good for the same reason as the first adds little, so options are chosen as
a set, by an integer programme (PuLP, CBC): the largest sum of the chances that the best of all is
among them and, in each of some scenarios, of the best share that one of them reaches there.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.cbc import SECONDS, THRIFT, cbc
from scalesweep.analysis.types import Floats

# The programme considers so many options of a question: those with the highest chance, and in each
# scenario those with the highest share.
LIKELY, BEST_THERE = 80, 15


@dataclass(frozen=True, eq=False)
class Options:
    """What may be tried, and at most ``count`` of it is.

    ``chance[option]``: that it is the best of all, by what is expected; ``shares[scenario,
    option]``: of the best rate there, 0 to 1; ``weight``: probability of the scenarios together;
    ``costs[option]``: 0 or more, infinite where it cannot be tried.
    """

    chance: Floats
    shares: Floats
    weight: float
    costs: Floats
    count: int

    def gain(self, places: Sequence[int]) -> float:
        """What trying these is worth, 0 to 1."""
        if not places:
            return 0.0
        chosen = list(places)
        covered = float(self.shares[:, chosen].max(axis=1).mean()) if len(self.shares) else 0.0
        chance = float(self.chance[chosen].sum())
        return (1 - self.weight) * chance + self.weight * covered

    def added(self, place: int, others: Sequence[int]) -> float:
        """What an option adds to others."""
        return self.gain([*others, place]) - self.gain(others)

    def looked_at(self, budget: float | None) -> list[int]:
        """Places that the programme looks at."""
        most = math.inf if budget is None else budget
        able = np.flatnonzero(np.isfinite(self.costs) & (self.costs <= most))
        kept = set(able[np.argsort(-self.chance[able], kind="stable")][:LIKELY].tolist())
        for there in self.shares:
            kept |= set(able[np.argsort(-there[able], kind="stable")][:BEST_THERE].tolist())
        return sorted(kept)


def choose_best_of(
    asked: Sequence[Options], budget: float | None = None, seconds: float = SECONDS
) -> list[list[int]]:
    """Of each question the places to try, what adds most first; together they cost no more than
    ``budget`` (None: whatever they cost).

    Where CBC has not proved the best choice within ``seconds``, the best that it found.
    """
    looked = [options.looked_at(budget) for options in asked]
    if not any(looked):
        return [[] for _ in asked]
    import pulp  # some hundredths of a second, which plans are spared

    problem = pulp.LpProblem("best_of", pulp.LpMaximize)
    gains: list[Any] = []
    prices: list[Any] = []
    tried: list[dict[int, Any]] = []
    for number, (options, places) in enumerate(zip(asked, looked, strict=True)):
        costs = options.costs[places]
        whole = budget or max(1.0, float(costs.sum()))
        taken = {i: problem.add_variable(f"try_{number}_{i}", cat="Binary") for i in places}
        tried.append(taken)
        problem += pulp.lpSum(taken.values()) <= options.count
        for i, variable in taken.items():
            own = (1 - options.weight) * float(options.chance[i])
            share = float(options.costs[i]) / whole
            gains.append((own - THRIFT * share) * variable)
            prices.append(share * variable)
        for scene, shares in enumerate(options.shares):
            each = options.weight / len(options.shares)
            used = {
                i: problem.add_variable(f"use_{number}_{scene}_{i}", lowBound=0, upBound=1)
                for i in places
            }
            problem += pulp.lpSum(used.values()) <= 1
            for i, variable in used.items():
                problem += variable <= taken[i]
                gains.append(each * float(shares[i]) * variable)
    problem += pulp.lpSum(gains)
    if budget is not None:
        problem += pulp.lpSum(prices) <= 1
    problem.solve(cbc(seconds))
    return [
        _ordered(options, [i for i, variable in taken.items() if (variable.value() or 0) > 0.5])
        for options, taken in zip(asked, tried, strict=True)
    ]


def _ordered(options: Options, places: Sequence[int]) -> list[int]:
    """Chosen places, each the one that adds most to those before it."""
    left, order = list(places), list[int]()
    while left:
        best = max(left, key=lambda i: options.added(i, order))
        order.append(best)
        left.remove(best)
    return order
