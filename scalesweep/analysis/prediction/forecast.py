"""A prediction: what a series will give at rank counts that were not measured."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from scalesweep.analysis.prediction.calibration import CALIBRATION, Calibration
from scalesweep.analysis.prediction.intervals import (
    Signs,
    Sources,
    bounds,
    limits,
    shifts,
    signs,
    sources,
)
from scalesweep.analysis.prediction.models import design
from scalesweep.analysis.prediction.rolling import FIRST_ORIGIN
from scalesweep.analysis.prediction.series import Series, refusal
from scalesweep.analysis.prediction.topology import Border, crossing, next_border
from scalesweep.analysis.prediction.weights import (
    Fits,
    Forecast,
    combine,
    fit_models,
)
from scalesweep.analysis.types import Floats

# Target over the largest measured count up to which 90 % intervals hold among series that were left
# out (bench.prediction).
FARTHEST = {"weak": 32.0, "strong": 8.0}
# Upper over lower bound of the 95 % interval; a wider one says no more than the order of magnitude.
WIDEST = 4.0
# Counts for each doubling among which a knee is looked for.
STEPS = 16


@dataclass(frozen=True, eq=False)
class Prediction:
    """Costs of a series at ``targets`` (rank counts), with the signs of their uncertainty."""

    series: Series
    targets: Floats
    fits: Fits
    final: Forecast
    signs: Signs
    rule: Calibration

    @cached_property
    def sources(self) -> Sources:
        """The sources of the uncertainty."""
        return sources(self.signs, self.rule)

    @property
    def log_cost(self) -> Floats:
        """Its logarithm, with what costs usually grow beyond what is expected of them."""
        expected = self.final.log_cost[len(self.series.ranks) :]
        return np.asarray(expected + shifts(self.signs, self.rule), np.float64)

    def _bounds(self, total: Floats, level: float) -> tuple[Floats, Floats]:
        """Of the logarithm of the cost, by standard deviations ``[side, target]``."""
        said = self.final.log_cost[len(self.series.ranks) :]
        shift = shifts(self.signs, self.rule)
        low, high = bounds(shift, total, self.rule, level, limits(self.signs))
        return said + low, said + high

    @property
    def cost(self) -> Floats:
        """Expected cost ``[target]`` in the unit of the series."""
        return np.asarray(np.exp(self.log_cost), np.float64)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper bound of the cost ``[target]``."""
        low, high = self._bounds(self.sources.total, level)
        return np.exp(low), np.exp(high)

    def efficiency(self, level: float = 0.95) -> tuple[Floats, Floats, Floats]:
        """Efficiency ``[target]`` against the smallest measured count, and its bounds.

        The base is a measured point, which scatters as the target will.
        """
        base = float(self.series.cost[0])
        parts = self.sources
        total = np.sqrt(parts.total**2 + parts.repeats**2 + parts.scatter**2)
        low, high = self._bounds(total, level)
        return base / self.cost, base / np.exp(high), base / np.exp(low)

    def shares(self, place: int) -> dict[str, float]:
        """Share of the cost at a target by term, averaged over the models by their weights."""
        shares: dict[str, float] = {}
        at = self.targets[place : place + 1]
        for model, weight, size in zip(
            self.fits.models, self.final.weights, self.fits.coefficients, strict=True
        ):
            if weight > 0:
                parts = design(model, at)[0] * size
                for name, part in zip(model.terms, parts / parts.sum(), strict=True):
                    shares[name] = shares.get(name, 0.0) + float(weight * part)
        return shares

    def dominating(self, place: int) -> tuple[str, float]:
        """The growing term with the largest share of the cost at a target, and that share."""
        growing = {name: part for name, part in self.shares(place).items() if name != "constant"}
        name = max(growing, key=lambda part: growing[part])
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


def predict(
    series: Series, targets: Sequence[float] | Floats, rule: Calibration | None = None
) -> Prediction:
    """Predict the cost at rank counts, by the calibration of the series' scaling or another.

    It says what it can of any count; ``refusals`` says which of it is not to be shown. Raises
    ValueError if the series does not suffice.
    """
    if why := refusal(series):
        raise ValueError(why)
    places = np.asarray(targets, np.float64)
    fits = fit_models(series, places)
    said = combine(fits, series)
    count = len(series.ranks)
    across = crossing(series.ranks, series.similar, places)
    seen = signs(fits, series, said, across)
    log_cost = said[count].log_cost.copy()
    beyond = seen.similar > 0
    log_cost[count:][beyond] = np.log(series.cost[-1]) + across.growth[beyond]
    # Of a border that only probes have crossed, only what they measured shows the step.
    probes = [i for i, model in enumerate(fits.models) if model.exposed is not None]
    if probes:
        free = np.array([blocked(series, target) is None for target in places], np.bool_)
        step = (seen.border > 0) & free & (series.borders is not None)
        log_cost[count:][step] = fits.log_cost[count, probes[0], count:][step]
    final = replace(said[count], log_cost=log_cost)
    return Prediction(series, places, fits, final, seen, rule or CALIBRATION[series.scaling])


def trusted_limit(series: Series, rule: Calibration | None = None) -> int:
    """Rank count beyond which nothing is said of a series.

    The largest count measured times the largest power of 2 (at most ``FARTHEST``) at which the
    95 % interval is no wider than a factor of ``WIDEST``; not beyond a border of the machine that
    neither the series nor one like it has crossed (``blocked``).
    """
    largest = float(series.ranks[-1])
    steps = 2.0 ** np.arange(1, int(np.log2(FARTHEST[series.scaling])) + 1)
    prediction = predict(series, steps * largest, rule)
    low, high = prediction.interval()
    limit = largest
    for step, ratio in zip(steps, high / low, strict=True):
        if ratio > WIDEST:
            break
        if border := blocked(series, step * largest):
            limit = max(limit, border.ranks)
            break
        limit = step * largest
    return int(limit)


def blocked(series: Series, target: float) -> Border | None:
    """The border before a target that neither the measured counts, nor series like this, nor
    probes have crossed; None where nothing is in the way, and where no borders are known."""
    border = next_border(series.ranks, series.borders, target)
    if border is None:
        return None
    parts = series.parts
    if parts is not None and parts.collective is not None and parts.probed_to > border.ranks:
        return None
    known = crossing(series.ranks, series.similar, np.array([float(target)])).count[0] > 0
    return None if known else border


def refusals(
    series: Series,
    targets: Sequence[float] | Floats,
    scale: str = "ranks",
    rule: Calibration | None = None,
) -> list[str]:
    """``[target]``: why nothing is said of a count, with what to measure; empty where something is.

    ``scale``: what is counted.
    """
    if why := refusal(series):
        return [why] * len(targets)
    trusted = trusted_limit(series, rule)
    return [_refusal(series, target, trusted, scale) for target in targets]


def _refusal(series: Series, target: float, limit: int, scale: str) -> str:
    """Why nothing is predicted at ``target``, with what to measure instead; empty if something is.

    ``limit``: up to where intervals are narrow enough. ``scale``: the word for what is counted.
    """
    largest = int(series.ranks[-1])
    if target < largest:
        return (
            f"{target:,.0f} {scale} are fewer than the largest measured count of {largest:,}: "
            "intervals hold beyond it only; measure them"
        )
    if border := blocked(series, target):
        count = count_beyond(border)
        return (
            f"{target:,.0f} {scale} take more than one {border.name} of {border.ranks:,}, and no "
            f"measured count does: the step across it cannot be had from smaller counts; measure "
            f"{count:,} {scale} on two {border.name}s"
        )
    if target > limit:
        if limit >= largest * FARTHEST[series.scaling]:
            return (
                f"{target:,.0f} {scale} are more than {FARTHEST[series.scaling]:g} times the "
                f"largest measured count of {largest:,}: measure in between"
            )
        return (
            f"the 95 % interval at {target:,.0f} {scale} spans more than a factor of {WIDEST:g} "
            f"(trusted to {limit:,}): measure beyond {largest:,}, or add repeats"
        )
    return ""


def count_beyond(border: Border) -> int:
    """The count to measure for the step across a border: two of what it encloses, full."""
    return 2 * border.ranks


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

    Every origin and every larger measured count that would not be refused.
    """
    forecasts = []
    for count in range(FIRST_ORIGIN, len(series.ranks)):
        known = series.first(count)
        if refusal(known):
            continue
        said = predict(known, series.ranks[count:])
        low, high = said.interval(level)
        later = series.cost[count:]
        within = (low <= later) & (later <= high)
        limit = trusted_limit(known)
        for i, target in enumerate(series.ranks[count:]):
            if target > limit:
                break
            error = float(said.cost[i] / later[i]) - 1
            forecasts.append(Rolled(int(known.ranks[-1]), int(target), error, bool(within[i])))
    return forecasts


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
    if doublings <= 0:
        return None
    counts = largest * 2.0 ** np.linspace(0.0, doublings, round(STEPS * doublings) + 1)
    bounds = [
        float(counts[np.argmax(curve < least)]) if (curve < least).any() else np.inf
        for curve in predict(series, counts).efficiency()
    ]
    return None if np.isinf(bounds[1]) else Knee(*bounds)
