"""How the values of ``scalesweep.analysis.prediction.calibration`` were found.

python -m bench.lib.prediction_calibration
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from bench.lib.prediction_laws import STRONG, WEAK, simulate
from scalesweep.analysis.prediction.calibration import CALIBRATION, Calibration, Side
from scalesweep.analysis.prediction.intervals import SCATTER_STRENGTH, quantile
from scalesweep.analysis.prediction.public_series import PUBLIC
from scalesweep.analysis.prediction.rolling import FIRST_ORIGIN
from scalesweep.analysis.prediction.series import Series, make_series, refusal
from scalesweep.analysis.prediction.weights import combine, fit_models
from scalesweep.analysis.types import Floats

SEED = 20_261_122  # not that of bench.prediction
OF_A_KIND = 200
# Of 95 % intervals: rows without a change of regime and with one that have to be within.
WANTED = (0.935, 0.86)
# Weight of the public series; simulated ones without and with a change of regime have 1 each.
PUBLIC_WEIGHT = 0.7
# Keeps values where they are of which the rows say nothing.
PULL = 4e-3
SHARED = ("scatter", "rate", "strength")
OF_A_SIDE = ("noise", "models", "regime", "power", "slope")


@dataclass(frozen=True, eq=False)
class Rows:
    """Forecasts of many series: what was measured, and what their intervals are made of.

    All ``[row]``, logarithms of the cost: ``error`` (measured less forecast), ``spread`` of the
    models, expected ``change``; ``distance`` in doublings; ``squares`` of the points' deviations
    with their ``degrees``; ``rolled``, the sum of the mean squares of so many rolling forecasts
    (``origins``). ``weight``: of each series 1 in all; ``half``: whether it is a forecast from the
    smaller half of the counts.
    """

    error: Floats
    distance: Floats
    spread: Floats
    change: Floats
    squares: Floats
    degrees: Floats
    rolled: Floats
    origins: Floats
    weight: Floats
    half: Floats


def rows(many: Iterable[Series]) -> Rows:
    """The rows of every origin of every series that is not refused."""
    found = [row for series in many for row in _rows(series)]
    return Rows(*np.array(found).T)


def _rows(series: Series) -> list[list[float]]:
    """Those of one series: of every count from those below it, three or more."""
    count = len(series.ranks)
    fits = fit_models(series, np.empty(0))
    logs, doublings = np.log(series.cost), np.log2(series.ranks)
    said = {k: combine(fits, series, k) for k in range(FIRST_ORIGIN, count)}
    found: list[list[float]] = []
    for k, forecast in said.items():
        if refusal(series.first(k)):
            continue
        there = forecast.weights > 0
        away = fits.log_cost[k][there, :k] - logs[:k]
        away = away - away.mean(axis=1, keepdims=True)
        squares = float(forecast.weights[there] @ (away**2).sum(axis=1))
        rolled = [
            np.mean(
                ((said[origin].log_cost[origin:k] - logs[origin:k])
                 / (doublings[origin:k] - doublings[origin - 1])) ** 2
            )
            for origin in range(FIRST_ORIGIN, k)
        ]  # fmt: skip
        common = [squares, SCATTER_STRENGTH + max(k - 2, 1), float(sum(rolled)), len(rolled)]
        for i in range(k, count):
            own = [
                logs[i] - forecast.log_cost[i],
                doublings[i] - doublings[k - 1],
                forecast.spread[i],
                forecast.log_cost[i] - forecast.log_cost[k - 1],
            ]
            found.append([*own, *common, 1.0, k == (count + 1) // 2])
    for row in found:
        row[-2] /= len(found)
    return found


def deviation(them: Rows, rule: Calibration, side: Side) -> Floats:
    """``Sources.total`` of one side of every row."""
    noise = (SCATTER_STRENGTH * rule.scatter**2 + them.squares) / them.degrees
    rate = (rule.strength * rule.rate**2 + them.rolled) / (rule.strength + them.origins)
    far = side.regime**2 * rate * them.distance ** (2 * side.power)
    far = far + (side.slope * them.change) ** 2
    spread = (side.models * them.spread) ** 2
    return np.asarray(np.sqrt(side.noise**2 * noise + spread + far), np.float64)


def covered(them: Rows, rule: Calibration, level: float) -> tuple[float, float, float]:
    """Share of the rows from smaller halves within their interval; its mean width and interval
    score over the measured cost."""
    times = quantile(rule, level)
    low, high = (
        sign * times * deviation(them, rule, side) - them.error
        for sign, side in ((-1, rule.low), (1, rule.high))
    )
    width = np.exp(high) - np.exp(low)
    outside = np.maximum(np.exp(low) - 1, 0) + np.maximum(1 - np.exp(high), 0)
    each = np.stack([outside == 0, width, width + 2 / (1 - level) * outside])
    inside, mean, score = each[:, them.half == 1].mean(axis=1).tolist()
    return inside, mean, score


def _values(rule: Calibration) -> list[float]:
    sides = [getattr(side, name) for side in (rule.low, rule.high) for name in OF_A_SIDE]
    return [*(getattr(rule, name) for name in SHARED), *sides]


def _rule(values: Sequence[float], degrees: float, factor: float = 1.0) -> Calibration:
    """The rule of these values, its intervals so many times as wide."""
    first, size = len(SHARED), len(OF_A_SIDE)

    def side(start: int) -> Side:
        noise, models, regime, power, slope = values[start : start + size]
        return Side(noise * factor, models * factor, regime * factor, power, slope * factor)

    shared = dict(zip(SHARED, values[:first], strict=True))
    return Calibration(**shared, low=side(first), high=side(first + size), degrees=degrees)


def _loss(logs: Floats, start: Floats, degrees: float, sets: list[tuple[Rows, float]]) -> float:
    """The negative log likelihood: Student's t with a scale for each side."""
    rule = _rule(np.exp(logs).tolist(), degrees)
    loss = PULL * float(((logs - start) ** 2).sum())
    for them, weight in sets:
        low, high = (deviation(them, rule, side) for side in (rule.low, rule.high))
        off = them.error / np.where(them.error > 0, high, low)
        each = np.log(low + high) + (degrees + 1) / 2 * np.log1p(off**2 / degrees)
        loss += weight * float(np.average(each, weights=them.weight))
    return loss


def calibrate(scaling: str) -> Calibration:
    """Minimise the negative log likelihood, then scale until enough is covered; print both."""
    random = np.random.default_rng(SEED)
    kinds = STRONG if scaling == "strong" else WEAK
    many = OF_A_KIND * (3 if scaling == "strong" else 1)

    def drawn(change: bool) -> Rows:
        series = (simulate(kind, random, change) for kind in kinds for _ in range(many))
        return rows(make_series(one.ranks, one.cost, scaling) for one in series)

    sets = {"steady": (drawn(False), 1.0), "changed": (drawn(True), 1.0)}
    if scaling == "weak":
        sets["public"] = (rows(one.series() for one in PUBLIC), PUBLIC_WEIGHT)
    old = CALIBRATION[scaling]
    start = np.log(_values(old))
    best = minimize(_loss, start, (start, old.degrees, [*sets.values()]), "BFGS").x
    values = np.exp(best).tolist()
    for factor in np.arange(0.6, 2.0, 0.01):
        rule = _rule(values, old.degrees, factor)
        reached = [covered(sets[name][0], rule, 0.95)[0] for name in ("steady", "changed")]
        if all(a >= b for a, b in zip(reached, WANTED, strict=True)):
            break
    print(scaling, rule)
    for name, (them, _) in sets.items():
        for level in (0.5, 0.9, 0.95):
            share, width, score = covered(them, rule, level)
            print(f"  {name:8} {level:.0%}: {share:.1%} within, width {width:.3f}, {score:.3f}")
    return rule


if __name__ == "__main__":
    for each in CALIBRATION:
        calibrate(each)
