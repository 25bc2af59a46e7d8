"""What counts that were not measured will cost: laws, weights, intervals and refusals."""

import re
from typing import Any

import numpy as np
import pytest

from scalesweep.analysis.prediction import LAWS, Series, forecasts, held, predict, refusal, refusals

RANKS = np.array([1.0, 2, 4, 8, 16, 32])
LAW = [(scaling, name) for scaling, laws in LAWS.items() for name in laws]


def series_of(ranks: list[int], **more: Any) -> Series:
    """Points that all cost 1."""
    return Series(np.array(ranks, float), np.ones(len(ranks)), "weak", **more)


def made(scaling: str, name: str, count: int = 6) -> Series:
    """A series that follows one law."""
    return Series(RANKS, 10 + 0.3 * LAWS[scaling][name](RANKS), scaling).first(count)


@pytest.mark.parametrize(("scaling", "name"), LAW)
def test_each_law_is_recognised_and_continued(scaling: str, name: str) -> None:
    said, true = predict(made(scaling, name), [64]), LAWS[scaling][name](np.array([64.0]))
    assert said.law == name or said.weights[said.law] - said.weights[name] < 0.2
    assert said.cost == pytest.approx(10 + 0.3 * true, rel=0.05)


def test_intervals_widen_with_doublings_and_bad_forecasts() -> None:
    def width(series: Series, target: int, level: float = 0.95) -> float:
        low, high = predict(series, [target]).interval(level)
        return float(np.log(high / low)[0])

    good, bad = made("weak", "log2(p)"), made("weak", "log2(p)")
    bad.cost[4] *= 1.5
    assert width(good, 64) < width(good, 128) < width(good, 256)
    assert width(good, 64) < width(bad, 64)
    assert width(good, 64, 0.9) == pytest.approx(0.75 * width(good, 64))
    # The scatter of a run is the least.
    loud = Series(RANKS, good.cost, "weak", 0.3)
    assert width(loud, 64) == pytest.approx(4 * 0.3)


def test_forecasts_are_of_larger_counts_from_smaller_ones() -> None:
    errors, doublings = forecasts(made("weak", "log2(p)", 4))
    assert doublings.tolist() == [1, 2, 1] and np.abs(errors).max() < 0.1
    assert held(made("weak", "log2(p)")) == (3, 3)
    broken = made("weak", "log2(p)")
    broken.cost[5] *= 3
    assert held(broken) == (2, 3)


@pytest.mark.parametrize(
    ("ranks", "target", "node", "why"),
    [
        ([], 8, 0, "0 counts measured.*measure 1 and 2 and 4 too"),
        ([1], 8, 0, "1 count measured.*3 over a factor of 4: measure 2 and 4 too"),
        ([1, 2, 3], 8, 0, "3 counts measured.*over a factor of 4: measure 4 too"),
        ([1, 2, 4], 2, 0, "fewer than the largest measured count of 4"),
        ([1, 2, 4], 33, 0, "more than 8 times the largest measured count of 4"),
        ([1, 2, 4], 16, 8, "more than one node of 8.*measure 16 ranks on two nodes"),
        ([1, 2, 4], 8, 8, ""),
        ([4, 8, 16], 32, 8, ""),
    ],
)
def test_what_is_refused(ranks: list[int], target: int, node: int, why: str) -> None:
    series = series_of(ranks, node=node)
    (said,) = refusals(series, [target])
    assert bool(said) == bool(why)
    if why:
        assert re.search(why, said), said
    if refusal(series):
        with pytest.raises(ValueError, match="a prediction needs"):
            predict(series, [target])


def test_a_border_that_another_series_crossed_is_crossed_as_it_did() -> None:
    other = np.array([4.0, 8, 16, 32]), np.array([1.0, 1.0, 1.4, 1.4])
    alone = series_of([1, 2, 4], node=8)
    series = series_of([1, 2, 4], node=8, others=[other])
    assert "more than one node" in refusals(alone, [16])[0]
    assert refusals(series, [16]) == [""]
    assert predict(series, [8, 16]).cost == pytest.approx([1.0, 1.4])
    low, high = predict(series, [8, 16]).interval()
    near, far = np.log(high / low)
    assert far > 1.5 * near
