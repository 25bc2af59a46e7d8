"""The error of means and ratios of repeated runs: one for intervals and for claims.

A block holds one run of every point, in random order, and blocks run one after the other
(``scalesweep.config.repeats``). The logarithms of what was measured are taken as

    log y[point, block] = level[point] + state[block] + error[point, block],

the two-way layout of randomised complete blocks (Montgomery, Design and Analysis of Experiments,
chapter 4): in a ratio of two points the state of the machine cancels, block by block. Where that
leaves fewer than four degrees of freedom, or a run is missing, the state counts as noise.

A point alone has too few repeats to tell its variance. Points share theirs: each counts with its
own, by its degrees of freedom, and with the mean of all, by ``PRIOR`` degrees (moderated variances;
Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004, article 3, who estimates
the weight of the prior from many thousand variances; a handful tells nothing of it). Noise that
grows threefold along the points is covered; tests/acceptance/test_clear.py simulates it.

Pure functions on NumPy arrays.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.stats import LogError, identical
from scalesweep.analysis.types import Floats, Places

# Degrees of freedom that the mean variance of all points counts with, beside a point's own.
PRIOR = 4.0
# Blocks are taken out where so many degrees of freedom are left.
LEAST_FREE = 4
_ROUNDING = 1e-24  # a variance that is rounding, not scatter


@dataclass(frozen=True)
class Layout:
    """Points whose runs started block by block: ``runs[point, block]`` are places of runs."""

    points: Sequence[Hashable]
    runs: Places


def layouts(
    points: Sequence[Hashable], repeats: Sequence[int], started: Sequence[float]
) -> list[Layout]:
    """Which runs form randomised blocks, by each run's point, number of repeat and start in s.

    Points go together that have the same repeats, two or more, and whose first repeats all began
    before any second one: what was added or run again on another day is on its own. Left out are
    points with a run that began more than half a block before its block or after it, and those of
    which a start is not known (NaN).
    """
    of_point: dict[Hashable, dict[int, int]] = {}
    for run, (point, repeat) in enumerate(zip(points, repeats, strict=True)):
        of_point.setdefault(point, {})[repeat] = run
    alike: dict[tuple[int, ...], list[Hashable]] = {}
    for point, runs in of_point.items():
        if len(runs) > 1:
            alike.setdefault(tuple(sorted(runs)), []).append(point)
    began = np.asarray(started, np.float64)
    layouts = []
    for numbers, members in alike.items():
        grid = np.array([[of_point[point][number] for number in numbers] for point in members])
        for places in _cohorts(began[grid]):
            kept = places[_in_order(began[grid[places]])]
            if kept.size > 1:
                layouts.append(Layout([members[place] for place in kept.tolist()], grid[kept]))
    return layouts


def start_seconds(text: Any) -> float:
    """A run's start, as records have it, in s since 1970; NaN where it is not known."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return math.nan


def _cohorts(began: Floats) -> list[Places]:
    """Places of the points, of ``began[point, block]``, whose first blocks began together."""
    known = np.flatnonzero(np.isfinite(began).all(axis=1))
    order = known[np.argsort(began[known, 0], kind="stable")].tolist()
    groups: list[list[int]] = []
    second = -math.inf
    for place in order:
        if began[place, 0] >= second:
            groups.append([])
            second = math.inf
        groups[-1].append(place)
        second = min(second, began[place, 1])
    return [np.array(group, np.intp) for group in groups]


def _in_order(began: Floats) -> NDArray[np.bool_]:
    """Which points of ``began[point, block]`` have each run in its block, or half a block off."""
    points, blocks = began.shape
    order = np.empty(began.size)
    order[np.argsort(began, axis=None, kind="stable")] = np.arange(began.size)
    middle = points * np.arange(blocks) + (points - 1) / 2
    return np.asarray((np.abs(order.reshape(began.shape) - middle) <= points).all(axis=1))


class Variance(NamedTuple):
    """An estimate of a variance, and its degrees of freedom."""

    value: float
    degrees: float


class Errors:
    """What the repeats of points tell of the error of each point's mean, and of ratios.

    ``values``: by point the repeats. ``grids``: points that ran in blocks, with ``[point, block]``
    (NaN: missing). ``logs``: errors are of logarithms, and values that are not all positive have
    none; else of the values themselves. Unless ``shared`` each point has its own variance alone.
    What ``unlike`` ones share is the median, as single ones may scatter far more than the others.
    """

    def __init__(
        self,
        values: Mapping[Hashable, Floats],
        grids: Iterable[tuple[Sequence[Hashable], Floats]] = (),
        *,
        logs: bool = True,
        shared: bool = True,
        unlike: bool = False,
    ) -> None:
        usable = {
            point: np.log(repeats) if logs else repeats for point, repeats in values.items()
            if repeats.size > 1 and not identical(repeats) and (not logs or (repeats > 0).all())
        }  # fmt: skip
        self._sizes = {point: repeats.size for point, repeats in usable.items()}
        own = {p: Variance(float(x.var(ddof=1)), x.size - 1) for p, x in usable.items()}
        self._free = sum(each.degrees for each in own.values())
        self._own = _moderated(own, self._free, unlike) if shared else own
        self._grids: dict[Hashable, _Grid] = {}
        for points, table in grids if shared else ():
            whole = np.isfinite(table).all(axis=1)
            kept = [place for place, point in enumerate(points) if point in usable and whole[place]]
            if len(kept) > 1:
                rows = table[kept]
                grid = _Grid([points[place] for place in kept], np.log(rows) if logs else rows)
                if grid.rest > _ROUNDING:
                    self._grids.update(dict.fromkeys(grid.variances, grid))

    def mean(self, point: Hashable) -> LogError | None:
        """Of a point's mean; None where its repeats tell no scatter."""
        if point not in self._own:
            return None
        if (grid := self._grids.get(point)) is not None:
            return grid.mean(point)
        value, degrees = self._own[point]
        return LogError(math.sqrt(value / self._sizes[point]), degrees)

    def ratio(self, top: Hashable, bottom: Hashable) -> LogError | None:
        """Of the difference of two points' means (of logarithms: of their ratio), within the blocks
        that both ran in; None where the repeats of one tell no scatter."""
        if top not in self._own or bottom not in self._own:
            return None
        sizes = (self._sizes[top], self._sizes[bottom])
        grid = self._grids.get(top)
        if grid is not None and bottom in grid.variances and grid.free >= LEAST_FREE:
            return _apart(grid.variances[top], grid.variances[bottom], sizes, grid.free)
        return _apart(self._own[top], self._own[bottom], sizes, self._free)


class _Grid:
    """Complete blocks: ``table[point, block]``."""

    def __init__(self, points: Sequence[Hashable], table: Floats) -> None:
        count, self.blocks = table.shape
        free = self.blocks - 1
        self.free = (count - 1) * free
        residuals = table - table.mean(axis=0)
        residuals -= residuals.mean(axis=1, keepdims=True)
        # Unbiased where all errors have the same variance.
        own = (residuals**2).sum(axis=1) * count / (count - 1) / free
        self.rest = float(own.mean())
        # Of a single run: what blocks differ by has the expectation residual + points * state.
        self._between = float(table.mean(axis=0).var(ddof=1))
        self._part = 1 - 1 / count
        each = {p: Variance(float(v), free) for p, v in zip(points, own, strict=True)}
        self.variances = _moderated(each, self.free)

    def mean(self, point: Hashable) -> LogError:
        """Of a point's mean over the blocks, the state of the machine in it."""
        value, degrees = self.variances[point]
        parts = Variance(self._between, self.blocks - 1), Variance(value * self._part, degrees)
        return _apart(*parts, (self.blocks, self.blocks), math.inf)


def _moderated(
    own: Mapping[Hashable, Variance], limit: float, unlike: bool = False
) -> dict[Hashable, Variance]:
    """Each variance with the mean of all, or with their median; no more than ``limit`` degrees of
    freedom."""
    free = sum(each.degrees for each in own.values())
    shared = sum(each.degrees * each.value for each in own.values()) / free if own else 0.0
    if unlike and own:
        from scipy.special import chdtri

        # Of the median of chi-squared, over its mean.
        shared = float(np.median([v * d / chdtri(d, 0.5) for v, d in own.values()]))
    return {
        point: Variance(
            (PRIOR * shared + degrees * value) / (PRIOR + degrees), min(PRIOR + degrees, limit)
        )
        for point, (value, degrees) in own.items()
    }


def _apart(first: Variance, second: Variance, sizes: tuple[int, int], limit: float) -> LogError:
    """Of the sum or difference of two means; degrees of freedom after Welch and Satterthwaite."""
    parts = (first.value / sizes[0], second.value / sizes[1])
    total = sum(parts)
    shares = [part / total for part in parts]
    degrees = 1 / (shares[0] ** 2 / first.degrees + shares[1] ** 2 / second.degrees)
    return LogError(math.sqrt(total), min(degrees, limit))
