"""Intervals of a forecast from five sources, in logarithms of the cost.

1. repeats: the standard error of the measured means, where it is known, as a line through them
   carries it to the target;
2. scatter between runs: what the points deviate from the models beyond that, drawn towards what
   published repeats scatter, carried likewise; what costs go up and down again; and what the
   forecast owes to the largest count alone, which may be an outlier;
3. spread of the models: their weighted standard deviation at the target;
4. an allowance for a change of regime, which no fit shows: it grows with log2(target / largest
   measured), with the change that is expected, and with the newest rolling error, and falls with
   the number of measured counts. Its size per doubling is that of the series' own rolling
   forecasts, drawn towards that of the series behind ``calibration``;
5. a border of the machine that no measured count has crossed (``topology``): an allowance where
   nothing has, what similar series differ in where those have.

They add as squares; a bound is a quantile of Student's t. Each side has factors of its own, because
what goes wrong differs: growth that is expected may stop, which is a lower cost; a change of
regime, and growth that no point shows yet, is a higher one, and the more the further away.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from scalesweep.analysis.prediction.calibration import Calibration, Side
from scalesweep.analysis.prediction.models import DISCOUNT
from scalesweep.analysis.prediction.rolling import FIRST_ORIGIN
from scalesweep.analysis.prediction.series import Series
from scalesweep.analysis.prediction.topology import Crossing, may_cross
from scalesweep.analysis.prediction.weights import Fits, Forecast
from scalesweep.analysis.types import Floats

# Scatter between runs where no repeats tell it, and the points that this weighs as much as: 95 % of
# 465 submissions to MLPerf Training v4.0, v4.1 and v5.0 of three or more runs (mlcommons/
# training_results_v4.0 and on, 24 submitters) scatter less in their median throughput; what they
# scatter is spread over them as a variance of 1 degree of freedom is.
SCATTER, SCATTER_STRENGTH = 0.0075, 1
# Similar series that the expected spread of the growth across a border weighs as much as.
SPREAD_STRENGTH = 2
# Growth across a border (logarithm) that similar series are taken to show at least: the median of
# the published clusters. One that shows none does not say that others have none.
LEAST_GROWTH = 0.05
# Measured counts at which the allowance for a change of regime has its full size.
FEWEST = 3
# Standard deviation of a point for what costs go up and down again: no published series is erratic
# enough to calibrate it on, simulated ones hold with it (bench.prediction).
ERRATIC = 1.5
# Standard deviation for what the largest measured count alone changes a forecast: that it is an
# outlier lies two of them away.
OUTLIER = 0.5
# Sides of an interval: towards lower and towards higher cost.
LOW, HIGH = 0, 1
# Growth of the cost over that of the ranks (logarithms) from which on time hardly falls any more.
STALLS = 0.5
SOURCES = ("repeats", "scatter", "models", "regime", "border")


@dataclass(frozen=True, eq=False)
class Sources:
    """Standard deviations of the logarithm ``[side, target]`` by source, ``LOW`` and ``HIGH``; they
    add as squares. ``point``: that of a point's own scatter between runs, on either side."""

    repeats: Floats
    scatter: Floats
    models: Floats
    regime: Floats
    border: Floats
    point: float

    @property
    def total(self) -> Floats:
        """All of them together."""
        parts = [getattr(self, name) for name in SOURCES]
        return np.asarray(np.sqrt(sum(part**2 for part in parts)), np.float64)

    def shares(self, place: int) -> dict[str, float]:
        """The share of each source in the variance at a target, both sides together."""
        squares = {name: float((getattr(self, name)[:, place] ** 2).sum()) for name in SOURCES}
        return {name: part / sum(squares.values()) for name, part in squares.items()}


class Signs(NamedTuple):
    """What a forecast shows of its uncertainty, each ``[target]`` or one number for all.

    ``distance`` in doublings; ``spread`` of the models; the ``change`` that is expected, as far as
    no probe has measured it; of that ``whole``, what no parts of the costs tell; ``squares`` of the
    points' deviations with their ``degrees``;
    ``carried``, the variance of a line's value there over that of a point; ``without``, what the
    forecast would be without the largest measured count, less what it is (logarithms);
    ``rolled``, the sum of the mean squares of so many rolling forecasts (``origins``); ``newest``,
    the last of them, for a doubling; measured counts over ``FEWEST`` (``counts``); ``repeats``, the
    variance of a measured mean; ``erratic``, what costs go up and down again (logarithm);
    ``border``: 1 where none has been crossed that may lie there;
    ``others``: squared deviations of ``similar`` series from their mean ``growth``, 0 of them where
    none counts; ``least`` and ``most``: the lowest and highest cost (logarithm, less the forecast)
    that strong scaling leaves (``_limits``).
    """

    distance: Floats
    spread: Floats
    change: Floats
    whole: Floats
    squares: Floats
    degrees: Floats
    carried: Floats
    without: Floats
    rolled: Floats
    origins: Floats
    newest: Floats
    counts: Floats
    repeats: Floats
    erratic: Floats
    border: Floats
    others: Floats
    growth: Floats
    similar: Floats
    least: Floats
    most: Floats


def signs(fits: Fits, series: Series, said: Mapping[int, Forecast], beyond: Crossing) -> Signs:
    """Those of the forecast from all points of a series at the targets of ``fits``."""
    count, targets = len(series.ranks), fits.targets
    final, logs = said[count], np.log(series.cost)
    doublings = np.log2(series.ranks)
    # What a probe has measured is not continued from the points: its share of the slope is known.
    probed = [model.exposed is not None for model in fits.models]
    unknown = 1 - float(final.weights[probed].sum())
    apart = 1 - float(final.weights[[bool(model.name) for model in fits.models]].sum())
    squares, degrees = _deviations(fits, series, final)
    rolled = []
    newest = 0.0
    for k in range(FIRST_ORIGIN, count):
        error = (logs[k:] - said[k].log_cost[k:count]) / (doublings[k:] - doublings[k - 1])
        rolled.append(float(np.mean(error**2)))
        newest = float(error[0])
    known = series.error[np.isfinite(series.error)]
    repeats = float(np.mean(known**2)) if known.size else 0.0
    border = may_cross(series.ranks, series.borders, targets)
    ones = np.ones(len(targets))
    distance = np.maximum(np.log2(targets / series.ranks[-1]), 0.0)
    foreseen = float(said[count - 1].log_cost[count - 1])
    least, most = _limits(series, foreseen, distance, border)
    return Signs(
        distance=distance,
        spread=final.spread[count:],
        change=unknown * (final.log_cost[count:] - final.log_cost[count - 1]),
        whole=apart * (final.log_cost[count:] - final.log_cost[count - 1]),
        squares=squares * ones,
        degrees=degrees * ones,
        carried=_carried(doublings, np.log2(targets)),
        without=said[count - 1].log_cost[count:] - final.log_cost[count:],
        rolled=sum(rolled) * ones,
        origins=len(rolled) * ones,
        newest=newest * ones,
        counts=ones * max(count - FEWEST + 1, 1),
        repeats=repeats * ones,
        erratic=_erratic(logs + fits.lift[:count]) * ones,
        border=np.where(beyond.count > 0, 0.0, border),
        others=np.where(border > 0, beyond.squares, 0.0),
        growth=np.where(border > 0, beyond.growth, 0.0),
        similar=np.where(border > 0, beyond.count, 0.0),
        least=least - final.log_cost[count:],
        most=most - final.log_cost[count:],
    )


def _limits(
    series: Series, foreseen: float, distance: Floats, border: Floats
) -> tuple[Floats, Floats]:
    """Between which logarithms the cost lies in strong scaling; nothing is known in weak scaling.

    The same work is shared by more ranks. Together they do not need less: the cost is no lower than
    at the largest measured count. And they need no longer: it grows as the ranks do at most, but
    where a border is crossed, or where time hardly falls any more. As that count may be an outlier,
    what the smaller ones have ``foreseen`` of it counts where it is the lower, or the higher one.
    """
    if series.scaling != "strong":
        return np.full(len(distance), -np.inf), np.full(len(distance), np.inf)
    last, before = np.log(series.cost[-1]), np.log(series.cost[-2])
    falls = last - before < STALLS * np.log(series.ranks[-1] / series.ranks[-2])
    highest = max(last, foreseen) + distance * np.log(2.0)
    most = np.where(falls & (border == 0), highest, np.inf)
    return np.full(len(distance), min(last, foreseen)), most


def sources(seen: Signs, rule: Calibration) -> Sources:
    """The five sources at every target."""
    scatter = _scatter(seen)
    # Both what is forecast from and what is measured there are means of runs; what similar series
    # grow is added to the largest count alone.
    own = seen.similar == 0
    carried = np.sqrt(1 + np.where(own, seen.carried, 1.0))
    rate = np.sqrt((rule.strength * rule.rate**2 + seen.rolled) / (rule.strength + seen.origins))
    rate = rate / seen.counts**rule.few
    grown = np.maximum(np.abs(seen.growth), LEAST_GROWTH)
    usual = SPREAD_STRENGTH * (rule.spread * grown) ** 2
    others = (usual + seen.others) / (SPREAD_STRENGTH + np.maximum(seen.similar - 1, 0.0))
    others = np.sqrt(others * (1 + 1 / np.maximum(seen.similar, 1.0)))
    # Similar series have gone the whole way: what they differ in takes the place of the rest.
    sides: Sequence[tuple[Side, int]] = ((rule.low, -1), (rule.high, 1))

    def regime(side: Side, sign: int) -> Floats:
        far = side.regime * rate * seen.distance**side.power
        late = side.newest * np.maximum(sign * seen.newest, 0.0) * seen.distance**side.power
        return np.asarray(np.sqrt(far**2 + late**2 + (side.slope * seen.change) ** 2))

    return Sources(
        repeats=np.stack([carried * np.sqrt(seen.repeats) for _ in sides]),
        scatter=np.stack([
            np.sqrt(
                (carried * scatter) ** 2
                + (ERRATIC * seen.erratic) ** 2
                + own * (OUTLIER * np.maximum(sign * seen.without, 0.0)) ** 2
            )
            for _, sign in sides
        ]),
        models=np.stack([side.models * seen.spread * own for side, _ in sides]),
        regime=np.stack([regime(side, sign) * own for side, sign in sides]),
        border=np.stack([
            np.where(own, side.border * seen.border, others) for side, _ in sides
        ]),
        point=float(scatter.max(initial=0.0)),
    )  # fmt: skip


def shifts(seen: Signs, rule: Calibration) -> Floats:
    """What is added to the logarithm of the cost: what it usually grows beyond what is expected.

    Nothing where similar series or the parts of costs tell, or where no growth is expected.
    """
    grown = rule.shift * np.maximum(seen.whole, 0.0)
    return np.where(seen.similar > 0, 0.0, grown)


def _quantile(rule: Calibration, level: float) -> float:
    """Half width of an interval of this level in standard deviations."""
    # The function behind scipy.stats.t.ppf, whose import takes most of a second.
    from scipy.special import stdtrit

    return float(stdtrit(rule.degrees, 0.5 + level / 2))


def bounds(
    expected: Floats,
    total: Floats,
    rule: Calibration,
    level: float,
    within: tuple[Floats, Floats] | None = None,
) -> tuple[Floats, Floats]:
    """Lower and upper bound of the logarithm of the cost at every target.

    Student's t about ``expected`` with a standard deviation for each side (``total[side, target]``,
    of several sources as squares); what lies outside ``within`` is as if at its end.
    """
    half = _quantile(rule, level) * total
    low, high = expected - half[LOW], expected + half[HIGH]
    if within is None:
        return low, high
    least, most = within
    # An expectation that is outside stays in the interval.
    return np.maximum(low, np.minimum(least, expected)), np.minimum(
        high, np.maximum(most, expected)
    )


def limits(seen: Signs) -> tuple[Floats, Floats]:
    """What the cost may be at least and at most, less the forecast, as far as the noise of the
    largest counts tells it (two standard deviations)."""
    noise = _scatter(seen) ** 2 + seen.repeats + (ERRATIC * seen.erratic) ** 2
    return seen.least - 2 * np.sqrt(noise), seen.most + 2 * np.sqrt(noise)


def _scatter(seen: Signs) -> Floats:
    """Standard deviation of a point beyond that of its mean over repeats."""
    noise = (SCATTER_STRENGTH * SCATTER**2 + seen.squares) / seen.degrees
    return np.asarray(np.sqrt(np.maximum(noise - seen.repeats, 0.0)), np.float64)


def _erratic(logs: Floats) -> float:
    """What costs go up and down again: the smaller of both, each summed; 0 where they only grow."""
    steps = np.diff(logs)
    return float(min(np.maximum(steps, 0.0).sum(), np.maximum(-steps, 0.0).sum()))


def _carried(doublings: Floats, places: Floats) -> Floats:
    """``[place]``: the variance of what a line through points, weighted as those of a model are
    (``DISCOUNT``), says there, over that of a point."""
    terms = np.stack([np.ones(len(doublings)), doublings], axis=1)
    weighted = terms.T * DISCOUNT ** (doublings[-1] - doublings)
    each = np.linalg.solve(weighted @ terms, weighted)
    at = np.stack([np.ones(len(places)), places], axis=1)
    return np.asarray(((at @ each) ** 2).sum(axis=1), np.float64)


def _deviations(fits: Fits, series: Series, final: Forecast) -> tuple[float, int]:
    """The squared deviations of the points from the models, summed, and their degrees of freedom.

    They hold the scatter of a point between runs and that of its mean over repeats.
    """
    count = len(series.ranks)
    there = final.weights > 0
    away = fits.log_cost[count][there, :count] - np.log(series.cost) - fits.lift[:count]
    away = away - away.mean(axis=1, keepdims=True)
    squares = float(final.weights[there] @ (away**2).sum(axis=1))
    return squares, SCATTER_STRENGTH + max(count - 2, 1)
