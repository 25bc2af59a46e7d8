"""How the values of ``scalesweep.analysis.prediction.calibration`` were found.

python -m bench.lib.prediction_calibration
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from bench.lib.prediction_laws import STRONG, WEAK, simulate
from scalesweep.analysis.prediction.calibration import CALIBRATION, Calibration
from scalesweep.analysis.prediction.forecast import predict
from scalesweep.analysis.prediction.intervals import SCATTER_STRENGTH, quantile
from scalesweep.analysis.prediction.public_series import PUBLIC
from scalesweep.analysis.prediction.rolling import FIRST_ORIGIN
from scalesweep.analysis.prediction.series import Series, make_series, refusal
from scalesweep.analysis.prediction.weights import combine
from scalesweep.analysis.types import Floats

SEED = 20_261_122  # not that of bench.prediction
OF_A_KIND = 80
# Of 95 % intervals: rows without a change of regime and with one that have to be within.
WANTED = (0.935, 0.86)
NAMES = ("scatter", "rate", "strength", "models", "noise", "power", "up", "down", "slope")


def facts(series: Series) -> list[list[float]]:
    """What the intervals of the larger half of a series are made of, a row per count."""
    half = (len(series.ranks) + 1) // 2
    known = series.first(half)
    found = predict(known, series.ranks[half:])
    fits, final = found.fits, found.final
    logs, doublings = np.log(series.cost), np.log2(series.ranks)
    there = final.weights > 0
    away = fits.log_cost[half][there, :half] - logs[:half]
    away = away - away.mean(axis=1, keepdims=True)
    squares = float(final.weights[there] @ (away**2).sum(axis=1))
    rolled = [
        np.mean(
            ((combine(fits, known, k).log_cost[k:half] - logs[k:half])
             / (doublings[k:half] - doublings[k - 1])) ** 2
        )
        for k in range(FIRST_ORIGIN, half)
    ]  # fmt: skip
    common = [squares, SCATTER_STRENGTH + max(half - 2, 1), float(sum(rolled)), len(rolled)]
    return [
        [
            logs[i] - final.log_cost[i],
            doublings[i] - doublings[half - 1],
            final.spread[i],
            final.log_cost[i] - final.log_cost[half - 1],
            *common,
        ]
        for i in range(half, len(logs))
    ]


def _table(many: Iterable[Series]) -> Floats:
    return np.array([row for one in many for row in facts(one)]).T


def deviation(table: Floats, rule: Calibration) -> Floats:
    """``Sources.total`` of every row of ``facts``."""
    _, distance, spread, change, squares, degrees, rolled, origins = table
    noise = rule.noise**2 * (SCATTER_STRENGTH * rule.scatter**2 + squares) / degrees
    rate = (rule.strength * rule.rate**2 + rolled) / (rule.strength + origins)
    far = rate * distance ** (2 * rule.power) + (rule.slope * change) ** 2
    return np.asarray(np.sqrt(noise + (rule.models * spread) ** 2 + far), np.float64)


def covered(table: Floats, rule: Calibration, level: float) -> tuple[float, float]:
    """Share of the rows within their interval, and its mean width over the forecast."""
    half, error = quantile(rule, level) * deviation(table, rule), table[0]
    inside = (error <= rule.up * half) & (error >= -rule.down * half)
    return float(inside.mean()), float(np.mean(np.exp(rule.up * half) - np.exp(-rule.down * half)))


def _loss(logs: Floats, start: Floats, degrees: float, sets: list[tuple[Floats, float]]) -> float:
    rule = Calibration(*np.exp(logs), degrees=degrees)
    loss = 0.004 * float(((logs - start) ** 2).sum())
    for table, weight in sets:
        scale = deviation(table, rule)
        side = np.where(table[0] > 0, rule.up, rule.down) * scale
        tails = (degrees + 1) / 2 * np.log1p((table[0] / side) ** 2 / degrees)
        loss += weight * float(np.mean(np.log((rule.up + rule.down) * scale) + tails))
    return loss


def calibrate(scaling: str) -> Calibration:
    """Minimise the negative log likelihood, then widen until enough is covered; print both."""
    random = np.random.default_rng(SEED)
    kinds = STRONG if scaling == "strong" else WEAK
    many = OF_A_KIND * (3 if scaling == "strong" else 1)

    def drawn(change: bool, count: int) -> Floats:
        series = (simulate(kind, random, change) for kind in kinds for _ in range(count))
        return _table(make_series(one.ranks, one.cost, scaling) for one in series)

    steady, changed = drawn(False, many), drawn(True, many // 2)
    sets = [(steady, 1.0), (changed, 0.4)]
    public: Floats | None = None
    if scaling == "weak":
        halves = [one.series() for one in PUBLIC]
        public = _table(one for one in halves if not refusal(one.first((len(one.ranks) + 1) // 2)))
        sets.append((public, 0.7))
    old = CALIBRATION[scaling]
    start = np.log([getattr(old, name) for name in NAMES])
    options: dict[str, Any] = {"maxfev": 5000, "maxiter": 5000}
    best = minimize(_loss, start, (start, old.degrees, sets), "Nelder-Mead", options=options).x
    values = dict(zip(NAMES, np.exp(best).tolist(), strict=True))
    for factor in np.arange(0.7, 2.0, 0.02):
        wider = values | {side: factor * values[side] for side in ("up", "down")}
        rule = Calibration(**wider, degrees=old.degrees)
        reached = (covered(steady, rule, 0.95)[0], covered(changed, rule, 0.95)[0])
        if all(a >= b for a, b in zip(reached, WANTED, strict=True)):
            break
    print(scaling, {name: round(getattr(rule, name), 4) for name in NAMES})
    for name, table in (("steady", steady), ("changed", changed), ("public", public)):
        if table is not None:
            for level in (0.5, 0.9, 0.95):
                share, width = covered(table, rule, level)
                print(f"  {name:8} {level:.0%}: {share:.1%} within, width {width:.3f}")
    return rule


if __name__ == "__main__":
    for each in CALIBRATION:
        calibrate(each)
