"""Predictions of laws that are known, refusals, intervals and their coverage."""

from dataclasses import replace

import numpy as np
import pytest

from bench.lib.prediction_series import PUBLIC, TRAINING
from scalesweep.analysis.prediction.calibration import CALIBRATION
from scalesweep.analysis.prediction.forecast import (
    knee,
    predict,
    rolling_forecasts,
    trusted_limit,
)
from scalesweep.analysis.prediction.intervals import HIGH, LOW
from scalesweep.analysis.prediction.models import DISCOUNT
from scalesweep.analysis.prediction.series import Series, make_series, refusal
from scalesweep.analysis.prediction.topology import Border
from scalesweep.analysis.types import Floats

RANKS = 2.0 ** np.arange(7)
TARGETS = np.array([128.0, 256.0, 1024.0])


def weak(cost: Floats, ranks: Floats = RANKS) -> Series:
    return make_series(ranks, cost)


def test_perfect_scaling_stays_perfect() -> None:
    found = predict(weak(np.full(7, 3.0)), TARGETS)
    assert found.cost == pytest.approx([3.0] * 3, rel=0.002)
    low, high = found.interval()
    assert (low < 3.0).all() and (high > 3.0).all()


@pytest.mark.parametrize(
    ("law", "rel"),
    [
        (lambda p: 10 + 0.4 * np.log2(p), 0.02),
        (lambda p: 10 + 2 * (p - 1) / p, 0.04),  # half of it is the newest growth
        # Most of what is tried beside the models grows more slowly.
        (lambda p: 5 + 0.5 * np.cbrt(p), 0.09),
    ],
)
def test_a_law_among_the_models_is_continued(law: object, rel: float) -> None:
    assert callable(law)
    found = predict(weak(law(RANKS)), TARGETS)
    assert found.cost == pytest.approx(law(TARGETS), rel=rel)


def test_strong_scaling_continues_amdahls_law() -> None:
    # Time b/p + a: the cost is p times it.
    series = make_series(RANKS, 100 + 1.5 * RANKS, "strong")
    found = predict(series, [128.0])
    assert found.cost[0] == pytest.approx(100 + 1.5 * 128, rel=0.05)
    assert found.dominating(0)[0] == "linear"


def test_intervals_widen_with_the_distance_and_hold_each_other() -> None:
    series = weak((10 + 0.4 * np.log2(RANKS)) * np.array([1, 1.01, 0.99, 1.02, 1, 0.99, 1.01]))
    found = predict(series, TARGETS)
    low, high = found.interval()
    inner_low, inner_high = found.interval(0.5)
    assert (np.diff(high / low) > 0).all()
    assert (low < inner_low).all() and (inner_low < found.cost).all()
    assert (found.cost < inner_high).all() and (inner_high < high).all()
    assert (high - found.cost > found.cost - low).all()  # costs rise more easily than they fall


def test_the_four_sources_add_as_squares_and_repeats_are_one_of_them() -> None:
    cost = (10 + 0.4 * np.log2(RANKS)) * np.array([1, 1.01, 0.99, 1.02, 1, 0.99, 1.01])
    known = predict(make_series(RANKS, cost, "weak", np.full(7, 0.004)), TARGETS).sources
    parts = (known.repeats, known.scatter, known.models, known.regime)
    assert known.total == pytest.approx(np.sqrt(sum(part**2 for part in parts)))
    rule = CALIBRATION["weak"]
    for side, of_it in ((LOW, rule.low), (HIGH, rule.high)):
        # A line carries them the further the more.
        assert (known.repeats[side] > 0.004 * 2**0.5 * 0.95).all()
        assert (np.diff(known.repeats[side]) > 0).all()
        assert of_it.regime > 0
    for place in range(3):
        assert sum(known.shares(place).values()) == pytest.approx(1)
    # On all targets by hand: squares of the models' spread on both sides over those of all.
    squares = (known.models**2).sum(axis=0) / (known.total**2).sum(axis=0)
    assert [known.shares(place)["models"] for place in range(3)] == pytest.approx(squares)
    unknown = predict(weak(cost), TARGETS).sources
    assert (unknown.repeats == 0).all() and (unknown.scatter > known.scatter).all()
    assert (np.diff(known.regime) > 0).all()


def test_growth_that_may_stop_is_doubted_below_and_growth_unseen_above() -> None:
    flat, steep = np.full(7, 10.0), 10 + 0.8 * np.log2(RANKS)
    sides = []
    for cost in (flat, steep):
        found = predict(weak(cost), [1024.0])
        low, high = found.interval()
        sides.append((float(found.cost[0] / low[0]), float(high[0] / found.cost[0])))
    # A flat series may hide what grows later. A steep one may do the same, and level off too.
    (below, above), (below_steep, above_steep) = sides
    assert above - 1 > 3 * (below - 1)
    assert below_steep - 1 > 3 * (below - 1)
    assert above_steep < 1.5 * above


def test_a_jump_among_the_measured_counts_widens_the_interval() -> None:
    smooth, jump = np.full(7, 10.0), np.array([10, 10, 10, 10, 12, 12, 12.0])
    widths = []
    for cost in (smooth, jump):
        low, high = predict(weak(cost), [256.0]).interval()
        widths.append(float(np.log(high / low)[0]))
    assert widths[1] > 1.5 * widths[0]


def test_terms_that_no_point_informs_are_not_extrapolated() -> None:
    found = predict(weak(np.full(7, 10.0) * (1 + 1e-6 * RANKS)), [1024.0])
    assert {"linear", "square"} <= set(found.fits.uninformed)
    assert found.shares(0)["constant"] > 0.99
    informed = predict(weak(10 + 0.1 * RANKS), [128.0])
    assert "linear" not in informed.fits.uninformed


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ([1, 2], "2 rank counts have a result, and a prediction needs 3.* measure 4 ranks too"),
        ([4], "one rank count has a result.* measure 8 and 16 ranks too"),
        ([], "no rank count has a result.* measure 1 and 2 and 4 ranks too"),
        ([8, 9, 10], "reach from 8 to 10.* measure 32 ranks too"),
    ],
)
def test_too_short_a_series_is_refused_with_what_to_measure(ranks: list[int], said: str) -> None:
    series = weak(np.ones(len(ranks)), np.array(ranks, np.float64))
    with pytest.raises(ValueError, match=said):
        predict(series, [1024.0])


def test_missing_costs_are_no_points_and_bad_ones_are_errors() -> None:
    gap = weak(np.array([10, np.nan, 11.0]), np.array([1, 2, 4.0]))
    assert len(gap.ranks) == 2 and refusal(gap)
    for cost, ranks in ([1, 0.0], [1, 2.0]), ([1, 1.0], [2, 2.0]), ([1, 1.0], [0, 2.0]):
        with pytest.raises(ValueError, match="must differ"):
            weak(np.array(cost), np.array(ranks))


def test_the_limit_of_trust_is_near_where_the_series_is_erratic() -> None:
    calm = weak(10 + 0.1 * np.log2(RANKS))
    wild = weak(np.array([10, 13, 10, 15, 18, 14, 22.0]))
    assert trusted_limit(calm) == 32 * 64
    assert 64 <= trusted_limit(wild) < trusted_limit(calm)


def test_rolling_forecasts_of_published_training_are_covered() -> None:
    """Clusters of which more is known than of most: 95 % intervals hold nearly all."""
    training = [one.series() for one in PUBLIC if one.program == TRAINING]
    within = [one.within for series in training for one in rolling_forecasts(series)]
    assert len(within) == 152
    assert sum(within) / len(within) >= 0.93


def test_the_knee_is_where_efficiency_falls_below() -> None:
    # Efficiency 10 / (10 + 0.3 log2 p) is 0.8 at 2^(2.5 / 0.3) = 323 ranks.
    series = weak(10 + 0.3 * np.log2(RANKS))
    found = knee(series, 0.8)
    assert found is not None
    assert found.low < found.count < found.high
    assert found.count == pytest.approx(2 ** (2.5 / 0.3), rel=0.15)
    assert knee(weak(np.full(7, 10.0)), 0.2) is None  # not before the limit of trust
    assert knee(weak(10 * 1.2 ** np.log2(RANKS)), 0.8) is None  # at the largest measured already


def test_an_efficiency_is_less_sure_than_the_cost() -> None:
    noisy = np.array([1, 1.01, 0.99, 1.02, 1, 0.99, 1.01])
    found = predict(weak(10 * noisy), [128.0])
    cost_low, cost_high = found.interval()
    value, low, high = found.efficiency()
    assert low[0] < value[0] < high[0]
    assert high[0] / low[0] > cost_high[0] / cost_low[0]


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_amdahls_law_is_continued_from_few_counts_over_three_doublings(share: float) -> None:
    """What does not shrink with the work takes a growing share: the growth per doubling grows."""
    law = 1 - share + share * 2.0 ** np.arange(-2, 6)  # ``share`` of the cost at the third count
    series = make_series(2.0 ** np.arange(3), law[:3], "strong")
    found = predict(series, [8.0, 16.0, 32.0])
    # Published costs grow more than is said of them, and all are raised by that.
    assert found.cost == pytest.approx(law[3:6], rel=0.12)


def test_the_interval_of_strong_scaling_grows_with_every_doubling_to_go() -> None:
    rising = make_series(RANKS[:4], np.array([1, 1.02, 1.08, 1.2]), "strong")
    low, high = predict(rising, RANKS[4:]).interval()
    assert (np.diff(np.log(high / low)) > 0.05).all()


def test_a_line_carries_the_scatter_of_points_to_the_target() -> None:
    """Of three equal weights at 1, 2 and 4 ranks a line at 8 has 7/3 of a point's variance; here
    the last counts most."""
    found = predict(make_series(RANKS[:3], np.ones(3), "weak", np.full(3, 0.05)), RANKS[3:6])
    weights = DISCOUNT ** np.array([2.0, 1.0, 0.0])
    terms = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    each = np.linalg.inv(terms.T @ (terms * weights[:, None])) @ (terms.T * weights)
    factors = [np.sqrt(1 + ((np.array([1.0, at]) @ each) ** 2).sum()) for at in (3, 4, 5)]
    assert found.sources.repeats[LOW] == pytest.approx(0.05 * np.array(factors))


def test_the_outlier_that_the_largest_count_may_be_is_within() -> None:
    for scaling in ("weak", "strong"):
        for slow in (1.1, 1.3):
            cost = np.array([1, 1.002, 0.999, 1.001, slow])
            found = predict(make_series(RANKS[:5], cost, scaling), [32.0])
            low, high = found.interval(0.9)
            assert low[0] < 1.0 < high[0], (scaling, slow)
            assert found.signs.without[0] < -0.5 * np.log(slow)
        # Growth that the smaller counts show as well is no outlier.
        smooth = predict(make_series(RANKS[:5], 1 + 0.02 * np.log2(RANKS[:5]), "weak"), [32.0])
        assert abs(smooth.signs.without[0]) < 0.01


def test_strong_scaling_lies_between_perfect_scaling_and_a_time_that_no_longer_falls() -> None:
    """Whatever the models say: the interval goes no further, but for the noise of the points."""
    cost = np.array([1.0, 1.1, 1.25, 1.5])
    series = replace(make_series(RANKS[:4], cost, "strong"), borders=())
    found = predict(series, [16.0, 32.0, 64.0])
    low, high = found.interval(0.999)
    noise = np.exp(2 * found.sources.point)
    foreseen = predict(make_series(RANKS[:3], cost[:3], "strong"), [8.0]).cost[0]
    assert 1.25 < foreseen < 1.6
    assert (low >= 1.25 / noise).all()
    assert (high <= 1.6 * np.array([2, 4, 8]) * noise).all()
    # The same costs of the same work for each rank are no such law.
    weak = predict(make_series(RANKS[:4], cost, "weak"), [64.0])
    assert np.isinf([weak.signs.least, weak.signs.most]).all()


def test_time_that_hardly_falls_may_rise() -> None:
    """GROMACS, 1400k atoms, 2 SMT threads, on ARCHER: 64 nodes gain 17 % over 32, and 128 lose."""
    rates = np.array([1.216, 2.432, 4.256, 7.447, 14.195, 21.753, 25.542, 20.994])
    ranks = 2.0 ** np.arange(8)
    cost = ranks / rates
    found = predict(make_series(ranks[:7], cost[:7], "strong"), [128.0])
    _, high = found.interval()
    assert np.isinf(found.signs.most).all()
    assert high[0] > cost[7] > 2 * cost[6]
    # Nor is the time limited where the next count is the first on a second node.
    smooth = make_series(RANKS[:4], np.array([1, 1.1, 1.25, 1.5]), "strong")
    there = replace(smooth, borders=(Border("node", 8),))
    assert np.isfinite(predict(replace(smooth, borders=()), [16.0]).signs.most).all()
    assert np.isinf(predict(there, [16.0]).signs.most).all()
