"""How the steps of a run are distributed: quantiles, stalls and where they are, drift."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.steady_state import steady_state
from scalesweep.analysis.step_delays import FEWEST_STEPS, SINGLE_FROM, single_steps
from scalesweep.analysis.types import Floats, Places

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
# A curve of a run has at most so many points.
POINTS = 200
BLOCKS = 6  # of a run, in which runs are compared


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
    long = single_steps(seconds, SINGLE_FROM * quantiles["p50"])
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


def likeness(curves: Sequence[Sequence[float]]) -> float:
    """Which share of what runs change along their steps they have in common, from 0 to 1.

    ``curves[run]``: positive times in their order. Of the logarithms of the medians of six blocks,
    less the run's mean, the sum of squares that the mean over the runs leaves is not common. 0 of
    one run, or of too few steps.
    """
    if len(curves) < 2 or min(map(len, curves)) < 2 * BLOCKS:
        return 0.0
    logs = np.log([[np.median(part) for part in np.array_split(curve, BLOCKS)] for curve in curves])
    logs -= logs.mean(axis=1, keepdims=True)
    whole = float((logs**2).sum())
    return 1 - float(((logs - logs.mean(axis=0)) ** 2).sum()) / whole if whole > 0 else 0.0


def warm_up(times: Sequence[float]) -> tuple[int, float]:
    """How many of the first times are longer than the steady ones (``steady_state``), at most a
    third of all, and which share of all their time that is; 0 of either where none are."""
    seconds = np.asarray(times, np.float64)
    count = steady_state(seconds, 0).detected if len(seconds) >= FEWEST_STEPS else None
    if not count or count > len(seconds) // 3:
        return 0, 0.0
    more = float((seconds[:count] - np.median(seconds[count:])).sum())
    return (count, more / float(seconds.sum())) if more > 0 else (0, 0.0)
