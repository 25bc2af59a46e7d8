"""Borders of a machine between ranks, and what it costs a series to cross them.

Ranks of a node, of a socket or NVLink island in it, or of the nodes below one switch exchange data
faster among themselves than with others. The first count beyond such a border costs a step that no
smaller count shows; counts on both sides of it do, and so do finished series like it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from scalesweep.analysis.types import Floats

# Where the borders of a machine are not known, a node holds at most so many devices (the largest
# usual number): a count beyond it is taken for the first on a second node.
USUAL_NODE = 8
NODE = "node"


class Border(NamedTuple):
    """The end of a part of a machine: its name (``node``) and the ranks that lie within one."""

    name: str
    ranks: int


class Growth(NamedTuple):
    """A finished series like the one that is predicted: ``ranks[point]``, sorted, and costs."""

    ranks: Floats
    cost: Floats


@dataclass(frozen=True, eq=False)
class Crossing:
    """What similar series say of the growth from the largest measured count to targets.

    ``[target]``: mean of the logarithms of the growth, their squared deviations summed, and the
    number of series; 0 where none reaches both counts.
    """

    growth: Floats
    squares: Floats
    count: Floats


def next_border(ranks: Floats, borders: Sequence[Border] | None, target: float) -> Border | None:
    """The smallest border between the largest measured count and a target; None without any, and
    where the borders are not known."""
    inside = (border for border in borders or () if ranks[-1] <= border.ranks < target)
    return min(inside, key=lambda border: border.ranks, default=None)


def may_cross(ranks: Floats, borders: Sequence[Border] | None, targets: Floats) -> Floats:
    """``[target]``: 1 where a border may lie between the largest measured count and it, else 0."""
    if borders is None:
        borders = (Border(NODE, USUAL_NODE),)
    each = [next_border(ranks, borders, float(target)) is not None for target in targets]
    return np.array(each, np.float64)


def steps(ranks: Floats, cost: Floats, borders: Sequence[Border] | None, places: Floats) -> Floats:
    """``[place]``: logarithm of what is added to the cost of a place, by all borders that it has
    not crossed and the largest measured count has.

    The step of a border is what the cost grows between the counts next to it beyond the usual
    growth per doubling (the median of the pairs of counts between which no border lies), 0 or more.
    """
    added = np.zeros(len(places))
    if not borders or len(ranks) < 2:
        return added
    doublings, logs = np.log2(ranks), np.log(cost)
    slopes = np.diff(logs) / np.diff(doublings)
    ends = [border.ranks for border in borders]
    crossed = np.array([any(a <= end < b for end in ends) for a, b in pairwise(ranks)])
    if crossed.all():
        return added  # every pair crosses one, such as counts of whole nodes: the step is the law
    usual = max(float(np.median(slopes[~crossed])), 0.0)
    for pair in np.flatnonzero(crossed):
        step = (slopes[pair] - usual) * (doublings[pair + 1] - doublings[pair])
        added[places <= ranks[pair]] += max(float(step), 0.0)
    return added


def crossing(ranks: Floats, similar: Sequence[Growth], targets: Floats) -> Crossing:
    """What series with counts on both sides say; between their counts lines in logarithms."""
    growth = np.full((len(similar), len(targets)), np.nan)
    for row, series in enumerate(similar):
        reached = (series.ranks[0] <= ranks[-1]) & (targets <= series.ranks[-1])
        at = np.interp(np.log(targets), np.log(series.ranks), np.log(series.cost))
        start = np.interp(np.log(ranks[-1]), np.log(series.ranks), np.log(series.cost))
        growth[row, reached] = (at - start)[reached]
    known = np.isfinite(growth)
    count = known.sum(axis=0).astype(np.float64)
    mean = np.where(known, growth, 0.0).sum(axis=0) / np.maximum(count, 1.0)
    squares = (np.where(known, growth - mean, 0.0) ** 2).sum(axis=0)
    return Crossing(mean, squares, count)
