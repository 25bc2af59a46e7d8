"""How many repeats to add: enough in four of five series of measurements."""

import math

import numpy as np
import pytest

from scalesweep.analysis.repeats import more_repeats
from scalesweep.analysis.stats import t_quantile


def test_the_repeats_asked_for_decide_in_four_of_five_series() -> None:
    scatter, distance, repeats = 0.10, 0.15, 3
    half = t_quantile(2 * (repeats - 1)) * scatter * math.sqrt(2 / repeats)
    more = more_repeats(half, repeats, distance)
    assert more is not None
    draw = np.random.default_rng(5)

    def decided(count: int) -> float:
        """Share of series whose interval of the difference is clear of the bound at 0."""
        one, other = draw.normal(0, scatter, (2, 4000, count))
        gap = distance + one.mean(axis=1) - other.mean(axis=1)
        error = np.sqrt((one.var(axis=1, ddof=1) + other.var(axis=1, ddof=1)) / count)
        return float(np.mean(gap > t_quantile(2 * (count - 1)) * error))

    assert 0.78 < decided(repeats + more) < 0.9
    assert decided(repeats + more - 2) < 0.78


@pytest.mark.parametrize(
    ("half", "repeats", "distance"),
    [(0.1, 1, 1.0), (0.0, 3, 1.0), (math.nan, 3, 1.0), (0.1, 3, 0.0), (0.1, 3, -1.0), (1, 3, 0.1)],
)
def test_what_repeats_cannot_decide_has_no_number(
    half: float, repeats: int, distance: float
) -> None:
    assert more_repeats(half, repeats, distance) is None
