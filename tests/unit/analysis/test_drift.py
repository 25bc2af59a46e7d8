"""Drift: found where it was put in, and seldom where there is none."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from scalesweep.analysis.drift import trend

Floats = NDArray[np.float64]
NOISE = 0.03


@pytest.mark.parametrize(
    ("runs", "change", "least", "most"),
    [
        *[(runs, lambda _: 0.0, 0, 0.1) for runs in (5, 12, 40)],
        # An outlier is no drift, not even at an end.
        *[(runs, lambda time: 0.3 * (time == time[0]), 0, 0.1) for runs in (5, 12, 40)],
        (12, lambda time: 0.15 * time, 0.95, 1),
        (12, lambda time: -0.15 * (time > 0.6), 0.95, 1),
    ],
)
def test_drift_that_matters_is_found_and_seldom_where_there_is_none(
    runs: int, change: Callable[[Floats], Floats], least: float, most: float
) -> None:
    generator, clear = np.random.default_rng(20200806), []
    for _ in range(100):
        times = np.cumsum(generator.uniform(50, 150, runs))
        steady = trend(times, change(times / times[-1]) + NOISE * generator.standard_normal(runs))
        assert steady is not None
        clear.append(steady.clear)
    assert least <= np.mean(clear) <= most


def test_the_interval_covers_the_drift_of_points_with_levels_of_their_own() -> None:
    generator = np.random.default_rng(3)
    groups = list(np.tile(np.arange(20), 3))
    covered = 0
    for _ in range(300):
        times = np.cumsum(generator.uniform(50, 150, 60))
        levels = generator.uniform(-3, 3, 20)[groups]
        logs = levels + 0.1 * (times - times[0]) / (times[-1] - times[0])
        found = trend(times, logs + NOISE * generator.standard_normal(60), groups)
        assert found is not None
        covered += found.low <= 0.1 <= found.high
    assert 0.91 <= covered / 300 <= 0.98


def test_what_cannot_be_told() -> None:
    assert trend([], []) is None and trend(range(4), range(4)) is None
    assert trend([7.0] * 6, range(6)) is None  # all began at once
    # Runs that never change: neither drift nor a division by zero.
    same = trend(range(8), [1.25] * 8)
    assert same is not None and not same.clear
