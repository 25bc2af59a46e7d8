"""The best of many: its lead from repeats that did not choose it, and bounds on it."""

import math

import numpy as np
import pytest

from scalesweep.analysis.best_of_many import ahead_of_others
from scalesweep.analysis.stats import LogError, stated_ratio_error
from scalesweep.analysis.types import Floats


def errors(values: list[Floats]):  # type: ignore[no-untyped-def]
    return lambda top, bottom: stated_ratio_error(values[top], values[bottom])


def test_of_layouts_that_are_alike_the_lead_is_chance() -> None:
    rng = np.random.default_rng(3)
    measured, apart, holds = [], [], 0
    for _ in range(60):
        values = list(np.exp(rng.normal(0, 0.02, (30, 3))))
        ahead = ahead_of_others(values, errors(values))
        assert ahead is not None and ahead.apart is not None
        assert ahead.low is not None and ahead.high is not None
        measured.append(ahead.measured)
        apart.append(ahead.apart)
        holds += ahead.low <= 0 <= ahead.high
    assert np.mean(measured) > 0.003
    assert abs(np.mean(apart)) < 3 * np.std(apart) / math.sqrt(60) < 0.012
    assert holds >= 55


def test_a_lead_that_is_there_stays() -> None:
    values = [np.array([30.0, 31, 29]), np.array([20.0, 21, 20]), np.array([10.0, 11, 10])]
    ahead = ahead_of_others(values, errors(values))
    assert ahead is not None and ahead.apart is not None and ahead.low is not None
    assert ahead.measured == pytest.approx(math.log(30 / (61 / 3)))
    assert ahead.apart == pytest.approx(ahead.measured, abs=1e-3) and ahead.low > 0.3
    behind = ahead_of_others(values, errors(values), 1)
    assert behind is not None and behind.apart is not None
    assert behind.high is not None and behind.high < 0
    assert behind.apart == pytest.approx(-ahead.measured, abs=1e-3)


def test_what_was_measured_once_is_not_corrected() -> None:
    values = [np.array([3.0]), np.array([1.0, 1.2])]
    ahead = ahead_of_others(values, lambda *_: None)
    assert ahead is not None and ahead[1:] == (None, None, None)
    assert ahead_of_others(values[:1], lambda *_: None) is None
    # One that is far behind may have run once.
    values = [np.array([2.0, 2.2]), np.array([1.0, 1.1]), np.array([0.1])]
    ahead = ahead_of_others(values, lambda *_: LogError(0.01, 2))
    assert ahead is not None and ahead.apart == pytest.approx(math.log(2))
    # Of times the shortest is the best.
    times = [1 / of for of in values]
    of_times = ahead_of_others(times, lambda *_: LogError(0.01, 2), sign=-1)
    assert of_times is not None and of_times.apart == pytest.approx(math.log(2))
