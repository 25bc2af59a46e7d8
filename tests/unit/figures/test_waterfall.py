"""The waterfall: how far its axis reaches."""

from types import SimpleNamespace
from typing import Any

import pytest
from matplotlib.figure import Figure

from scalesweep.aspects.breakdown import waterfall


@pytest.mark.parametrize(("high", "right"), [(20.0, 84.0), (60.0, 114.0), (1e6, 124.0)])
def test_intervals_are_shown_to_their_ends_as_far_as_bars_stay_readable(
    high: float, right: float
) -> None:
    term: Any = SimpleNamespace(loss_low=-5.0, loss_high=high)
    ax = Figure().subplots()
    bars = [
        waterfall._Bar("Ideal", 0.0, 50.0, "black", "", "50"),
        waterfall._Bar("Waiting for input", 50.0, 80.0, "green", "", "+30", term),
    ]
    waterfall._draw(ax, bars, 1.0)
    assert ax.get_xlim() == pytest.approx((0.0, right))
