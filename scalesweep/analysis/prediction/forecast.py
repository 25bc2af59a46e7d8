"""A prediction: what a series will give at rank counts that were not measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scalesweep.analysis.prediction.calibration import CALIBRATION
from scalesweep.analysis.prediction.intervals import Sources, bounds, sources
from scalesweep.analysis.prediction.models import design
from scalesweep.analysis.prediction.rolling import FIRST_ORIGIN
from scalesweep.analysis.prediction.series import Series, refusal
from scalesweep.analysis.prediction.weights import (
    Fits,
    Forecast,
    combine,
    fit_models,
)
from scalesweep.analysis.types import Floats

# Nothing was tried over more doublings than the longest series of the calibration has.
FARTHEST = 32.0
# Upper over lower bound of the 95 % interval; a wider one says no more than the order of magnitude.
WIDEST = 2.0
# Counts for each doubling among which a knee is looked for.
STEPS = 16


@dataclass(frozen=True, eq=False)
class Prediction:
    """Costs of a series at ``targets`` (rank counts), with sources of their uncertainty."""

    series: Series
    targets: Floats
    fits: Fits
    final: Forecast
    sources: Sources

    @property
    def cost(self) -> Floats:
        """Expected cost ``[target]`` in the unit of the series."""
        return np.asarray(np.exp(self.final.log_cost[len(self.series.ranks) :]), np.float64)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper bound of the cost ``[target]``."""
        rule = CALIBRATION[self.series.scaling]
        log_cost = self.final.log_cost[len(self.series.ranks) :]
        low, high = bounds(log_cost, self.sources.total, rule, level)
        return np.exp(low), np.exp(high)

    def efficiency(self, level: float = 0.95) -> tuple[Floats, Floats, Floats]:
        """Efficiency ``[target]`` against the smallest measured count, and its bounds.

        The base is a measured point, which scatters as the target will.
        """
        rule, base = CALIBRATION[self.series.scaling], float(self.series.cost[0])
        parts = self.sources
        total = np.sqrt(parts.total**2 + parts.repeats**2 + parts.scatter**2)
        log_cost = self.final.log_cost[len(self.series.ranks) :]
        low, high = bounds(log_cost, total, rule, level)
        return base / self.cost, base / np.exp(high), base / np.exp(low)

    def shares(self, place: int) -> dict[str, float]:
        """Share of the cost at a target by term, averaged over the models by their weights."""
        found: dict[str, float] = {}
        at = self.targets[place : place + 1]
        for model, weight, size in zip(
            self.fits.models, self.final.weights, self.fits.coefficients, strict=True
        ):
            if weight > 0:
                parts = design(model, at)[0] * size
                for name, part in zip(model.terms, parts / parts.sum(), strict=True):
                    found[name] = found.get(name, 0.0) + float(weight * part)
        return found

    def dominating(self, place: int) -> tuple[str, float]:
        """The growing term with the largest share of the cost at a target, and that share."""
        growing = {name: part for name, part in self.shares(place).items() if name != "constant"}
        name = max(growing, key=lambda one: growing[one])
        return name, growing[name]

    def growing_part(self, place: int) -> tuple[str, float] | None:
        """The known part of the cost that grows most from the smallest measured count to a target,
        and its share of the cost there; None where no parts are known, or none grows."""
        known, each = self.series.parts, self.fits.by_part
        if known is None or not len(each):
            return None
        there = each[:, len(self.series.ranks) + place]
        growth = there - known.cost[:, 0]
        most = int(growth.argmax())
        if growth[most] <= 0:
            return None
        return known.names[most], float(there[most] / there.sum())

    @cached_property
    def weighted(self) -> list[tuple[str, float]]:
        """Formulas of the models and their weights, the largest first."""
        pairs = [
            (model.formula, float(weight))
            for model, weight in zip(self.fits.models, self.final.weights, strict=True)
        ]
        return sorted(pairs, key=lambda pair: -pair[1])


def predict(series: Series, targets: Sequence[float] | Floats) -> Prediction:
    """Predict the cost at rank counts. Raises ValueError if the series does not suffice."""
    if why := refusal(series):
        raise ValueError(why)
    places = np.asarray(targets, np.float64)
    fits = fit_models(series, places)
    final = combine(fits, series, len(series.ranks))
    return Prediction(series, places, fits, final, sources(fits, series, final, places))


def trusted_limit(series: Series) -> int:
    """Rank count beyond which a prediction of the series is not to be trusted.

    The largest count measured times the largest power of 2 (at most ``FARTHEST``) at which the
    95 % interval is no wider than a factor of ``WIDEST``.
    """
    steps = 2.0 ** np.arange(1, int(np.log2(FARTHEST)) + 1)
    low, high = predict(series, steps * series.ranks[-1]).interval()
    good = np.cumprod(high / low <= WIDEST).astype(bool)
    return int(series.ranks[-1] * (steps[good].max() if good.any() else 1.0))


@dataclass(frozen=True)
class Rolled:
    """A forecast of a measured count from the smaller ones: ``largest`` of them, ``target``,
    ``error`` (rate measured over predicted, less 1), and whether the interval held it."""

    largest: int
    target: int
    error: float
    within: bool


def rolling_forecasts(series: Series, level: float = 0.95) -> list[Rolled]:
    """What ``predict`` would have said of the measured counts of a series from the smaller ones.

    Every origin that would not be refused, every larger measured count.
    """
    found = []
    for count in range(FIRST_ORIGIN, len(series.ranks)):
        known = series.first(count)
        if refusal(known):
            continue
        said = predict(known, series.ranks[count:])
        low, high = said.interval(level)
        later = series.cost[count:]
        within = (low <= later) & (later <= high)
        for i, target in enumerate(series.ranks[count:]):
            error = float(said.cost[i] / later[i]) - 1
            found.append(Rolled(int(known.ranks[-1]), int(target), error, bool(within[i])))
    return found


@dataclass(frozen=True)
class Knee:
    """Where efficiency falls below a value: count, 95 % bounds; infinite beyond the trusted."""

    count: float
    low: float
    high: float


def knee(series: Series, least: float) -> Knee | None:
    """Where the efficiency of a series falls below ``least``, between measured and trusted counts.

    None if it is below at the largest measured count already, and where even the lower bound does
    not fall below it before ``trusted_limit``.
    """
    largest = float(series.ranks[-1])
    if series.cost[0] / series.cost[-1] < least:
        return None
    doublings = np.log2(trusted_limit(series) / largest)
    counts = largest * 2.0 ** np.linspace(0.0, doublings, round(STEPS * doublings) + 1)
    found = [
        float(counts[np.argmax(curve < least)]) if (curve < least).any() else np.inf
        for curve in predict(series, counts).efficiency()
    ]
    return None if np.isinf(found[1]) else Knee(*found)
