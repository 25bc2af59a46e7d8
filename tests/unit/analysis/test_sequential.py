"""Repeats until a mean is precise: who gets another one, and what the intervals cover."""

import math

import numpy as np
import pytest

from scalesweep.analysis.repeat_rule import level_of
from scalesweep.analysis.sequential import expected_repeats, look_at, more_repeats, relative_width
from scalesweep.analysis.stats import t_quantile


@pytest.mark.parametrize(
    ("values", "asked", "state"),
    [
        ([1.0, 1.001, 0.999], 3, "precise"),
        ([1.0, 1.2, 0.8], 3, "more"),
        ([1.0, 1.2, 0.8, 1.1, 0.9, 1.0], 6, "wide"),
        ([1.0, 1.2, 0.8, 1.1, 0.9, 1.0], 8, "wide"),  # two left no value
        ([1.0, 1.0, 1.0], 3, "identical"),
        ([1.0], 3, "unknown"),
        ([], 3, "unknown"),
        ([1.0, 1.001], 3, "more"),  # one left no value: not yet the least number
        ([1.0, 1.001], 6, "unknown"),
        ([0.0, 1.0, -1.0], 3, "more"),  # a mean of zero is never precise
    ],
)
def test_who_gets_another_repeat(values: list[float], asked: int, state: str) -> None:
    assert look_at(values, asked, least=3, most=6, until=0.02).state == state


def test_the_expected_number_is_where_the_interval_would_be_narrow_enough() -> None:
    values = np.array([0.97, 1.0, 1.03])
    level = level_of(3)
    expected = expected_repeats(values, 0.02, level, 50)
    # As many repeats of the same spread are narrow enough, one fewer are not.
    spread = np.log(values).std(ddof=1)

    def width(count: int) -> float:
        same = np.resize([1.0, -1.0], count)
        same = np.exp(spread * (same - same.mean()) / same.std(ddof=1))
        return relative_width(same, level)

    assert width(expected) <= 0.0201 and width(expected - 1) > 0.0199
    assert expected_repeats(values, 0.02, level, 5) == 5
    look = look_at(values, 3, 3, 50, 0.02)
    assert look.state == "more" and look.expected == expected


HALF = t_quantile(4) * math.sqrt(2 / 3)  # of the difference of two points: three repeats, scatter 1


@pytest.mark.parametrize(
    ("half", "repeats", "distance", "more"),
    [
        # Cohen, Statistical Power Analysis, table 2.4.1: repeats by distance over scatter that
        # decide in four of five series.
        *[(HALF, 3, distance, number - 3) for distance, number in
          ((0.5, 64), (0.8, 26), (1.0, 17), (1.2, 12))],
        # What repeats cannot decide has no number.
        (0.1, 1, 1.0, None), (0.0, 3, 1.0, None), (math.nan, 3, 1.0, None),
        (0.1, 3, 0.0, None), (0.1, 3, -1.0, None), (1, 3, 0.1, None),
    ],
)  # fmt: skip
def test_repeats_that_decide(half: float, repeats: int, distance: float, more: int | None) -> None:
    assert more_repeats(half, repeats, distance, most=100) == more
