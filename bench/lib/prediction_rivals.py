"""Other ways to predict a series, each with the 90 % interval that its residuals give.

Written from their papers; the interval is not part of them (none has one): Student's t on the
residuals' relative standard deviation, as a user would compute it.
"""

from collections.abc import Callable, Mapping
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls
from scipy.special import stdtrit

from scalesweep.analysis.prediction.series import Series
from scalesweep.analysis.types import Floats


class Guess(NamedTuple):
    """Cost at every target and its bounds."""

    cost: Floats
    low: Floats
    high: Floats


def last_value(series: Series, targets: Floats, level: float) -> Guess:
    """The cost of the largest count; its interval from the steps between counts, as a walk."""
    logs = np.log(series.cost)
    steps = np.sqrt(np.log2(targets / series.ranks[-1]))
    half = _quantile(len(logs) - 1, level) * np.sqrt(np.mean(np.diff(logs) ** 2)) * steps
    cost = np.full(len(targets), series.cost[-1])
    return Guess(cost, cost * np.exp(-half), cost * np.exp(half))


def logarithm(series: Series, targets: Floats, level: float) -> Guess:
    """a + b log2 p by least squares."""
    return _linear(series, targets, level, lambda p: np.stack([np.ones_like(p), np.log2(p)], 1))


def ernest(series: Series, targets: Floats, level: float) -> Guess:
    """Non-negative sum of 1, 1/p, log p and p of the time (Venkataraman et al., NSDI 2016).

    The time is the cost in weak scaling, the cost over p in strong scaling.
    """
    strong = series.scaling == "strong"

    def terms(p: Floats) -> Floats:
        columns = np.stack([np.ones_like(p), 1 / p, np.log2(p), p], axis=1)
        return np.asarray(columns * p[:, None] if strong else columns)

    return _linear(series, targets, level, terms, positive=True)


def usl(series: Series, targets: Floats, level: float) -> Guess:
    """Universal Scalability Law: cost a (1 + s (p - 1) + k p (p - 1)), s and k of 0 or more."""

    def terms(p: Floats) -> Floats:
        return np.stack([np.ones_like(p), p - 1, p * (p - 1)], axis=1)

    return _linear(series, targets, level, terms, positive=True)


# Exponents of p and of log2 p in Extra-P's search space (its default for one parameter).
_POWERS = (0, 1 / 4, 1 / 3, 1 / 2, 2 / 3, 3 / 4, 1, 5 / 4, 4 / 3, 3 / 2, 5 / 3, 7 / 4, 2, 9 / 4,
           7 / 3, 5 / 2, 8 / 3, 11 / 4, 3)  # fmt: skip
HYPOTHESES = [(i, j) for i, j in product(_POWERS, (0, 1, 2)) if i or j]


def extra_p(series: Series, targets: Floats, level: float) -> Guess:
    """c0 + c1 p^i log2(p)^j, the hypothesis of least SMAPE leaving one point out, or a constant.

    After Calotoiu et al. (SC 2013) and Ritter et al. (IPDPS 2020).
    """

    def terms(hypothesis: tuple[float, int] | None) -> Callable[[Floats], Floats]:
        def of(p: Floats) -> Floats:
            ones = np.ones_like(p)
            if hypothesis is None:
                return ones[:, None]
            return np.stack([ones, p ** hypothesis[0] * np.log2(p) ** hypothesis[1]], axis=1)

        return of

    def left_out(hypothesis: tuple[float, int] | None) -> float:
        matrix, cost = terms(hypothesis)(series.ranks), series.cost
        errors = []
        for i in range(len(cost)):
            kept = np.arange(len(cost)) != i
            solution = np.linalg.lstsq(matrix[kept], cost[kept], rcond=None)[0]
            guess = float(matrix[i] @ solution)
            errors.append(2 * abs(guess - cost[i]) / (abs(guess) + cost[i]))
        return float(np.mean(errors))

    best = min([None, *HYPOTHESES], key=left_out)
    return _linear(series, targets, level, terms(best))


RIVALS: Mapping[str, Callable[[Series, Floats, float], Guess]] = {
    "last value": last_value,
    "a + b log2 p": logarithm,
    "Ernest": ernest,
    "USL": usl,
    "Extra-P": extra_p,
}


def _linear(
    series: Series,
    targets: Floats,
    level: float,
    terms: Callable[[Floats], Floats],
    positive: bool = False,
) -> Guess:
    matrix = terms(series.ranks)
    if positive:
        solution = nnls(matrix, series.cost)[0]
    else:
        solution = np.linalg.lstsq(matrix, series.cost, rcond=None)[0]
    degrees = max(len(series.ranks) - int((solution != 0).sum()), 1)
    away = (series.cost - matrix @ solution) / series.cost
    cost = np.maximum(terms(targets) @ solution, 1e-9)
    half = _quantile(degrees, level) * float(np.sqrt((away**2).sum() / degrees))
    return Guess(cost, cost * max(1 - half, 0.0), cost * (1 + half))


def _quantile(degrees: int, level: float) -> float:
    return float(stdtrit(degrees, 0.5 + level / 2))
