"""Fits on the first points of a series, for every number of points, and weights from their errors.

A model is judged by its forecasts of the larger counts from the smaller ones and by nothing else:
not by how well it fits in the middle.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from scalesweep.analysis.prediction.models import Model, design, fit
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
# Fits that are kept, of about a kilobyte each.
FITS_KEPT = 16_384


def fit_each(
    models: Sequence[Model], ranks: Floats, cost: Floats, places: Floats, part: Floats | None = None
) -> tuple[Floats, tuple[Floats, ...]]:
    """Fit every model to the first 2, 3, ... points of costs, or of a ``part`` of them.

    Returns ``[k, model, place]``, what each gives at ``places`` after k points, NaN where it has
    too many terms for them; and the coefficients of each on all points, 0 for growing terms that
    they do not show.
    """
    count = len(ranks)
    predicted = np.full((count + 1, len(models), len(places)), np.nan)
    last: list[Floats] = []
    each = (ranks, cost) if part is None else (ranks, cost, part)
    firsts = [[column[:k].tobytes() for column in each] for k in range(FIRST_ORIGIN, count + 1)]
    for number, model in enumerate(models):
        # As many terms as points leave nothing to judge by, except where there is no choice.
        many = len(model.terms)
        start = FIRST_ORIGIN if many <= FIRST_ORIGIN else many + 1
        sizes = [_sizes(model, *first) for first in firsts[start - FIRST_ORIGIN :]]
        if sizes:
            predicted[start:, number] = np.stack(sizes) @ design(model, places).T
        last.append(sizes[-1] if sizes else np.zeros(many))
    return predicted, tuple(last)


@lru_cache(maxsize=FITS_KEPT)
def _sizes(model: Model, ranks: bytes, cost: bytes, part: bytes | None = None) -> Floats:
    """``_informed`` of points as the bytes of their floats; not to be written to.

    Kept, because the same first points are fitted again and again: for rolling forecasts, limits
    of trust, knees, and every outcome that advice weighs.
    """
    p, costs = np.frombuffer(ranks), np.frombuffer(cost)
    own = None if part is None else np.frombuffer(part)
    coefficients = _informed(design(model, p), p, costs, own)
    coefficients.flags.writeable = False
    return coefficients


def _informed(terms: Floats, ranks: Floats, cost: Floats, part: Floats | None) -> Floats:
    """Coefficients of ``fit``, 0 for growing terms that the points do not show."""
    coefficients = fit(terms, ranks, cost, part)
    whole = float(terms[-1] @ coefficients) if part is None else float(cost[-1])
    change = coefficients * (terms[-1] - terms[0]) / whole
    lost = (np.abs(change) < LEAST_SHARE) & (coefficients > 0)
    lost[0] = False
    if lost.any():
        kept = np.flatnonzero(~lost)
        coefficients = np.zeros(len(coefficients))
        coefficients[kept] = fit(terms[:, kept], ranks, cost, part)
    return coefficients


def weigh(errors: Floats, ranks: Floats, k: int, models: Sequence[Model], there: Floats) -> Floats:
    """Weights of models after k points, from their ``errors[origin, model, point]``.

    Errors are relative, those of forecasts from fewer than k points on points up to k count, and
    models that are not ``there[model]`` get 0. Weight: prior over (mean squared error +
    ``FLOOR``^2). A squared error is over the distance of the forecast in doublings, and counts more
    from later origins and less over longer distances. A model without a forecast yet has twice the
    median of the others.
    """
    doublings = np.log2(ranks)
    total, count = np.zeros(len(models)), np.zeros(len(models))
    for origin in range(FIRST_ORIGIN, k):
        distance = doublings[origin:k] - doublings[origin - 1]
        error = errors[origin, :, origin:k]
        known = np.isfinite(error).all(axis=1)
        weight = (origin - 1) / (1 + distance)
        total[known] += (np.minimum(error[known] ** 2, WORST**2) * (weight / distance)).sum(axis=1)
        count[known] += weight.sum()
    score = (total + FLOOR**2) / (count + 1.0)
    judged = count > 0
    usual = 2 * float(np.median(score[judged])) if judged.any() else FLOOR**2
    score = np.where(judged, score, usual)
    prior = np.array([model.prior for model in models])
    weights = np.where(there, prior / (score + FLOOR**2), 0.0)
    return np.asarray(weights / weights.sum(), np.float64)
