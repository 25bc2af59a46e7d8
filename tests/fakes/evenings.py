"""Made-up sessions of a year of evenings without any change, or with one; what is said of them."""

import math
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from scalesweep.analysis.types import Floats
from scalesweep.judge.change import CHANGED, REGRESSION
from scalesweep.judge.over_time import judge, levels_of, trimmed_means

REPEATS, WITHIN, BETWEEN, MARGIN = 5, 0.02, 0.01, 0.03
BEFORE, AFTER = 24, 6  # sessions before a step, and by which it must be found
Draw = Callable[[np.random.Generator, int], Floats]


def _passed_on(rho: float, noise: float = BETWEEN) -> Draw:
    """An autoregressive process of first order with this standard deviation."""

    def draw(rng: np.random.Generator, evenings: int) -> Floats:
        log = rng.normal(0, noise, evenings)
        for place in range(1, evenings):
            log[place] = rho * log[place - 1] + math.sqrt(1 - rho**2) * log[place]
        return log

    return draw


# Noise of sessions on logarithms (repeats scatter by WITHIN in each), and the share of series that
# may alarm on any evening of a year.
NOISE: Mapping[str, tuple[Draw, float]] = {
    "white": (lambda rng, evenings: rng.normal(0, BETWEEN, evenings), 0.05),
    "heavy-tailed (t, 3 degrees)": (
        lambda rng, evenings: BETWEEN * rng.standard_t(3, evenings), 0.05,
    ),
    "AR(0.6)": (_passed_on(0.6), 0.1),
}  # fmt: skip
# Noise that has no bound, to know what to expect.
OTHERS: Mapping[str, Draw] = {
    "AR(0.6), 2 %": _passed_on(0.6, 0.02),
    "AR(0.3)": _passed_on(0.3),
    "skewed (lognormal)": lambda rng, evenings: BETWEEN * rng.lognormal(0, 1, evenings),
    "an outlier of 5 to 30 % in ten": lambda rng, evenings: (
        rng.normal(0, BETWEEN, evenings)
        + (rng.random(evenings) < 0.1) * rng.uniform(0.05, 0.3, evenings)
    ),
    "weekends 4 % slower": lambda rng, evenings: (
        rng.normal(0, BETWEEN, evenings) + 0.04 * ((np.arange(evenings) + rng.integers(7)) % 7 >= 5)
    ),
    "two states 4 % apart": lambda rng, evenings: (
        rng.normal(0, BETWEEN, evenings) + 0.04 * (np.cumsum(rng.random(evenings) < 0.05) % 2)
    ),
    "random walk, 0.5 % an evening": lambda rng, evenings: np.cumsum(
        rng.normal(0, 0.005, evenings)
    ),
}


def _centres(rng: np.random.Generator, log: Floats) -> Floats:
    """What the rule takes as the value of each session."""
    values = np.exp(rng.normal(log[:, None], WITHIN, (log.size, REPEATS))).ravel()
    rows = pd.DataFrame({"session": np.repeat(np.arange(log.size), REPEATS), "value": values})
    return trimmed_means(rows, ["session"]).to_numpy()


def alarmed(draw: Draw, evenings: int, series: int, seed: int) -> float:
    """Share of series without a change of which any evening says regression or improvement."""
    rng = np.random.default_rng(seed)
    alarms = 0
    for _ in range(series):
        centres = _centres(rng, draw(rng, evenings))
        alarms += any(
            judge(levels_of(centres[:end]), "lower", MARGIN).verdict in CHANGED
            for end in range(1, evenings + 1)
        )
    return alarms / series


def steps_found(
    step: float, series: int, seed: int, after: int = AFTER, between: float = BETWEEN
) -> float:
    """Share of steps that are called a regression within so many sessions after them."""
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(series):
        log = rng.normal(0, between, BEFORE + after)
        log[BEFORE:] += math.log1p(step)
        centres = _centres(rng, log)
        hits += any(
            judge(levels_of(centres[: BEFORE + n]), "lower", MARGIN).verdict == REGRESSION
            for n in range(1, after + 1)
        )
    return hits / series
