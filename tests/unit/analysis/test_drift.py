"""Drift: what is one, and what is none (its interval: tests/unit/report/test_control.py)."""

import numpy as np
import pytest

from scalesweep.analysis.drift import trend

TIMES = np.arange(12) / 11
NOISE = 0.03 * np.array([-0.3, 0.9, -1.1, 0.4, 1.2, -0.6, -0.8, 0.7, 0.1, 1.0, -1.3, -0.2])


@pytest.mark.parametrize(
    ("drift", "clear"),
    [(0, False), (0.15 * TIMES, True), (-0.15 * (TIMES > 0.6), True), (TIMES == 0, False)],
    ids=["none", "a line", "a step", "one odd run at an end"],
)
def test_drift_that_matters_is_clear_and_noise_is_not(drift: object, clear: bool) -> None:
    found = trend(TIMES, NOISE + drift)
    assert found is not None and found.clear == clear


def test_what_cannot_be_told() -> None:
    assert trend([], []) is None and trend(range(4), range(4)) is None
    assert trend([7.0] * 6, range(6)) is None  # all began at once
    # Runs that never change: neither drift nor a division by zero.
    same = trend(range(8), [1.25] * 8)
    assert same is not None and not same.clear
