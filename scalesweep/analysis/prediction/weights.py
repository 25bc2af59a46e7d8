"""What every model says of larger counts from the smaller ones, and all of them together."""

from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.prediction.models import MODELS, Model
from scalesweep.analysis.prediction.parts import sums_by_parts
from scalesweep.analysis.prediction.rolling import ANCHOR, FIRST_ORIGIN, fit_each, weigh
from scalesweep.analysis.prediction.series import Series
from scalesweep.analysis.types import Floats


@dataclass(frozen=True, eq=False)
class Fits:
    """Every model fitted on the first k points of a series, for every k.

    ``log_cost[k, model, place]``: natural logarithm of the cost at the measured counts, then at
    the targets; NaN where a model has too many terms for k points. ``coefficients[model, term]``:
    of all points, NaN-free, 0 for terms that no point informs, which ``uninformed`` names.
    ``by_part[part, place]``: what each known part of the costs will be, no rows without any.
    """

    models: tuple[Model, ...]
    log_cost: Floats
    coefficients: tuple[Floats, ...]
    uninformed: tuple[str, ...]
    by_part: Floats


@dataclass(frozen=True, eq=False)
class Forecast:
    """What the weighted models say after the first k points.

    ``log_cost[place]`` and ``spread[place]`` (weighted standard deviation over models), at the
    measured counts, then at the targets; ``weights[model]`` sum to 1.
    """

    log_cost: Floats
    spread: Floats
    weights: Floats


def fit_models(series: Series, targets: Floats) -> Fits:
    """Fit every model of the series' kind of scaling on its first 2, 3, ... points.

    Where the parts of its costs are known, the sums by parts are models too.
    """
    ranks, cost, places = series.ranks, series.cost, np.concatenate([series.ranks, targets])
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
    return Fits(models, log_cost, coefficients, missing, by_part)


def combine(fits: Fits, series: Series, k: int) -> Forecast:
    """Weigh the models by their forecasts from fewer than k points on points up to k."""
    measured = np.log(series.cost)
    errors = fits.log_cost[:, :, : len(measured)] - measured
    there = np.isfinite(fits.log_cost[k]).all(axis=1)
    weights = weigh(errors, series.ranks, k, fits.models, there)
    values = fits.log_cost[k][there]
    mean = weights[there] @ values
    spread = np.sqrt(weights[there] @ (values - mean) ** 2)
    return Forecast(mean, spread, weights)
