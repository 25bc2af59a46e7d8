"""Rolling forecasts: what each model says of the larger counts from the smaller ones.

A model is judged by these errors and by nothing else: not by how well it fits in the middle.
"""

from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.prediction.models import MODELS, Model, design, fit
from scalesweep.analysis.prediction.series import Series
from scalesweep.analysis.types import Floats

FIRST_ORIGIN = 2  # points of the first forecast
# Of the deviation of the largest measured point from a model, that a forecast of it keeps.
ANCHOR = 0.3
# Error of a forecast that no model is expected to beat, as relative deviation for a doubling.
FLOOR = 0.005
# One forecast counts no more than this: an outlier is not to decide between models.
WORST = 0.3
# A term informs no forecast unless it changes the cost of the measured counts by so much.
LEAST_SHARE = 0.005


@dataclass(frozen=True, eq=False)
class Fits:
    """Every model fitted on the first k points of a series, for every k.

    ``log_cost[k, model, place]``: natural logarithm of the cost at the measured counts, then at
    the targets; NaN where a model has too many terms for k points. ``coefficients[model, term]``:
    of all points, NaN-free, 0 for terms that no point informs, which ``uninformed`` names.
    """

    models: tuple[Model, ...]
    log_cost: Floats
    coefficients: tuple[Floats, ...]
    uninformed: tuple[str, ...]


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
    """Fit every model of the series' kind of scaling on its first 2, 3, ... points."""
    models = MODELS[series.scaling]
    ranks, cost, count = series.ranks, series.cost, len(series.ranks)
    places = np.concatenate([ranks, targets])
    log_cost = np.full((count + 1, len(models), len(places)), np.nan)
    last: list[Floats] = []
    uninformed: dict[str, bool] = {}
    for number, model in enumerate(models):
        terms = design(model, places)
        found = np.zeros(len(model.terms))
        for k in range(FIRST_ORIGIN, count + 1):
            # As many terms as points leave nothing to judge by, except where there is no choice.
            if len(model.terms) >= max(k, FIRST_ORIGIN + 1):
                continue
            found = _informed(terms[:k], ranks[:k], cost[:k])
            with np.errstate(divide="ignore"):
                logs = np.log(terms @ found)
            log_cost[k, number] = logs + ANCHOR * (np.log(cost[k - 1]) - logs[k - 1])
        last.append(found)
        for name, size in zip(model.terms, found.tolist(), strict=True):
            uninformed[name] = uninformed.get(name, True) and size == 0.0
    return Fits(models, log_cost, tuple(last), tuple(n for n, zero in uninformed.items() if zero))


def _informed(terms: Floats, ranks: Floats, cost: Floats) -> Floats:
    """Coefficients of ``fit``, 0 for growing terms that the points do not show."""
    found = fit(terms, ranks, cost)
    change = found * (terms[-1] - terms[0]) / float(terms[-1] @ found)
    lost = (np.abs(change) < LEAST_SHARE) & (found > 0)
    lost[0] = False
    if lost.any():
        kept = np.flatnonzero(~lost)
        found = np.zeros(len(found))
        found[kept] = fit(terms[:, kept], ranks, cost)
    return found


def combine(fits: Fits, series: Series, k: int) -> Forecast:
    """Weigh the models by their forecasts from fewer than k points on points up to k.

    Weight: prior over (mean squared error + ``FLOOR``^2). A squared error is of the logarithm,
    over the distance of the forecast in doublings, and counts more from later origins and less
    over longer distances. A model without a forecast yet has twice the median of the others.
    """
    doublings, logs = np.log2(series.ranks), np.log(series.cost)
    total, count = np.zeros(len(fits.models)), np.zeros(len(fits.models))
    for origin in range(FIRST_ORIGIN, k):
        distance = doublings[origin:k] - doublings[origin - 1]
        error = fits.log_cost[origin, :, origin:k] - logs[origin:k]
        known = np.isfinite(error).all(axis=1)
        weight = (origin - 1) / (1 + distance)
        total[known] += (np.minimum(error[known] ** 2, WORST**2) * (weight / distance)).sum(axis=1)
        count[known] += weight.sum()
    score = (total + FLOOR**2) / (count + 1.0)
    judged = count > 0
    usual = 2 * float(np.median(score[judged])) if judged.any() else FLOOR**2
    score = np.where(judged, score, usual)
    there = np.isfinite(fits.log_cost[k]).all(axis=1)
    prior = np.array([model.prior for model in fits.models])
    weights = np.where(there, prior / (score + FLOOR**2), 0.0)
    weights /= weights.sum()
    values = fits.log_cost[k][there]
    mean = weights[there] @ values
    spread = np.sqrt(weights[there] @ (values - mean) ** 2)
    return Forecast(mean, spread, weights)
