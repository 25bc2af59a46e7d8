"""Simulated series of which the parts of a step are known, and behave differently.

Costs are rank-seconds of a unit of work, of which computation takes 1 at the smallest count. What
each part adds up to the largest count is drawn, and so are the noise of runs (all parts together)
and of each part for itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from scalesweep.analysis.prediction.forecast import predict
from scalesweep.analysis.prediction.series import Collective, Parts, Series, make_series
from scalesweep.analysis.types import Floats

NAMES = ("computation", "input", "imbalance", "transfer")
# What parts do: of a part the law over p, and how much it adds up to the largest count at most.
Law = Callable[[Floats], Floats]
_LEDGER: Mapping[str, tuple[tuple[Law, float] | None, ...]] = {
    "transfer": (None, None, None, (np.log2, 0.5)),
    "transfer and imbalance": (None, None, (lambda p: np.sqrt(np.log(p)), 0.2), (np.log2, 0.4)),
    "input late": (None, (lambda p: (p / p[-1]) ** 2, 0.6), None, (np.log2, 0.2)),
    "two against each other": ((lambda p: -np.log2(p), 0.15), None, None, (lambda p: p, 0.5)),
    "imbalance late": (None, None, (lambda p: p, 0.4), (lambda p: (p - 1) / p, 0.3)),
}
# Of the first the parts are split by chance anew at every count; of the second the network that was
# probed is another one.
WRONG = ("parts that say nothing", "another network")
PROBED = ("probed", "probed, parts not known apart")
KINDS = (*_LEDGER, *PROBED, *WRONG)


def simulate_parts(kind: str, random: np.random.Generator) -> Series:
    """Draw one series of a kind with its parts, and with a collective where one was probed."""
    count = int(random.integers(7, 12))
    ranks = 2.0 ** np.arange(count)
    parts = np.zeros((len(NAMES), count))
    parts[0] = 1.0
    parts[1:3] = random.uniform(0.005, 0.05, (2, 1))
    collective = None
    if kind in (*PROBED, WRONG[1]):
        collective = _ring(ranks, random)
        overlap = random.uniform(1, 4)
        parts[3] = (1 + collective(ranks) ** overlap) ** (1 / overlap) - 1
    else:
        parts[3] = random.uniform(0.005, 0.05)
        laws = _LEDGER["transfer and imbalance" if kind in WRONG else kind]
        for place, law in enumerate(laws):
            if law is not None:
                shape = law[0](ranks) - law[0](ranks)[0]
                parts[place] += random.uniform(0.2, 1) * law[1] * shape / abs(shape[-1])
    if kind == WRONG[0]:
        parts = parts.sum(axis=0) * random.dirichlet(np.ones(len(NAMES)), count).T
    if kind == WRONG[1]:
        collective = _ring(ranks, random)
    noise = np.exp(random.uniform(np.log(0.002), np.log(0.03)))
    parts = parts * np.exp(noise * random.standard_normal(count))
    parts[1:] *= np.exp(0.05 * random.standard_normal((len(NAMES) - 1, count)))
    known = Parts(NAMES, parts, collective, "transfer")
    if kind == PROBED[1]:
        known = replace(known, names=("all",), cost=parts.sum(axis=0)[None], exchange=None)
    return make_series(ranks, parts.sum(axis=0), "weak", None, known)


def _ring(ranks: Floats, random: np.random.Generator) -> Collective:
    """The time of a ring: bandwidth, and latency that is nothing at first and grows with p."""
    slope, latency = random.uniform(0.05, 0.4), random.uniform(0.02, 0.6) / ranks[-1]
    return lambda p: slope * (p - 1) / p + latency * (p - 1)


class Errors(NamedTuple):
    """Of many held-out rows: mean absolute error, share within 90 % intervals, their score."""

    mean: float
    covered: float
    score: float


def with_and_without(kind: str, series: int, seed: int) -> tuple[Errors, Errors]:
    """Forecasts of the larger half of each of so many series, without and with their parts."""
    random = np.random.default_rng(seed)
    errors: tuple[list[Floats], list[Floats]] = ([], [])
    for _ in range(series):
        simulated = simulate_parts(kind, random)
        half = (len(simulated.ranks) + 1) // 2
        known, measured = simulated.first(half), simulated.cost[half:]
        for rows, what in zip(errors, (replace(known, parts=None), known), strict=True):
            said = predict(what, simulated.ranks[half:])
            low, high = said.interval(0.9)
            outside = np.maximum(low - measured, 0) + np.maximum(measured - high, 0)
            score = (high - low + 20 * outside) / measured
            rows.append(np.stack([np.abs(said.cost / measured - 1), outside == 0, score]))
    without, own = (Errors(*np.concatenate(rows, axis=1).mean(axis=1)) for rows in errors)
    return without, own
