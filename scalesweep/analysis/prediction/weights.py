"""What every model says of larger counts from the smaller ones, and all of them together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from scalesweep.analysis.prediction.models import MODELS, Model
from scalesweep.analysis.prediction.parts import sums_by_parts
from scalesweep.analysis.prediction.rolling import ANCHOR, FIRST_ORIGIN, fit_each, weigh
from scalesweep.analysis.prediction.series import Series
from scalesweep.analysis.prediction.topology import steps
from scalesweep.analysis.types import Floats

# Points from which on a + b log2 p is tried against the models in weak scaling: three give it one
# forecast, which tells nothing (bench.prediction). In strong scaling it is no law of the cost: the
# growth per doubling grows there.
LINE_FROM = 4
# Errors per doubling that the models and the newest growth are expected to have alike, and the
# forecasts that this weighs as much as.
EVEN, EVEN_STRENGTH = 0.03, 2.0
# A line's cost is not below this share of the first measured one.
LEAST = 1e-6


@dataclass(frozen=True, eq=False)
class Fits:
    """Every model fitted on the first k points of a series, for every k.

    ``log_cost[k, model, place]``: natural logarithm of the cost at the measured counts, then at
    the targets; NaN where a model has too many terms for k points. ``coefficients[model, term]``:
    of all points, NaN-free, 0 for terms that no point informs, which ``uninformed`` names.
    ``by_part[part, place]``: what each known part of the costs will be, no rows without any.
    All as if every border were crossed: ``lift[place]`` is the logarithm of what costs below the
    borders that the series has crossed are raised by for that (``topology.steps``).
    """

    models: tuple[Model, ...]
    log_cost: Floats
    coefficients: tuple[Floats, ...]
    uninformed: tuple[str, ...]
    by_part: Floats
    targets: Floats
    lift: Floats


@dataclass(frozen=True, eq=False)
class Forecast:
    """What is said after the first k points.

    ``log_cost[place]`` and ``spread[place]`` (standard deviation over models and ways), at the
    measured counts, then at the targets; ``weights[model]`` sum to 1; ``grown[place]``: what the
    newest growth alone says.
    """

    log_cost: Floats
    spread: Floats
    weights: Floats
    grown: Floats


def fit_models(series: Series, targets: Floats) -> Fits:
    """Fit every model of the series' kind of scaling on its first 2, 3, ... points.

    Where the parts of its costs are known, the sums by parts are models too.
    """
    ranks, places = series.ranks, np.concatenate([series.ranks, targets])
    lift = steps(ranks, series.cost, series.borders, places)
    series = _level(series, np.exp(lift[: len(ranks)]))
    cost = series.cost
    models = MODELS[series.scaling]
    found, coefficients = fit_each(models, ranks, cost, places)
    with np.errstate(divide="ignore"):
        log_cost = np.log(found)
    for k in range(FIRST_ORIGIN, len(ranks) + 1):
        away = np.log(cost[k - 1]) - log_cost[k, :, k - 1]
        log_cost[k] += ANCHOR * away[:, None]
    by_part = np.empty((0, len(places)))
    for one in sums_by_parts(series, places):
        by_part = one.by_part if len(one.by_part) > 1 else by_part
        models = (*models, one.model)
        log_cost = np.concatenate([log_cost, one.log_cost[:, None]], axis=1)
        coefficients = (*coefficients, one.coefficients)
    uninformed: dict[str, bool] = {}
    for model, sizes in zip(models, coefficients, strict=True):
        for name, size in zip(model.terms, sizes.tolist(), strict=True):
            uninformed[name] = uninformed.get(name, True) and size == 0.0
    missing = tuple(name for name, zero in uninformed.items() if zero)
    return Fits(models, log_cost, coefficients, missing, by_part, targets, lift)


def _level(series: Series, factors: Floats) -> Series:
    """A series whose costs, and parts of them, are ``factors[point]`` times as large."""
    parts = series.parts and replace(series.parts, cost=series.parts.cost * factors)
    return replace(series, cost=series.cost * factors, parts=parts)


def combine(fits: Fits, series: Series) -> dict[int, Forecast]:
    """What is said after the first 2, 3, ... points, from the models and from two simple ways.

    The models are weighted by their forecasts from fewer points. Beyond the largest known count
    the forecast is a mean of theirs and of the newest growth (``_CONTINUED``): half of each, until
    forecasts from fewer points tell them apart. In weak scaling, from ``LINE_FROM`` points on,
    where a + b log2 p has forecast the later of them as well as that, it is the mean of both.
    """
    ranks, lift, count = series.ranks, fits.lift, len(series.ranks)
    places = np.concatenate([ranks, fits.targets])
    logs = np.log(series.cost) + lift[:count]
    errors = fits.log_cost[:, :, :count] - logs
    doublings = np.log2(places)
    found: dict[int, Forecast] = {}
    # Errors of all later points per doubling, by origin.
    own: list[Floats] = []
    line: list[Floats] = []
    modelled: list[Floats] = []
    continued: list[Floats] = []
    for k in range(FIRST_ORIGIN, count + 1):
        there = np.isfinite(fits.log_cost[k]).all(axis=1)
        weights = weigh(errors, ranks, k, fits.models, there)
        values, share = fits.log_cost[k][there], weights[there]
        mean = share @ values
        variance = share @ (values - mean) ** 2
        beyond = doublings > doublings[k - 1]
        grown = _CONTINUED[series.scaling](doublings[:k], logs[:k], doublings)
        # Parts of a step that are known apart say more than the whole that is continued.
        simple = 1 - float(weights[[bool(model.name) for model in fits.models]].sum())
        simple *= _share(_squares(continued, k), _squares(modelled, k), k - FIRST_ORIGIN)
        both = np.where(beyond, mean + simple * (grown - mean), mean)
        away = variance + simple * (grown - mean) ** 2
        spread = np.where(beyond, (1 - simple) * away, variance)
        straight = _line(doublings[:k], logs[:k], doublings)
        # Of the points up to k, from fewer.
        tried = series.scaling == "weak" and k >= LINE_FROM
        if tried and _mean(line, k) <= _mean(own, k):
            both = np.where(beyond, (both + straight) / 2, both)
        distance = doublings[k:count] - doublings[k - 1]
        ways = ((own, both), (line, straight), (modelled, mean), (continued, grown))
        for errors_of, said in ways:
            errors_of.append(np.abs(said[k:count] - logs[k:]) / distance)
        found[k] = Forecast(both - lift, np.sqrt(spread), weights, grown - lift)
    return found


def _mean(errors: Sequence[Floats], k: int) -> float:
    """Mean of the errors of every origin on the points up to k."""
    return float(np.mean(np.concatenate([
        each[: k - origin] for origin, each in enumerate(errors, FIRST_ORIGIN)
    ])))  # fmt: skip


def _squares(errors: Sequence[Floats], k: int) -> float:
    """Mean squares of the errors of every origin on the points up to k, summed."""
    each = [one[: k - origin] for origin, one in enumerate(errors, FIRST_ORIGIN)]
    return float(sum(np.mean(one**2) for one in each))


def _share(own: float, other: float, origins: int) -> float:
    """The weight of one of two ways from the squares of their errors over so many origins, half
    before any."""
    usual = EVEN_STRENGTH * EVEN**2
    mine, its = ((usual + squares) / (EVEN_STRENGTH + origins) for squares in (own, other))
    return float(its / (mine + its))


def _continued(doublings: Floats, logs: Floats, places: Floats) -> Floats:
    """The cost of the last point grown on per doubling as from the first, or from the one before
    it, whichever is more; not at all where both fall."""
    last = len(logs) - 1
    rates = [(logs[last] - logs[i]) / (doublings[last] - doublings[i]) for i in (0, last - 1)]
    return np.asarray(logs[last] + max(*rates, 0.0) * (places - doublings[last]), np.float64)


def _amdahl(doublings: Floats, logs: Floats, places: Floats) -> Floats:
    """Amdahl's law, a cost b + a p, through the last point and the first, or the one before it,
    whichever gives the larger share to what does not shrink; not grown on where both fall.

    The work of a rank halves each time and the rest does not, so that the growth per doubling
    grows: what continues it as it is falls behind more with every doubling.
    """
    last = len(logs) - 1
    shares = [
        (1 - np.exp(logs[i] - logs[last])) / (1 - 2.0 ** (doublings[i] - doublings[last]))
        for i in (0, last - 1)
    ]
    # Growth faster than that of the ranks is not continued: time stays as it is.
    share = min(max(*shares, 0.0), 1.0)
    ratio = 2.0 ** (places - doublings[last])
    return np.asarray(logs[last] + np.log(1 - share + share * ratio), np.float64)


def _line(doublings: Floats, logs: Floats, places: Floats) -> Floats:
    """a + b log2 p by least squares, in logarithms."""
    slope, start = np.polyfit(doublings, np.exp(logs), 1)
    return np.asarray(np.log(np.maximum(start + slope * places, LEAST * np.exp(logs[0]))))


# How the newest growth is continued, by scaling.
_CONTINUED = {"weak": _continued, "strong": _amdahl}
