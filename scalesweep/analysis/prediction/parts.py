"""The sum by parts: each part of the cost predicted for itself, and added.

Where the time of a step is split (the ledger, docs/methods/time_breakdown.md), its parts may grow
by different laws, of which their sum shows none. Each part is predicted by the same models as a
whole cost, weighted by rolling forecasts of that part; errors are relative to the whole
cost, so that a part that is next to nothing decides nothing.
Where probes measured the network, the exchange may be
their collective at the size of the gradients instead, joined to computation by the overlap norm of
Pollux (A. Qiao et al., OSDI 2021): (a^g + c^g)^(1/g), with the degree of overlap g of 1 (none) to
10 (all but complete) that fits the measured counts best.

The sums are models like any other (``weights``): judged by their rolling forecasts of the whole.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from scalesweep.analysis.prediction.models import (
    COLLECTIVE,
    DISCOUNT,
    MODELS,
    TERMS,
    Model,
    design,
)
from scalesweep.analysis.prediction.rolling import (
    ANCHOR,
    FIRST_ORIGIN,
    FITS_KEPT,
    fit_each,
    weigh,
)
from scalesweep.analysis.prediction.series import Collective, Series
from scalesweep.analysis.types import Floats

# Weights before any forecast: that of the best of the other models.
PRIOR = 4.0
OVERLAPS = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
# A cost that parts add up to is not below this share of the first measured one.
_LEAST = 1e-6
_ALL = Model(tuple(TERMS), PRIOR, "sum of the parts of a step")
_CONSTANT = np.array([float(name == "constant") for name in TERMS])


@dataclass(frozen=True, eq=False)
class Sum:
    """A sum by parts: ``log_cost[k, place]`` after k points, and its terms at all points.

    ``by_part[part, place]``: what each part costs, after all points.
    """

    model: Model
    log_cost: Floats
    coefficients: Floats
    by_part: Floats


@dataclass(frozen=True, eq=False)
class _Part:
    """One part: ``values[k, place]`` after k points, and the sizes of ``TERMS`` at all points."""

    values: Floats
    sizes: Floats


def sums_by_parts(series: Series, places: Floats) -> Iterator[Sum]:
    """The sums of a series of which parts are known; none of any other."""
    known = series.parts
    if known is None:
        return
    parts = [_part(series, row, places) for row in known.cost]
    if len(parts) > 1:
        whole = np.sum([part.values for part in parts], axis=0)
        sizes = np.sum([part.sizes for part in parts], axis=0)
        each = np.stack([part.values[-1] for part in parts])
        yield _sum(series, _ALL, whole, sizes, each)
    if known.collective is not None:
        yield _with_collective(series, places, parts)


def _sum(series: Series, model: Model, values: Floats, sizes: Floats, each: Floats) -> Sum:
    return Sum(model, np.log(np.maximum(values, _LEAST * series.cost[0])), sizes, each)


def _part(series: Series, part: Floats, places: Floats) -> _Part:
    """A part predicted by the models of a whole cost."""
    models, ranks, cost = MODELS[series.scaling], series.ranks, series.cost
    fitted, coefficients = fit_each(models, ranks, cost, places, part)
    values = np.full((len(fitted), len(places)), np.nan)
    weights = np.zeros(len(models))
    for k in range(FIRST_ORIGIN, len(fitted)):
        first = [values[:k].tobytes() for values in (ranks, cost, part)]
        weights = _weights(series.scaling, *first)
        there = weights > 0
        value = weights[there] @ fitted[k][there]
        values[k] = np.maximum(value + ANCHOR * (part[k - 1] - value[k - 1]), 0.0)
    sizes = dict.fromkeys(TERMS, 0.0)
    for model, weight, own in zip(models, weights, coefficients, strict=True):
        for name, size in zip(model.terms, own, strict=True):
            sizes[name] += float(weight * size)
    return _Part(values, np.array(list(sizes.values())))


@lru_cache(maxsize=FITS_KEPT)
def _weights(scaling: str, ranks: bytes, cost: bytes, part: bytes) -> Floats:
    """Weights of the models of a part after some points, as the bytes of their floats; not to be
    written to. Kept as their fits are."""
    p, costs, own = (np.frombuffer(part) for part in (ranks, cost, part))
    fitted, _ = fit_each(MODELS[scaling], p, costs, p, own)
    there = np.isfinite(fitted[-1]).all(axis=1)
    weights = weigh((fitted - own) / costs, p, len(p), MODELS[scaling], there)
    weights.flags.writeable = False
    return weights


def _with_collective(series: Series, places: Floats, parts: Sequence[_Part]) -> Sum:
    """The sum whose exchange is the collective that probes measured, as far as it is exposed."""
    known = series.parts
    assert known is not None
    assert known.collective is not None
    apart = known.names.index(known.exchange) if known.exchange in known.names else None
    others = [part for place, part in enumerate(parts) if place not in (0, apart)]
    at_points, at_places = known.collective(series.ranks), known.collective(places)
    values = np.full((len(series.ranks) + 1, len(places)), np.nan)
    overlap, busy = 1.0, parts[0].sizes
    for k in range(FIRST_ORIGIN, len(values)):
        overlap, alone = _overlap(series, k, at_points[:k], apart)
        if apart is None:
            busy, both = alone * _CONSTANT, np.full(len(places), alone)
            measured = known.cost[0]
        else:
            both, measured = parts[0].values[k], known.cost[0] + known.cost[apart]
        both = _joined(both, at_places, overlap)
        both = both + ANCHOR * (measured[k - 1] - both[k - 1])
        values[k] = np.sum([both, *(part.values[k] for part in others)], axis=0)

    def exposed(ranks: Floats, collective: Collective = known.collective) -> Floats:
        own = design(_ALL, ranks) @ busy
        return _joined(own, collective(ranks), overlap) - own

    model = Model((*TERMS, COLLECTIVE), PRIOR, "parts, the exchange as probed", exposed)
    sizes = np.sum([busy, *(part.sizes for part in others)], axis=0)
    each = np.stack([part.values[-1] for part in parts])
    return _sum(series, model, values, np.append(sizes, 1.0), each)


def _joined(busy: Floats, collective: Floats, overlap: float) -> Floats:
    """The overlap norm of computation and exchange."""
    return np.asarray((busy**overlap + collective**overlap) ** (1 / overlap), np.float64)


def _overlap(series: Series, k: int, collective: Floats, apart: int | None) -> tuple[float, float]:
    """The degree of overlap that fits the first k points best; and the computation, taken for
    constant, where it is not known apart from the exchange."""
    assert series.parts is not None
    cost, first = series.cost[:k], series.parts.cost[0, :k]
    weight = DISCOUNT ** np.log2(series.ranks[k - 1] / series.ranks[:k])
    best, alone, least = 1.0, 0.0, np.inf
    for degree in OVERLAPS:
        if apart is None:
            each = np.maximum(first**degree - collective**degree, 0.0) ** (1 / degree)
            constant = float(np.average(each, weights=weight))
            away = _joined(np.full(k, constant), collective, degree) - first
        else:
            constant = 0.0
            away = _joined(first, collective, degree) - first - series.parts.cost[apart, :k]
        misfit = float(weight @ (away / cost) ** 2)
        if misfit < least:
            best, alone, least = degree, constant, misfit
    return best, alone
