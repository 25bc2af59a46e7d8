"""What trying a layout is worth: the chance that it is the best, and what it would be if links
between nodes turned out slower than forecast."""

import math
from collections.abc import Sequence

import numpy as np

from scalesweep.analysis.choose_best_of import Options
from scalesweep.analysis.types import Floats

# How much slower links between nodes may be than forecast, each as likely as the others; together
# they have the probability SLOW. bench.layouts says what that costs and saves.
FACTORS = (2.0, 5.0, 10.0, 20.0)
SLOW = 0.3
# Smallest spread of a method's errors (of logarithms): few layouts, or ones alike, show less.
LEAST_SPREAD = 0.05


def spread_of(errors: Floats) -> float:
    """The spread of a method's errors as a standard deviation, whatever single runs did."""
    return max(LEAST_SPREAD, 1.4826 * float(np.median(np.abs(errors - np.median(errors)))))


def worth_of(
    costs: Floats, spread: float, slower: Sequence[Floats], possible: Sequence[bool], count: int
) -> Options:
    """What trying each layout is worth, of which up to ``count`` are.

    ``costs[layout]``: forecast logarithms of rank-seconds a sample; ``slower``: the same in each
    scenario. With errors that follow Gumbel's law of that spread, the chance to be the best is the
    softmax of the costs over its scale (McFadden, 1974).
    """
    able = np.array(possible, np.bool_) & np.isfinite(costs)
    chance = np.zeros(len(costs))
    if able.any():
        scale = spread * math.sqrt(6) / math.pi
        chance[able] = np.exp(-(costs[able] - costs[able].min()) / scale)
        chance /= chance.sum()
    shares = np.zeros((len(slower), len(costs)))
    for scene, there in zip(shares, slower, strict=True):
        if able.any():
            scene[able] = np.exp(there[able].min() - there[able])
    return Options(chance, shares, SLOW, np.where(able, 0.0, np.inf), count)
