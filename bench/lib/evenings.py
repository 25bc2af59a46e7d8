"""Made-up sessions of a year of evenings without any change, and what is said of them along it."""

import math
from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np

from scalesweep.analysis.levels import read_series
from scalesweep.analysis.types import Floats
from scalesweep.analysis.verdicts import IMPROVEMENT, REGRESSION, TREND, judge

REPEATS, WITHIN, BETWEEN, MARGIN = 5, 0.02, 0.01, 0.03
Draw = Callable[[np.random.Generator, int], Floats]


def _passed_on(rng: np.random.Generator, evenings: int, noise: float, rho: float = 0.6) -> Floats:
    """An autoregressive process of first order with this standard deviation."""
    fresh = rng.normal(0, noise, evenings) * math.sqrt(1 - rho**2)
    log = np.zeros(evenings)
    log[0] = fresh[0] / math.sqrt(1 - rho**2)
    for place in range(1, evenings):
        log[place] = rho * log[place - 1] + fresh[place]
    return log


def _weekend(rng: np.random.Generator, evenings: int) -> Floats:
    """Two days of each week are slower by 4 %."""
    days = (np.arange(evenings) + rng.integers(7)) % 7
    return np.asarray(rng.normal(0, BETWEEN, evenings) + 0.04 * (days >= 5))


def _wave(rng: np.random.Generator, evenings: int) -> Floats:
    """Through 4 % and back each week."""
    phase = 2 * np.pi * (np.arange(evenings) / 7 + rng.random())
    return np.asarray(rng.normal(0, BETWEEN, evenings) + 0.02 * np.sin(phase))


# Noise of sessions on logarithms; repeats scatter by WITHIN in each.
NOISE: Mapping[str, Draw] = {
    "white": lambda rng, evenings: rng.normal(0, BETWEEN, evenings),
    "heavy-tailed (t, 3 degrees)": lambda rng, evenings: BETWEEN * rng.standard_t(3, evenings),
    "slow weekends": _weekend,
    "weekly wave": _wave,
    "AR(0.6), 1 %": lambda rng, evenings: _passed_on(rng, evenings, 0.01),
    "AR(0.6), 2 %": lambda rng, evenings: _passed_on(rng, evenings, 0.02),
    "random walk, 0.5 % an evening": lambda rng, evenings: np.cumsum(
        rng.normal(0, 0.005, evenings)
    ),
}

# Noise that the rule was not adjusted on.
OTHERS: Mapping[str, Draw] = {
    "AR(0.3), 1 %": lambda rng, evenings: _passed_on(rng, evenings, 0.01, 0.3),
    "AR(0.8), 1 %": lambda rng, evenings: _passed_on(rng, evenings, 0.01, 0.8),
    "AR(0.8), 2 %": lambda rng, evenings: _passed_on(rng, evenings, 0.02, 0.8),
    "mean of three evenings, 1.5 %": lambda rng, evenings: np.convolve(
        rng.normal(0, 0.015 / math.sqrt(3), evenings + 2), np.ones(3), "valid"
    ),
    "3 evenings in 10 4 % slower": lambda rng, evenings: (
        rng.normal(0, BETWEEN, evenings) + 0.04 * (rng.random(evenings) < 0.3)
    ),
    "two states 4 % apart, of 20 evenings": lambda rng, evenings: (
        rng.normal(0, BETWEEN, evenings) + 0.04 * (np.cumsum(rng.random(evenings) < 0.05) % 2)
    ),
    "a monthly wave of 3 %": lambda rng, evenings: (
        rng.normal(0, BETWEEN, evenings)
        + 0.015 * np.sin(2 * np.pi * (np.arange(evenings) / 30 + rng.random()))
    ),
    "white, growing from 0.7 to 2.1 %": lambda rng, evenings: (
        rng.normal(size=evenings) * np.linspace(0.007, 0.021, evenings)
    ),
    "skewed (lognormal)": lambda rng, evenings: BETWEEN * rng.lognormal(0, 1, evenings),
    "an outlier of 5 to 30 % in ten": lambda rng, evenings: (
        rng.normal(0, BETWEEN, evenings)
        + (rng.random(evenings) < 0.1) * rng.uniform(0.05, 0.3, evenings)
    ),
}


def decay(rng: np.random.Generator, evenings: int) -> Floats:
    """Slower by 10 % in 100 sessions, steadily."""
    line = math.log1p(0.1) * np.arange(evenings) / 100
    return np.asarray(rng.normal(0, BETWEEN, evenings) + line)


def _said(groups: list[Floats]) -> str:
    return judge(read_series(groups), "lower", MARGIN).kind


def _groups(rng: np.random.Generator, log: Floats) -> list[Floats]:
    """Logarithms of the repeats of each session."""
    return list(rng.normal(log[:, None], WITHIN, (log.size, REPEATS)))


def alarmed(draw: Draw, evenings: int, series: int) -> tuple[float, float]:
    """Share of series of which any evening says regression or improvement; and of evenings."""
    rng = np.random.default_rng(23)
    any_evening = every = 0
    for _ in range(series):
        groups = _groups(rng, draw(rng, evenings))
        kinds = Counter(_said(groups[:end]) for end in range(1, evenings + 1))
        alarms = kinds[REGRESSION] + kinds[IMPROVEMENT]
        any_evening += alarms > 0
        every += alarms
    return any_evening / series, every / (series * evenings)


def trends(draw: Draw, evenings: int, series: int) -> Counter[str]:
    """How often each verdict is given on the last of so many evenings."""
    rng = np.random.default_rng(29)
    kinds = Counter(_said(_groups(rng, draw(rng, evenings))) for _ in range(series))
    kinds.setdefault(TREND, 0)
    return kinds
