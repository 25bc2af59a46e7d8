"""Shapes of repeats: normal noise of any variances passes, two states and skewness do not."""

import numpy as np
import pytest

from scalesweep.analysis.blocks import Blocks
from scalesweep.analysis.shapes import GROUPED, SKEWED, odd
from scalesweep.analysis.types import Floats


def residuals(values: Floats) -> Floats:
    return np.asarray(values - values.mean(axis=1, keepdims=True))


@pytest.mark.parametrize("repeats", [3, 5])
@pytest.mark.parametrize("growth", [1, 30])
def test_normal_noise_is_seldom_odd_whatever_its_variances(repeats: int, growth: int) -> None:
    generator = np.random.default_rng(31)
    sds = np.geomspace(1, growth, 5)[:, None]
    found = [odd(residuals(sds * generator.normal(size=(5, repeats)))) for _ in range(400)]
    # Two standard errors of 400.
    assert np.mean(found) < GROUPED + SKEWED + 0.035


def test_runs_in_one_of_two_states_are_odd() -> None:
    generator = np.random.default_rng(32)
    shape = (400, 5, 3)
    slow = generator.random(shape) < 0.4
    found = [odd(residuals(one)) for one in 0.3 * slow + 0.005 * generator.normal(size=shape)]
    assert np.mean(found) > 0.9


@pytest.mark.parametrize(("points", "least"), [(5, 0.5), (12, 0.85)])
def test_skewed_noise_is_odd_where_there_are_points_enough(points: int, least: float) -> None:
    generator = np.random.default_rng(33)
    shape = (200, points, 5)
    found = [odd(residuals(one)) for one in generator.lognormal(sigma=0.8, size=shape)]
    assert np.mean(found) > least


def test_what_does_not_scatter_and_two_repeats_say_nothing() -> None:
    assert not odd(np.zeros((4, 3)))
    assert not odd(residuals(np.array([[0.0, 1.0], [0.0, 2.0]])))


def test_points_that_share_a_state_are_not_told_apart_where_others_change_it() -> None:
    fast, slow = np.array([0.0, 0.004, -0.005]), np.array([-0.3, -0.305, -0.303])
    mixed = [[0.0, -0.3, 0.003], [-0.3, 0.002, -0.304], [0.004, 0.0, -0.302]]
    quiet = [[0.0, 0.006, -0.002], [0.003, -0.004, 0.0], [0.001, -0.006, 0.004]]
    apart = float(fast.mean() - slow.mean())
    places = dict(enumerate("abcde"))
    numbers = {name: place for place, name in places.items()}
    with_states = Blocks(np.array([fast, slow, *mixed]), numbers).ratio_p("a", "b", apart)
    without = Blocks(np.array([fast, slow, *quiet]), numbers).ratio_p("a", "b", apart)
    assert with_states is not None and without is not None
    assert without < 0.001
    assert with_states > 0.1


def test_one_noisy_point_among_many_does_not_silence_a_table() -> None:
    generator = np.random.default_rng(34)
    logs = 0.01 * generator.normal(size=(60, 5))
    logs[0, 0], logs[1] = 2.0, logs[1] + 0.4  # a run that went wrong, and a true difference
    blocks = Blocks(logs, {place: place for place in range(60)})
    with_all = blocks.ratio_p(1, 2, float(logs[1].mean() - logs[2].mean()))
    assert with_all is not None
    assert with_all < 0.05
