"""Statistics: against naive arithmetic, and by simulation where a promise is about chance."""

import math

import numpy as np
import pytest
from numpy.typing import ArrayLike

from scalesweep.analysis import stats
from scalesweep.analysis.stats import outliers, usual_spread
from scalesweep.analysis.steady_state import steady_state


def test_t_interval_of_known_numbers() -> None:
    # 95 % quantile of t with 2 degrees of freedom: 4.302653 (any table).
    values = np.array([9.0, 10.0, 11.0])
    half = 4.302653 * np.log(values).std(ddof=1) / math.sqrt(3)
    found = stats.mean_of(values)
    assert (found.low, found.high) == pytest.approx(
        (10 * math.exp(-half), 10 * math.exp(half)), 1e-6
    )
    linear = stats.mean_of([-1.0, 0.0, 1.0])
    assert linear.high == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert (linear.low or 0) + (linear.high or 0) == 0


def ratio(top: ArrayLike, bottom: ArrayLike) -> stats.Ratio:
    return stats.ratio_of_means(top, bottom, stats.stated_ratio_error(top, bottom))


def test_ratio_of_known_numbers() -> None:
    top, bottom = np.array([19.0, 20.0, 21.0]), np.array([9.0, 10.0, 11.0])
    a, b = np.log(top).var(ddof=1) / 3, np.log(bottom).var(ddof=1) / 3
    degrees = (a + b) ** 2 / (a**2 / 2 + b**2 / 2)
    half = stats.t_quantile(degrees) * math.sqrt(a + b)
    found = ratio(top, bottom)
    assert (found.low, found.high) == pytest.approx((2 * math.exp(-half), 2 * math.exp(half)))


SAME = [0.1 + 0.2, 0.3, 0.3]  # what rounding makes of equal values


@pytest.mark.parametrize("same", [SAME, [0.0, 0.0], [-2.0, -2.0], [4.0] * 21])
def test_identical_repeats_have_no_interval(same: list[float]) -> None:
    assert stats.identical(same)
    assert not stats.mean_of(same).known
    assert stats.without_interval(same) == "identical repeats"
    rows = stats.mean_bounds([same, [*same[:-1], same[-1] + 0.001]])
    assert np.isnan(rows[0]).all() and np.isfinite(rows[1]).all()


def test_a_ratio_with_identical_repeats_on_a_side_has_no_interval() -> None:
    varied = [1.0, 1.1, 1.2]
    for top, bottom in ((SAME, varied), (varied, SAME), (SAME, [2.0, 2.0])):
        assert (ratio(top, bottom).known, ratio(top, bottom).how) == (False, "identical repeats")
    assert stats.without_interval([1.0], SAME) == "one repeat"
    assert stats.without_interval([0.0, 1.0], varied) == "not positive"
    assert stats.without_interval(varied, varied) == ""
    close = [1.0, 1.0 + 1e-9, 1.0 - 1e-9]
    assert ratio(close, varied).known and not stats.identical(close)


def test_outliers_are_named_with_a_reason() -> None:
    ((place, reason),) = outliers([10.0, 10.1, 9.9, 10.05, 14.0, 9.95]).items()
    assert place == 4 and "14" in reason and "above" in reason
    assert outliers([10.0, 10.1, 9.9, 50.0]) == outliers([7.0] * 6) == {}
    ((place, reason),) = outliers([7.0] * 8 + [3.0]).items()
    assert (place, "below" in reason) == (8, True)


def test_of_three_repeats_the_one_that_is_far_from_what_is_usual_is_named() -> None:
    rng, named, found = np.random.default_rng(4), 0, 0
    for _ in range(200):
        points = np.exp(0.015 * rng.standard_t(3, (20, 3)))  # heavy tails
        points[0, 1] *= 0.7
        usual = usual_spread(points)
        found += [*outliers(points[0], usual)] == [1]
        named += sum(len(outliers(point, usual)) for point in points[1:])
    assert found > 0.9 * 200 and named < 0.01 * 19 * 200
    assert usual_spread(points[:4]) is None and outliers(points[0]) == {}


def test_steady_state_of_steps() -> None:
    noise = np.random.default_rng(3).normal(1, 0.03, 200)
    warm = noise + np.where(np.arange(200) < 12, 2.0, 0.0)
    assert steady_state(warm, 12).detected == 12
    assert not steady_state(warm, 20).message
    assert steady_state(warm, 10).message
    drift = noise + np.linspace(0, 1, 200)
    found = steady_state(drift, 5)
    assert found.drifting and "drift" in found.message
    spike = noise.copy()
    spike[120] = 30.0
    assert not steady_state(spike, 0).message


def test_steady_state_rarely_cries_wolf() -> None:
    generator = np.random.default_rng(8)
    alarms = sum(bool(steady_state(generator.normal(1, 0.1, 100), 1).message) for _ in range(500))
    assert alarms < 10


def test_a_stated_interval_of_a_rate_is_above_zero() -> None:
    """Three runs of 100 with a standard deviation of 50: Student's t alone reaches to -24."""
    bounds = stats.stated_mean(stats.Stated(100.0, 50.0, 3))
    half = stats.t_quantile(2) * 50 / math.sqrt(3)
    assert 100 - half < 0 < bounds.low < 100 < bounds.high
    assert bounds.low * bounds.high == pytest.approx(100.0**2)
    assert bounds.high == pytest.approx(100 * math.exp(half / 100))
    # What may be negative keeps its straight interval.
    assert (stats.stated_mean(stats.Stated(-1.0, 1.0, 3)).low or 0) < -1
