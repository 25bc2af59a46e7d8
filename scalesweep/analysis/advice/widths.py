"""How wide intervals are, and how wide they are expected to be once more has been measured.

Widths are natural logarithms of the upper over the lower bound of a 95 % interval. What a further
run will give is not known, so widths are averaged over equally likely outcomes: quantiles of the
prediction there, which is the weighted mean of all models with all of its sources of error (a
preposterior analysis: Raiffa and Schlaifer, Applied Statistical Decision Theory, 1961). The
prediction is then made again with each. Nothing is drawn at random.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from scalesweep.analysis.prediction.calibration import CALIBRATION
from scalesweep.analysis.prediction.forecast import FARTHEST, Prediction, predict
from scalesweep.analysis.prediction.intervals import bounds
from scalesweep.analysis.prediction.series import Series
from scalesweep.analysis.stats import t_quantile
from scalesweep.analysis.types import Floats

# Outcomes of a run, equally likely, as quantiles of what it may give: the medians of its thirds.
QUANTILES = (1 / 6, 1 / 2, 5 / 6)
# Counts for each doubling among which a knee is looked for.
STEPS = 16


@dataclass(frozen=True)
class Target:
    """Asked: the cost at ``count`` ranks, which is not smaller than the largest measured count."""

    count: float


@dataclass(frozen=True)
class Knee:
    """Asked: the rank count at which efficiency falls below ``least``, looked for up to ``cap``."""

    least: float
    cap: float


Question = Target | Knee
# Runs to be added, by rank count.
Additions = Mapping[float, int]


@dataclass(frozen=True, eq=False)
class Known:
    """A series with the number of runs behind each point.

    ``repeats[point]``; the errors of ``series`` are those of so many runs.
    """

    series: Series
    repeats: Floats

    @cached_property
    def spread(self) -> float:
        """Relative standard deviation of a run from its point's mean, pooled over the points; NaN
        where no point has two runs."""
        many = np.isfinite(self.series.error) & (self.repeats > 1)
        if not many.any():
            return math.nan
        count = self.repeats[many]
        squares = self.series.error[many] ** 2 * count
        return float(np.sqrt(((count - 1) * squares).sum() / (count - 1).sum()))

    @cached_property
    def now(self) -> Prediction:
        """The prediction at the measured counts, by which their deviations are judged."""
        return predict(self.series, self.series.ranks)

    def outcome(self, added: Additions, quantile: float) -> Series:
        """The series as it will be if each of the added runs gives this quantile of what it may."""
        ranks = self.series.ranks
        counts = np.array(sorted(added), np.float64)
        runs = np.array([added[count] for count in counts.tolist()], np.float64)
        fresh = ~np.isin(counts, ranks)
        cost, error = self.series.cost.copy(), self.series.error.copy()
        if not math.isnan(self.spread):
            for count, more in zip(counts[~fresh], runs[~fresh], strict=True):
                place = int(np.searchsorted(ranks, count))
                # Points scatter on their own: neighbours move apart, not together.
                side = quantile if place % 2 else 1 - quantile
                cost[place] = self._repeated(place, float(more), side)
                error[place] = self.spread / math.sqrt(self.repeats[place] + more)
        new = [self._new(count)[QUANTILES.index(quantile)] for count in counts[fresh].tolist()]
        order = np.argsort([*ranks, *counts[fresh]])
        costs, parts = np.concatenate([cost, new])[order], self.series.parts
        if parts is not None:
            shares = [self._shares(count) for count in counts[fresh].tolist()]
            every = np.column_stack([parts.cost / self.series.cost, *shares])[:, order]
            parts = replace(parts, cost=every * costs)
        return replace(
            self.series,
            ranks=np.concatenate([ranks, counts[fresh]])[order],
            cost=costs,
            error=np.concatenate([error, self.spread / np.sqrt(runs[fresh])])[order],
            parts=parts,
        )

    def _shares(self, count: float) -> Floats:
        """The share of each known part of the cost at a count that was not measured, as predicted:
        its run is expected to tell its parts as those of the measured counts do."""
        if count not in self._ahead_parts:
            each = predict(self.series, [count]).fits.by_part[:, -1:]
            self._ahead_parts[count] = each / each.sum() if each.size else np.ones((1, 1))
        return self._ahead_parts[count]

    @cached_property
    def _ahead_parts(self) -> dict[float, Floats]:
        return {}

    @cached_property
    def _ahead(self) -> dict[float, tuple[float, ...]]:
        return {}

    def _new(self, count: float) -> tuple[float, ...]:
        """The ``QUANTILES`` of the cost at a count that was not measured."""
        if count not in self._ahead:
            spans = [(q, cost_bounds(self.series, count, abs(2 * q - 1))) for q in QUANTILES]
            self._ahead[count] = tuple(low if q < 0.5 else high for q, (low, high) in spans)
        return self._ahead[count]

    def _repeated(self, place: int, more: float, quantile: float) -> float:
        """A quantile of the mean at a measured count after ``more`` further runs.

        A point's mean deviates from the models by what is its own (``scatter``), which further
        runs keep, and by the spread of its runs, which they even out.
        """
        runs, noise = float(self.repeats[place]), self.spread**2
        own = self.now.sources.point**2
        fitted = float(self.now.final.log_cost[place])
        away = float(np.log(self.series.cost[place])) - fitted
        kept = own / (own + noise / runs) if own + noise > 0 else 1.0
        expected = away * (runs + more * kept) / (runs + more)
        spread = more * math.sqrt(own * (1 - kept) + noise / more) / (runs + more)
        return math.exp(fitted + expected + float(ndtri(quantile)) * spread)


def cost_bounds(series: Series, count: float, level: float = 0.95) -> tuple[float, float]:
    """Bounds of the cost of one more run at a count, measured or not.

    Of the prediction beyond the largest measured count; up to it of a line through its neighbours
    (in logarithms of both), with the scatter of the points and of their repeats.
    """
    prediction = predict(series, [count])
    if count > series.ranks[-1]:
        low, high = prediction.interval(level)
        return float(low[0]), float(high[0])
    log_cost = np.interp([math.log(count)], np.log(series.ranks), np.log(series.cost))
    total = np.hypot(prediction.sources.scatter, prediction.sources.repeats)
    below, above = bounds(log_cost, total, CALIBRATION[series.scaling], level)
    return math.exp(float(below[0])), math.exp(float(above[0]))


def widths(questions: Iterable[Question], series: Series) -> Floats:
    """How wide the interval is of each thing that is asked."""
    asked = list(questions)
    places = [_places(question, series) for question in asked]
    prediction = predict(series, np.concatenate([*places, []]))
    low, high = prediction.interval()
    _, least, most = prediction.efficiency()
    result, start = [], 0
    for question, counts in zip(asked, places, strict=True):
        there = slice(start, start + len(counts))
        start += len(counts)
        if isinstance(question, Target):
            result.append(math.log(high[there][0] / low[there][0]))
        else:
            first, last = _knee(question, series, counts, least[there], most[there])
            result.append(math.log(last / first))
    return np.array(result)


def _places(question: Question, series: Series) -> Floats:
    """The counts at which a prediction is needed."""
    if isinstance(question, Target):
        return np.array([question.count])
    doublings = math.log2(max(question.cap / series.ranks[-1], 1.0))
    steps = np.linspace(0.0, doublings, round(STEPS * doublings) + 1)
    return np.asarray(series.ranks[-1] * 2.0**steps, np.float64)


def _knee(
    question: Knee, series: Series, counts: Floats, least: Floats, most: Floats
) -> tuple[float, float]:
    """Between which counts the knee is.

    Between the neighbours, where measured points enclose it; else, beyond the largest, where the
    bounds of the efficiency at ``counts`` fall below the least one, at most the cap.
    """
    below = np.flatnonzero(series.cost[0] / series.cost < question.least)
    if below.size:
        first = int(below[0])
        return float(series.ranks[first - 1]), float(series.ranks[first])
    knees = []
    for curve in (least, most):
        under = np.flatnonzero(curve < question.least)
        knees.append(float(counts[under[0] if under.size else -1]))
    return knees[0], knees[1]


def knee_of(series: Series, least: float) -> Knee:
    """The question for the knee of a series as it is now."""
    return Knee(least, float(series.ranks[-1]) * FARTHEST[series.scaling])


def expected_widths(questions: Iterable[Question], known: Known, added: Additions) -> Floats:
    """How wide the intervals of what is asked are expected to be once these runs were added."""
    asked = list(questions)
    if not added:
        return widths(asked, known.series)
    outcomes = [widths(asked, known.outcome(added, quantile)) for quantile in QUANTILES]
    return np.asarray(np.mean(outcomes, axis=0), np.float64)


def ratio_width(spread: float, runs: tuple[int, int]) -> float:
    """How wide the interval of a ratio of two means is, of so many runs each.

    From the standard error of the logarithm of the ratio, ``spread`` being the relative standard
    deviation of a run. Of one run each no interval is known: it counts as that of a single degree
    of freedom.
    """
    degrees = max(sum(runs) - 2, 1)
    error = spread * math.sqrt(sum(1 / count for count in runs))
    return 2 * t_quantile(degrees) * error
