"""p values where each point has a variance of its own."""

import numpy as np
import pytest
from scipy import stats

from scalesweep.analysis.stats import cautious_degrees, one_sidedness
from scalesweep.analysis.variance_model import VarianceModel


def test_many_points_that_scatter_alike_know_their_variance() -> None:
    generator = np.random.default_rng(1)
    spreads = 0.01**2 * generator.chisquare(4, 400) / 4
    model = VarianceModel(spreads, 5)
    near = int(np.abs(spreads - 0.01**2).argmin())
    for distance in (1.0, 2.0, 2.5):
        apart = distance * 0.01 * np.sqrt(2 / 5)
        # Wider than the normal of a known variance by what one point in ten may be.
        known = 2 * stats.norm.sf(distance)
        assert 0.9 * known < model.chance(near, near, apart) < 1.6 * known + 0.01


def test_one_noisy_point_is_held_against_its_own_scatter() -> None:
    spreads = np.array([1.0, 1.2, 0.8, 1.1, 0.9, 400.0]) * 1e-4
    model = VarianceModel(spreads, 5)
    quiet, noisy = model.chance(0, 1, 0.05), model.chance(0, 5, 0.05)
    assert quiet < 0.01 and noisy > 0.5
    assert model.chance(0, 5, -1.0) == pytest.approx(model.chance(5, 0, 1.0))
    assert model.chance(0, 1, 0.0) == pytest.approx(1)


def test_variances_that_differ_by_orders_of_magnitude_are_no_error() -> None:
    model = VarianceModel(np.array([1e-24, 1e-8, 1e-2, 1.0]), 3)
    values = [model.chance(0, other, 0.1) for other in (1, 2, 3)]
    assert all(0 <= value <= 1 for value in values) and values == sorted(values)


def test_a_difference_of_equal_sides_has_no_skewness() -> None:
    assert one_sidedness([2.0], [2.0]) == 0 and one_sidedness([1.0], []) == 1
    assert one_sidedness([1.0, 1.0], []) == pytest.approx(2 / 2**1.5)
    assert 0.9 < one_sidedness([100.0], [1.0]) < 1
    assert cautious_degrees(4, 3, 0.0) == 4 and cautious_degrees(2, 3) == pytest.approx(1.5)
