"""Simulated scaling series: twelve kinds of laws, with noise, outliers and changes of regime.

Of the cost of a unit of work (rank-seconds) over rank counts that double. How much a law adds up to
the largest count is drawn (3 to 80 % in weak scaling, 10 to 300 % in strong scaling), and so are
the noise between runs (0.2 to 3 %) and the number of counts (7 to 11, most from 1 rank).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.types import Floats

WEAK = (
    *("constant", "log", "ring", "ring + log", "power", "linear"),
    *("usl", "file system", "straggler", "overlap"),
)
STRONG = ("amdahl", "strong collectives")
OUTLIERS = 0.04  # share of points that are 4 to 15 % slow


@dataclass(frozen=True, eq=False)
class Simulated:
    """A series: its kind, scaling, ``ranks[point]`` and observed ``cost[point]``."""

    kind: str
    scaling: str
    ranks: Floats
    cost: Floats


def simulate(kind: str, random: np.random.Generator, change: bool = False) -> Simulated:
    """Draw one series of a kind; with ``change`` it has a change of regime at a drawn place.

    A change is a step of 5 to 20 % (another switch group), or a slope of 2 to 10 % per doubling
    more from there on.
    """
    scaling = "strong" if kind in STRONG else "weak"
    count = int(random.integers(7, 12))
    first = 1 if random.random() < 0.75 else int(random.choice([2, 4, 6, 8]))
    ranks = first * 2.0 ** np.arange(count)
    cost = law(kind, ranks, random)
    if change:
        place, at = np.arange(count), random.uniform(1, count - 1)
        if random.random() < 0.5:
            cost = cost * np.where(place > at, 1 + random.uniform(0.05, 0.2), 1.0)
        else:
            cost = cost * (1 + random.uniform(0.02, 0.1) * np.maximum(0.0, place - at))
    noise = np.exp(random.uniform(np.log(0.002), np.log(0.03)))
    cost = cost * np.exp(noise * random.standard_normal(count))
    slow = random.random(count) < OUTLIERS
    return Simulated(
        kind, scaling, ranks, cost * np.where(slow, 1 + random.uniform(0.04, 0.15, count), 1.0)
    )


def law(kind: str, p: Floats, random: np.random.Generator) -> Floats:
    """The cost of a drawn law of a kind at rank counts, of which the last is the largest."""
    low, high = (0.1, 3.0) if kind in STRONG else (0.03, 0.8)
    growth = float(np.exp(random.uniform(np.log(low), np.log(high))))
    share, power = random.uniform(0.2, 0.8), random.uniform(1, 4)
    if kind == "constant":
        return np.ones_like(p)
    if kind == "file system":  # the slower of its own work and a shared capacity, smoothly
        return np.asarray((1 + ((1 + growth) ** (power + 0.5) - 1) * (p / p[-1]) ** (power + 0.5))
                          ** (1 / (power + 0.5)))  # fmt: skip
    mixed = share * _ring(p) + (1 - share) * np.log2(p) / np.log2(p[-1])
    if kind == "overlap":  # communication partly hidden behind computation (Pollux, OSDI 2021)
        return np.asarray((1 + ((1 + growth) ** power - 1) * (mixed / mixed[-1]) ** power)
                          ** (1 / power))  # fmt: skip
    shapes: Mapping[str, Callable[[], Floats]] = {
        "log": lambda: np.log2(p),
        "ring": lambda: _ring(p),
        "ring + log": lambda: mixed,
        "power": lambda: p ** random.uniform(0.3, 0.55) - 1,
        "linear": lambda: p - 1,
        "usl": lambda: share * (p - 1) / p[-1] + (1 - share) * p * (p - 1) / p[-1] ** 2,
        "straggler": lambda: np.sqrt(2 * np.log(p)),
        "amdahl": lambda: p - 1,
        "strong collectives": lambda: p * np.log2(p),
    }
    shape = shapes[kind]()
    return np.asarray(1 + growth * shape / shape[-1], np.float64)


def _ring(p: Floats) -> Floats:
    return (p - 1) / p
