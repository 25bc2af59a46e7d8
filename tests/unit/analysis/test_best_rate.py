"""The best of some runs as a ceiling: its interval, which runs were disturbed, and growth."""

import math

import numpy as np
import pytest

from scalesweep.analysis.best_rate import LARGER, SMALLER, best_rate, growth
from scalesweep.analysis.stats import Estimate


def test_the_interval_by_hand() -> None:
    # Three runs: the undisturbed rate lies at most (80^(1/2) - 1) x (100 - 98) above 100.
    found = best_rate(np.array([98.0, 99.0, 100.0]))
    assert found.rate.high == pytest.approx(100 + (math.sqrt(80) - 1) * 2)
    # Five: the fourth best counts, (80^(1/3) - 1) x 1.5.
    found = best_rate(np.array([98.0, 98.5, 99.0, 99.5, 100.0]))
    assert found.rate.high == pytest.approx(100 + (80 ** (1 / 3) - 1) * 1.5)
    same = best_rate(np.array([5.0, 5.0, 5.0]))
    assert same.rate == Estimate(5)


def test_a_rate_that_is_best_at_an_end_still_grows() -> None:
    assert growth([256, 512, 1024], [200.0, 300.0, 361.0]) == LARGER
    assert growth([1024, 256, 512], [361.0, 200.0, 300.0]) == LARGER  # in any order
    assert growth([256, 512, 1024], [300.0, 380.0, 385.0]) == ""  # 1.3 %: no longer
    assert growth([256, 512, 1024], [300.0, 391.0, 361.0]) == ""
    assert growth([1, 2, 4], [500.0, 300.0, 200.0]) == SMALLER
    assert growth(["copy", "triad"], [1.0, 2.0]) == growth([64], [1.0]) == ""
