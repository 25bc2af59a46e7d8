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

# Points from which on a + b log2 p and the last value are ways of their own in weak scaling: three
# give each one forecast, which tells nothing (bench.prediction). In strong scaling neither is a law
# of the cost: the growth per doubling grows there.
SIMPLE_FROM = 4
# Errors per doubling that all ways are expected to have alike, and the forecasts that this weighs
# as much as.
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
    fitted, coefficients = fit_each(models, ranks, cost, places)
    with np.errstate(divide="ignore"):
        log_cost = np.log(fitted)
    for k in range(FIRST_ORIGIN, len(ranks) + 1):
        away = np.log(cost[k - 1]) - log_cost[k, :, k - 1]
        log_cost[k] += ANCHOR * away[:, None]
    by_part = np.empty((0, len(places)))
    for sums in sums_by_parts(series, places):
        by_part = sums.by_part if len(sums.by_part) > 1 else by_part
        models = (*models, sums.model)
        log_cost = np.concatenate([log_cost, sums.log_cost[:, None]], axis=1)
        coefficients = (*coefficients, sums.coefficients)
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
    """What is said after the first 2, 3, ... points, from the models and from simpler ways.

    The models are weighted by their forecasts from fewer points. Beyond the largest known count
    the forecast is a mean of ways: the models, the newest growth (``_CONTINUED``), and in weak
    scaling from ``SIMPLE_FROM`` points on also a + b log2 p and the last value. All weigh the
    same, until forecasts from fewer points tell them apart (combining beats choosing where few
    forecasts tell: J. M. Bates and C. W. J. Granger, 1969; A. Timmermann, 2006).
    """
    ranks, lift, count = series.ranks, fits.lift, len(series.ranks)
    places = np.concatenate([ranks, fits.targets])
    logs = np.log(series.cost) + lift[:count]
    errors = fits.log_cost[:, :, :count] - logs
    doublings = np.log2(places)
    forecasts: dict[int, Forecast] = {}
    # Squared errors on later points per doubling, ``[origin][way, point]``.
    tried: list[Floats] = []
    for k in range(FIRST_ORIGIN, count + 1):
        there = np.isfinite(fits.log_cost[k]).all(axis=1)
        weights = weigh(errors, ranks, k, fits.models, there)
        values, share = fits.log_cost[k][there], weights[there]
        mean = share @ values
        variance = share @ (values - mean) ** 2
        beyond = doublings > doublings[k - 1]
        grown = _CONTINUED[series.scaling](doublings[:k], logs[:k], doublings)
        line = _line(doublings[:k], logs[:k], doublings)
        ways = np.stack([mean, grown, line, np.full(len(places), logs[k - 1])])
        used = len(ways) if series.scaling == "weak" and k >= SIMPLE_FROM else 2
        simple = _shares([each[:used] for each in tried], k)
        # Parts of a step that are known apart say more than the whole that is continued.
        whole = 1 - float(weights[[bool(model.name) for model in fits.models]].sum())
        simple[1:] *= whole
        simple[0] = 1 - simple[1:].sum()
        both = simple @ ways[:used]
        away = simple[0] * variance + simple @ (ways[:used] - both) ** 2
        distance = doublings[k:count] - doublings[k - 1]
        tried.append(((ways[:, k:count] - logs[k:]) / distance) ** 2)
        forecasts[k] = Forecast(
            np.where(beyond, both, mean) - lift,
            np.sqrt(np.where(beyond, away, variance)),
            weights,
            grown - lift,
        )
    return forecasts


def _shares(squares: Sequence[Floats], k: int) -> Floats:
    """The weights of ways after k points: one over the mean square of their errors on the points up
    to k, over origins; the same for all before any. ``squares[origin][way, point]``."""
    usual = EVEN_STRENGTH * EVEN**2
    each = [
        errors[:, : k - origin].mean(axis=1) for origin, errors in enumerate(squares, FIRST_ORIGIN)
    ]
    if not each:
        return np.array([0.5, 0.5])
    score = (usual + np.sum(each, axis=0)) / (EVEN_STRENGTH + len(each))
    return np.asarray(1 / score / (1 / score).sum(), np.float64)


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
