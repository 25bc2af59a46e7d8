"""Intervals of a forecast from four sources, in logarithms of the cost.

1. repeats: the standard error of the measured means, where it is known;
2. scatter between runs: what the points deviate from the models beyond that;
3. spread of the models: their weighted standard deviation at the target;
4. an allowance for a change of regime, which no fit shows: it grows with log2(target / largest
   measured), and with the change that the models expect. Its size per doubling is that of the
   series' own rolling forecasts, drawn towards that of the series behind ``calibration``.

They add as squares; a bound is a quantile of Student's t. Each side has factors of its own, because
what goes wrong differs: growth that the models expect may stop, which is a lower cost; a change of
regime, and growth that no point shows yet, is a higher one, and the more the further away.
"""

from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.prediction.calibration import CALIBRATION, Calibration
from scalesweep.analysis.prediction.rolling import FIRST_ORIGIN
from scalesweep.analysis.prediction.series import Series
from scalesweep.analysis.prediction.weights import Fits, Forecast, combine
from scalesweep.analysis.types import Floats

# Points that the expected scatter weighs as much as.
SCATTER_STRENGTH = 3
# Sides of an interval: towards lower and towards higher cost.
LOW, HIGH = 0, 1


@dataclass(frozen=True, eq=False)
class Sources:
    """Standard deviations of the logarithm ``[side, target]`` by source, ``LOW`` and ``HIGH``; they
    add as squares. ``point``: that of a point's own scatter between runs, on either side."""

    repeats: Floats
    scatter: Floats
    models: Floats
    regime: Floats
    point: float

    @property
    def total(self) -> Floats:
        """All four together."""
        parts = (self.repeats, self.scatter, self.models, self.regime)
        return np.asarray(np.sqrt(sum(part**2 for part in parts)), np.float64)

    def shares(self, place: int) -> dict[str, float]:
        """The share of each source in the variance at a target, both sides together."""
        names = ("repeats", "scatter", "models", "regime")
        squares = {name: float((getattr(self, name)[:, place] ** 2).sum()) for name in names}
        return {name: part / sum(squares.values()) for name, part in squares.items()}


def sources(
    fits: Fits, series: Series, final: Forecast, targets: Floats, rule: Calibration | None = None
) -> Sources:
    """The four sources at ``targets``, the rank counts that ``fits`` was made for."""
    rule = rule or CALIBRATION[series.scaling]
    count = len(series.ranks)
    scatter, repeats = _noise(fits, series, final, rule)
    sides = (rule.low, rule.high)
    doublings = np.maximum(np.log2(targets / series.ranks[-1]), 0.0)
    expected = final.log_cost[count:] - final.log_cost[count - 1]
    # What a probe has measured is not continued from the points: its share of the slope is known.
    probed = [model.exposed is not None for model in fits.models]
    unknown = 1 - float(final.weights[probed].sum())
    rate, ones = _rate(fits, series, rule), np.ones(len(targets))
    return Sources(
        repeats=np.stack([side.noise * repeats * ones for side in sides]),
        scatter=np.stack([side.noise * scatter * ones for side in sides]),
        models=np.stack([side.models * final.spread[count:] for side in sides]),
        regime=np.stack([
            np.hypot(side.regime * rate * doublings**side.power, side.slope * unknown * expected)
            for side in sides
        ]),
        point=scatter,
    )  # fmt: skip


def quantile(rule: Calibration, level: float) -> float:
    """Half width of an interval of this level in standard deviations."""
    # The function behind scipy.stats.t.ppf, whose import takes most of a second.
    from scipy.special import stdtrit

    return float(stdtrit(rule.degrees, 0.5 + level / 2))


def bounds(
    log_cost: Floats, total: Floats, rule: Calibration, level: float
) -> tuple[Floats, Floats]:
    """Lower and upper bound of the logarithm of the cost at every target.

    ``total[side, target]``: standard deviations, of several sources as squares.
    """
    half = quantile(rule, level) * total
    return log_cost - half[LOW], log_cost + half[HIGH]


def _noise(fits: Fits, series: Series, final: Forecast, rule: Calibration) -> tuple[float, float]:
    """Standard deviation of a point's scatter between runs, and of its mean over repeats.

    The deviations of the points from the models hold both; the first is what is left of them.
    """
    count = len(series.ranks)
    there = final.weights > 0
    away = fits.log_cost[count][there, :count] - np.log(series.cost)
    away = away - away.mean(axis=1, keepdims=True)
    squares = float(final.weights[there] @ (away**2).sum(axis=1))
    degrees = SCATTER_STRENGTH + max(count - 2, 1)
    seen = (SCATTER_STRENGTH * rule.scatter**2 + squares) / degrees
    known = series.error[np.isfinite(series.error)]
    repeats = float(np.mean(known**2)) if known.size else 0.0
    return float(np.sqrt(max(seen - repeats, 0.0))), float(np.sqrt(repeats))


def _rate(fits: Fits, series: Series, rule: Calibration) -> float:
    """Relative error of a forecast over one doubling, from the series' rolling forecasts.

    Every origin gives the mean square of its errors, each over its distance in doublings.
    """
    doublings, logs = np.log2(series.ranks), np.log(series.cost)
    squares = []
    for k in range(FIRST_ORIGIN, len(logs)):
        distance = doublings[k:] - doublings[k - 1]
        error = combine(fits, series, k).log_cost[k : len(logs)] - logs[k:]
        squares.append(float(np.mean((error / distance) ** 2)))
    return float(
        np.sqrt((rule.strength * rule.rate**2 + sum(squares)) / (rule.strength + len(squares)))
    )
