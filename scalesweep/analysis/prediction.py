"""What counts that were not measured will cost: three laws, judged by their rolling forecasts.

A cost is rank-seconds for a unit of work, so that perfect scaling is a constant. Each kind of
scaling has three laws of a constant and one growing term, both 0 or more. They are weighted by how
well they forecast the measured counts from the smaller ones (combining beats choosing if few
forecasts tell: J. M. Bates and C. W. J. Granger, 1969). docs/methods/prediction.md has formulas and
the measured error.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.core.formatting import counted

Law = Callable[[Floats], Floats]
# The growing term of each law, by kind of scaling. Of a strong time, a constant is ``p`` here:
# Amdahl's law (1967); log2 p levels of a tree and (p - 1)/p of a ring are those of an exchange
# (Thakur, Rabenseifner and Gropp, 2005).
LAWS: Mapping[str, Mapping[str, Law]] = {
    "weak": {"log2(p)": np.log2, "p": lambda p: p, "(p - 1)/p": lambda p: 1 - 1 / p},
    "strong": {"p": lambda p: p, "p log2(p)": lambda p: p * np.log2(p), "log2(p)": np.log2},
}
LEAST_COUNTS, LEAST_RANGE = 3, 4.0
FARTHEST = 8.0  # a target over the largest measured count
# Beside its own rolling forecasts a series has so many of this error per square root of a doubling.
PRIOR, PRIOR_ERROR = 2, 0.1
# Bounds of the cost over that error, by level: 95 % and 90 %; found on published series
# (tests/acceptance/test_prediction.py), as a border that only others have crossed has its own.
BOUNDS: Mapping[str, tuple[float, float]] = {
    "weak": (1.0, 2.0), "strong": (2.0, 3.6), "border": (3.0, 3.2),
}  # fmt: skip
LEVELS: Mapping[float, float] = {0.95: 1.0, 0.90: 0.75}
_DISCOUNT = 0.5  # weight of a point a doubling below the largest
_SOFT = 0.05  # errors that a law may have before its weight falls


@dataclass(frozen=True, eq=False)
class Series:
    """Measured points of a series, by count.

    ``ranks[point]``, ascending; ``cost[point]`` in any unit, positive; ``scatter``: relative
    standard deviation of a run, NaN if unknown; ``scaling``: weak or strong; ``node``: ranks of a
    node, 0 if unknown; ``others``: ranks and costs of further series of the program, on nodes as
    full.
    """

    ranks: Floats
    cost: Floats
    scaling: str
    scatter: float = np.nan
    node: int = 0
    others: Sequence[tuple[Floats, Floats]] = ()

    def first(self, count: int) -> "Series":
        """Its smallest points."""
        return replace(self, ranks=self.ranks[:count], cost=self.cost[:count])

    def crosses(self, target: float) -> bool:
        """Whether the first step to a second node lies between the measured counts and a target."""
        return bool(self.node and self.ranks[-1] <= self.node < target)

    def growth(self, target: float) -> float | None:
        """Logarithm of the growth from the largest measured count to a target, the median of other
        series that have both; None without any."""
        ends = np.log([self.ranks[-1], target])
        grown = [
            float(np.diff(np.interp(ends, np.log(ranks), np.log(cost)))[0])
            for ranks, cost in self.others
            if ranks[0] <= self.ranks[-1] and ranks[-1] >= target
        ]
        return float(np.median(grown)) if grown else None


@dataclass(frozen=True, eq=False)
class Prediction:
    """Logarithms of the cost at ``targets``; ``weights`` of the laws by name."""

    series: Series
    targets: Floats
    log_cost: Floats
    weights: Mapping[str, float]

    @property
    def cost(self) -> Floats:
        """Expected cost ``[target]`` in the unit of the series."""
        return np.asarray(np.exp(self.log_cost), np.float64)

    @property
    def law(self) -> str:
        """The law of the largest weight."""
        return max(self.weights, key=lambda name: self.weights[name])

    @cached_property
    def error(self) -> float:
        """Error per square root of a doubling: of the rolling forecasts and the prior ones."""
        errors, doublings = forecasts(self.series)
        total = float((errors**2 / doublings).sum()) + PRIOR * PRIOR_ERROR**2
        return float(np.sqrt(total / (len(errors) + PRIOR)))

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper bound of the cost ``[target]``, at one of ``LEVELS``.

        They widen with the square root of the doublings; two deviations of a run are the least.
        """
        kinds = ["border" if self.series.crosses(t) else self.series.scaling for t in self.targets]
        away = np.sqrt(np.maximum(np.log2(self.targets / self.series.ranks[-1]), 0.0))
        bounds = np.array([BOUNDS[kind] for kind in kinds]).reshape(-1, 2)
        sizes = LEVELS[level] * self.error * away[:, None] * bounds
        sizes = np.maximum(sizes, np.nan_to_num(2 * LEVELS[level] * self.series.scatter))
        return np.exp(self.log_cost - sizes[:, 0]), np.exp(self.log_cost + sizes[:, 1])


def predict(series: Series, targets: Sequence[float] | Floats) -> Prediction:
    """The cost at counts beyond the largest measured one. Raises ValueError on a series that does
    not suffice (``refusal``)."""
    if why := refusal(series):
        raise ValueError(why)
    places = np.asarray(targets, np.float64)
    weights = _weights(series)
    log_cost = weights @ _fits(series, places)
    for i, target in enumerate(places):
        grown = series.growth(target) if series.crosses(target) else None
        if grown is not None:
            log_cost[i] = np.log(series.cost[-1]) + grown
    names = LAWS[series.scaling]
    return Prediction(series, places, log_cost, dict(zip(names, weights.tolist(), strict=True)))


def _fits(series: Series, targets: Floats) -> Floats:
    """``[law, target]``: logarithms of the cost, through the largest measured point."""
    from scipy.optimize import nnls

    p, cost = series.ranks, series.cost
    weight = np.sqrt(_DISCOUNT ** np.log2(p[-1] / p))
    logs = []
    for law in LAWS[series.scaling].values():
        terms = np.stack([np.ones(len(p)), law(p)], axis=1)
        sizes, _ = nnls(terms / cost[:, None] * weight[:, None], weight)
        there = np.concatenate([p[-1:], targets])
        fitted = np.log(np.stack([np.ones(len(there)), law(there)], axis=1) @ sizes)
        logs.append(fitted[1:] + np.log(cost[-1]) - fitted[0])
    return np.array(logs).reshape(len(LAWS[series.scaling]), len(targets))


def _weights(series: Series) -> Floats:
    """``[law]``: by the squares of errors per doubling of their forecasts from every first two or
    more points."""
    squares = np.full(len(LAWS[series.scaling]), _SOFT**2)
    for count in range(2, len(series.ranks)):
        known, later = series.first(count), series.ranks[count:]
        away = _fits(known, later) - np.log(series.cost[count:])
        squares += (away**2 / np.log2(later / known.ranks[-1])).sum(axis=1)
    weights: Floats = 1 / squares / (1 / squares).sum()
    return weights


def forecasts(series: Series) -> tuple[Floats, Floats]:
    """Logarithms of measured over forecast cost of every count, forecast from every two or more
    smaller ones, and the doublings between."""
    errors, doublings = [np.empty(0)], [np.empty(0)]
    for count in range(2, len(series.ranks)):
        known, later = series.first(count), series.ranks[count:]
        errors.append(np.log(series.cost[count:]) - _weights(known) @ _fits(known, later))
        doublings.append(np.log2(later / known.ranks[-1]))
    return np.concatenate(errors), np.concatenate(doublings)


def held(series: Series) -> tuple[int, int]:
    """How many of the next measured counts lay within their 95 % interval, and of how many, from
    every first points that a prediction is made of."""
    ends = []
    for count in range(LEAST_COUNTS, len(series.ranks)):
        known = series.first(count)
        if not refusals(known, series.ranks[count : count + 1])[0]:
            low, high = predict(known, series.ranks[count : count + 1]).interval()
            ends.append(bool(low[0] <= series.cost[count] <= high[0]))
    return sum(ends), len(ends)


def refusal(series: Series) -> str:
    """Why nothing is predicted from a series, with what to measure; empty if it suffices."""
    counts = series.ranks.tolist()
    first = counts[0] if counts else 1.0
    if len(counts) >= LEAST_COUNTS and counts[-1] >= LEAST_RANGE * first:
        return ""
    missing = [first * 2**k for k in range(LEAST_COUNTS) if first * 2**k not in counts]
    return (
        f"{counted(len(counts), 'count')} measured, and a prediction needs {LEAST_COUNTS} over a "
        f"factor of {LEAST_RANGE:g}: measure {' and '.join(f'{n:,.0f}' for n in missing)} too"
    )


def refusals(series: Series, targets: Sequence[float] | Floats, scale: str = "ranks") -> list[str]:
    """``[target]``: why nothing is said of a count, with what to measure; empty if something is.

    ``scale``: the word for what is counted.
    """
    why = refusal(series)
    return [why or _refused(series, float(target), scale) for target in targets]


def _refused(series: Series, target: float, scale: str) -> str:
    largest = int(series.ranks[-1])
    if target < largest:
        return f"{target:,.0f} {scale} are fewer than the largest measured count of {largest:,}"
    if target > FARTHEST * largest:
        return (
            f"{target:,.0f} {scale} are more than {FARTHEST:g} times the largest measured count of "
            f"{largest:,}: measure in between"
        )
    if series.crosses(target) and series.growth(target) is None:
        return (
            f"{target:,.0f} {scale} take more than one node of {series.node:,}, and no measured "
            f"count does: measure {2 * series.node:,} {scale} on two nodes"
        )
    return ""
