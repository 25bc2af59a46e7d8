"""Gate: a history rarely alarms without a change, and finds a step of 5 % within six sessions.

Made evenings of one point, judged on each of them. The noise was not used to set the rule: other
seeds, and it is drawn anew here.
"""

import pytest
from scipy.stats import binom

from tests.fakes.evenings import AFTER, NOISE, OTHERS, alarmed, steps_found

SURE = 0.999  # a rate at its bound passes with this probability
SEED = 71


@pytest.mark.parametrize("noise", NOISE)
def test_unchanged_series_rarely_alarm(noise: str, whole: bool) -> None:
    draw, bound = NOISE[noise]
    evenings, series = (250, 200) if whole else (80, 8)
    alarms = round(alarmed(draw, evenings, series, SEED) * series)
    assert alarms <= binom.ppf(SURE, series, bound)


def test_a_step_of_5_percent_is_found_within_six_sessions(whole: bool) -> None:
    series = 400 if whole else 40
    hits = round(steps_found(0.05, series, SEED, AFTER) * series)
    assert hits >= binom.ppf(1 - SURE, series, 0.85)


def test_a_gate_that_cannot_fail_is_none() -> None:
    """A random walk alarms, and a step within the noise is not found."""
    assert alarmed(OTHERS["random walk, 0.5 % an evening"], 250, 8, SEED) > 0.2
    assert steps_found(0.01, 20, SEED) < 0.3
