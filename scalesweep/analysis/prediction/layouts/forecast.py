"""How fast layouts will be at a number of ranks at which none was run, with intervals.

Rolling forecasts judge everything: of each measured scale from the smaller ones. The method whose
five first layouts lost least orders the layouts to try. Times are those of the cost model, and its
errors give the intervals: quantiles of the errors of forecasts of similar layouts, wider by
``BEYOND``, because a further doubling may bring what none before it has shown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scalesweep.analysis.choose_best_of import Options, choose_best_of
from scalesweep.analysis.prediction.layouts.cost import CostModel, fit_cost
from scalesweep.analysis.prediction.layouts.rivals import COST, METHODS, Forecaster
from scalesweep.analysis.prediction.layouts.runs import Columns, Layout, Measured
from scalesweep.analysis.prediction.layouts.worth import FACTORS, spread_of, worth_of
from scalesweep.analysis.types import Floats

# Layouts that a method is fitted to at least (where no scale has so many below it: ``FEW_KNOWN``),
# and that a scale must have to be forecast.
LEAST_KNOWN, FEW_KNOWN, LEAST_THERE = 20, 8, 6
TRIALS = 5
LEVEL = 0.9
# By how much (logarithm) each end of an interval lies beyond the quantile of errors
# (bench.layouts calibrates it on scales up to 16 nodes).
BEYOND = 0.25
# Weight of rolling forecasts a doubling before the newest ones.
DISCOUNT = 0.65
# Weight of the errors of all layouts beside those of similar ones.
OTHERS = 1e-3
# Ranks over the largest measured number: up to ``TRUSTED`` rolling forecasts judge the step, up to
# ``FARTHEST`` a prediction is given as one of another regime, beyond it none.
TRUSTED, FARTHEST = 2.0, 4.0
# What a rival has to lose less than the cost model to take its place, as a share of the best rate.
HANDICAP = 0.05
# Share of layouts of the newest scale that intervals of before must have held.
LEAST_HELD = 0.7

Fits = Callable[[Measured, tuple[Layout, ...]], Sequence[bool | None]]


@dataclass(frozen=True, eq=False)
class Rolled:
    """One method's forecast of a scale from the smaller ones.

    ``errors[layout]``: logarithms of measured over forecast, of the ``layouts`` that ran there;
    ``loss``: by which share the best of its ``TRIALS`` first layouts falls short of the best there
    (1 if none of them ran).
    """

    method: str
    ranks: int
    layouts: tuple[Layout, ...]
    errors: Floats
    loss: float


def first_of(costs: Floats, fits: Sequence[bool | None], count: int = TRIALS) -> list[int]:
    """Which layouts to try first: the fastest of those that are not said not to fit."""
    order = np.argsort(costs, kind="stable")
    return [int(i) for i in order if fits[i] is not False and np.isfinite(costs[i])][:count]


def loss_of(there: Measured, chosen: Sequence[int]) -> float:
    """By which share of the best rate at a scale the best of the chosen layouts falls short."""
    rates = np.where(there.ran, 1 / np.where(there.ran, there.seconds, 1.0), 0.0)
    rates *= np.array([layout.global_batch for layout in there.layouts], np.float64)
    tried = max((float(rates[i]) for i in chosen), default=0.0)
    return 1 - tried / float(rates.max())


def roll(measured: Measured, method: str, fits: Fits, least: int) -> list[Rolled]:
    """The rolling forecasts of one method, by scale, of those with ``least`` layouts below them."""
    rolled = []
    for ranks in measured.scales[1:]:
        known = measured.where(measured.scale < ranks)
        there = measured.where(measured.scale == ranks)
        if known.ran.sum() < least or there.ran.sum() < LEAST_THERE:
            continue
        costs = METHODS[method](known)(there.layouts)
        chosen = first_of(costs, fits(known, there.layouts))
        ran = there.where(there.ran)
        truth = np.log(ran.seconds) - np.log([x.global_batch / x.ranks for x in ran.layouts])
        rolled.append(
            Rolled(method, ranks, ran.layouts, truth - costs[there.ran], loss_of(there, chosen))
        )
    return rolled


@dataclass(frozen=True, eq=False)
class LayoutForecast:
    """What was measured, the fitted cost model, the method that orders layouts (``order``, its
    forecaster), and the rolling forecasts of every method."""

    measured: Measured
    cost: CostModel
    method: str
    order: Forecaster
    rolled: dict[str, list[Rolled]]

    def seconds(self, layouts: tuple[Layout, ...]) -> tuple[Floats, Floats, Floats]:
        """The time of a step of each layout, with the ends of its interval of ``LEVEL``."""
        middle = self.cost.seconds(layouts)
        low, high = error_bounds(self.judged, layouts)
        return middle, middle * np.exp(low), middle * np.exp(high)

    def worth(
        self, layouts: tuple[Layout, ...], fits: Sequence[bool | None], count: int = TRIALS
    ) -> Options:
        """What trying each of these layouts is worth; nothing where it is said not to fit."""
        work = np.log(np.array([x.global_batch / x.ranks for x in layouts], np.float64))
        slower = [
            np.log(self.cost.slower_between(factor).seconds(layouts)) - work for factor in FACTORS
        ]
        spread = spread_of(self.rolled[self.method][-1].errors)
        possible = [fit is not False for fit in fits]
        return worth_of(self.order(layouts), spread, slower, possible, count)

    def trials(
        self, layouts: tuple[Layout, ...], fits: Sequence[bool | None], count: int = TRIALS
    ) -> list[int]:
        """Which of these layouts to try whatever they cost, what adds most first."""
        return choose_best_of([self.worth(layouts, fits, count)])[0]

    @property
    def judged(self) -> list[Rolled]:
        """The rolling forecasts of the cost model."""
        return self.rolled[COST]

    def warning(self, ranks: int) -> str | None:
        """Why a forecast for so many ranks is of another regime; None where nothing says so."""
        largest = self.measured.scales[-1]
        if ranks > TRUSTED * largest:
            return (
                f"another regime: {ranks:,} ranks are {ranks / largest:.3g} times the largest "
                f"measured number ({largest:,}); forecasts were judged over a factor of 2"
            )
        if self.held is not None and self.held < LEAST_HELD:
            return (
                f"another regime: at {self.judged[-1].ranks:,} ranks intervals of "
                f"{100 * LEVEL:g} % from fewer ranks held {100 * self.held:.0f} % of the layouts"
            )
        return None

    @cached_property
    def held(self) -> float | None:
        """The share of layouts of the newest scale that intervals held, as they were made before;
        None where there is no earlier forecast to make intervals of."""
        *before, last = self.judged
        if not before:
            return None
        low, high = error_bounds(before, last.layouts)
        return float(((last.errors >= low) & (last.errors <= high)).mean())


def error_bounds(judged: Sequence[Rolled], layouts: tuple[Layout, ...]) -> tuple[Floats, Floats]:
    """The ends of the interval of each layout's error (logarithms), by rolling forecasts."""
    newest = np.log2(judged[-1].ranks)
    places = np.concatenate([Columns(forecast.layouts).places for forecast in judged])
    errors = np.concatenate([forecast.errors for forecast in judged])
    weights = np.concatenate(
        [
            np.full(len(forecast.errors), DISCOUNT ** (newest - np.log2(forecast.ranks)))
            for forecast in judged
        ]
    )
    away = ((Columns(layouts).places[:, None] - places[None]) ** 2).sum(axis=2)
    each = weights * (np.exp(-away) + OTHERS)
    order = np.argsort(errors, kind="stable")
    sums = np.cumsum(each[:, order], axis=1)
    shares = sums / sums[:, -1:]
    tail = (1 - LEVEL) / 2
    low = errors[order][np.argmax(shares >= tail, axis=1)]
    high = errors[order][np.argmax(shares >= 1 - tail, axis=1)]
    # What is forecast lies within its own interval, also where errors had one sign.
    return np.minimum(low - BEYOND, 0.0), np.maximum(high + BEYOND, 0.0)


def forecast_layouts(measured: Measured, fits: Fits) -> LayoutForecast | str:
    """The forecast that rolling forecasts of what was measured choose, or why there is none."""
    why = refusal(measured)
    if why:
        return why
    for least in (LEAST_KNOWN, FEW_KNOWN):
        rolled = {method: roll(measured, method, fits, least) for method in METHODS}
        if rolled[COST]:
            break
    else:
        return (
            f"no measured scale can be forecast from smaller ones: it takes {FEW_KNOWN} layouts "
            f"that ran, and {LEAST_THERE} more at a larger number of ranks"
        )
    scores = {
        method: _mean_loss(forecasts) + (0.0 if method == COST else HANDICAP)
        for method, forecasts in rolled.items()
    }
    method = min(scores, key=lambda name: scores[name])
    return LayoutForecast(measured, fit_cost(measured), method, METHODS[method](measured), rolled)


def _mean_loss(rolled: Sequence[Rolled]) -> float:
    newest = np.log2(rolled[-1].ranks)
    weights = [DISCOUNT ** (newest - np.log2(forecast.ranks)) for forecast in rolled]
    return float(np.average([forecast.loss for forecast in rolled], weights=weights))


def refusal(measured: Measured) -> str | None:
    """Why nothing is forecast from what was measured; None where something is."""
    count, scales = int(measured.ran.sum()), measured.scales
    if count < FEW_KNOWN + LEAST_THERE or len(scales) < 2:
        return (
            f"{count} layouts ran, at {len(scales)} numbers of ranks; a forecast takes "
            f"{FEW_KNOWN + LEAST_THERE} at two numbers at least"
        )
    return None


def beyond(measured: Measured, ranks: int) -> str | None:
    """Why nothing is forecast for so many ranks; None where something is."""
    scales = measured.scales
    largest = scales[-1]
    if ranks < largest:
        return f"{ranks:,} ranks are fewer than the largest measured number ({largest:,})"
    if ranks > FARTHEST * largest:
        return (
            f"{ranks:,} ranks are more than {FARTHEST:g} times the largest measured number "
            f"({largest:,}); measure some layouts at {largest * 2:,} ranks first"
        )
    per_node = max(layout.per_node for layout in measured.layouts)
    if ranks > per_node >= largest:
        return (
            f"{ranks:,} ranks take more than one node of {per_node}, and no layout was measured "
            f"across nodes: measure some at {per_node * 2:,} ranks first"
        )
    return None
