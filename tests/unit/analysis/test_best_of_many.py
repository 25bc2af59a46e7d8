"""The best of many: its lead from repeats that did not choose it, and bounds on it."""

import math

import numpy as np
import pytest

from scalesweep.analysis.best_of_many import ahead_of_next, behind_best
from scalesweep.analysis.stats import LogError, log_ratio_error
from scalesweep.analysis.types import Floats


def errors(values: list[Floats]):  # type: ignore[no-untyped-def]
    return lambda top, bottom: log_ratio_error(np.exp(values[top]), np.exp(values[bottom]))


def test_of_layouts_that_are_alike_the_lead_is_chance() -> None:
    rng = np.random.default_rng(3)
    measured, apart, holds = [], [], 0
    for _ in range(60):
        values = list(rng.normal(0, 0.02, (30, 3)))
        ahead = ahead_of_next(values, errors(values))
        assert ahead is not None and ahead.apart is not None
        assert ahead.low is not None and ahead.high is not None
        measured.append(ahead.measured)
        apart.append(ahead.apart)
        holds += ahead.low <= 0 <= ahead.high
    assert np.mean(measured) > 0.003
    assert abs(np.mean(apart)) < 3 * np.std(apart) / math.sqrt(60) < 0.012
    assert holds >= 55


def test_a_lead_that_is_there_stays() -> None:
    values = [np.array([0.30, 0.31, 0.29]), np.array([0.10, 0.11, 0.10]), np.array([0.0, 0.01, 0])]
    ahead = ahead_of_next(values, errors(values))
    assert ahead is not None and ahead.apart is not None and ahead.low is not None
    assert ahead.measured == pytest.approx(0.3 - 0.31 / 3)
    assert ahead.apart == pytest.approx(ahead.measured) and ahead.low > 0.1
    behind = behind_best(values, 1, errors(values))
    assert behind is not None and behind.high is not None and behind.high < 0
    assert behind.apart == pytest.approx(-ahead.measured)


def test_what_was_measured_once_is_not_corrected() -> None:
    values = [np.array([0.3]), np.array([0.1, 0.12])]
    ahead = ahead_of_next(values, lambda *_: None)
    assert ahead is not None and ahead[1:] == (None, None, None)
    assert ahead_of_next(values[:1], lambda *_: None) is None
    # One that is far behind may have run once.
    values = [np.array([0.3, 0.32]), np.array([0.1, 0.12]), np.array([-1.0])]
    ahead = ahead_of_next(values, lambda *_: LogError(0.01, 2))
    assert ahead is not None and ahead.apart == pytest.approx(0.2)
