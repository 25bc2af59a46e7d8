"""How the steps of a run are distributed: quantiles, stalls and where they are, drift."""

from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.step_delays import FEWEST_STEPS, stalls_of
from scalesweep.analysis.types import Floats, Places

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
# A curve of a run has at most so many points.
POINTS = 200


@dataclass(frozen=True)
class Distribution:
    """Seconds of steps: quantiles, the longest; ``stalls`` are places of long steps, ``drift`` the
    median of the last third of the steps over that of the first, less 1 (None: too few steps)."""

    steps: int
    quantiles: dict[str, float]
    longest: float
    stalls: Places
    drift: float | None


def distribution_of(seconds: Floats) -> Distribution:
    """The distribution of ``seconds[step]``."""
    quantiles = {name: float(np.quantile(seconds, q)) for name, q in QUANTILES.items()}
    long = stalls_of(seconds, quantiles["p50"])
    drift = None
    third = len(seconds) // 3
    if len(seconds) >= FEWEST_STEPS and third and quantiles["p50"] > 0:
        usual = np.where(long > 0, np.nan, seconds)
        first, last = usual[:third], usual[-third:]
        if np.isfinite(first).any() and np.isfinite(last).any():
            drift = float(np.nanmedian(last) / np.nanmedian(first) - 1)
    stalls = np.flatnonzero(long > 0)
    return Distribution(len(seconds), quantiles, float(seconds.max()), stalls, drift)


def curve_of(seconds: Floats) -> list[tuple[int, float, float]]:
    """First step (from 1), median and longest of steps in their order, at most ``POINTS`` of
    about as many steps each."""
    parts = np.array_split(np.arange(len(seconds)), min(len(seconds), POINTS))
    return [
        (int(part[0]) + 1, float(np.median(seconds[part])), float(seconds[part].max()))
        for part in parts
    ]
