"""Expected widths, and what is advised for series and choices."""

import math
from dataclasses import replace

import numpy as np
import pytest

from bench.lib.prediction_series import LOADING, PUBLIC
from scalesweep.analysis.advice.advise import Advice, ChoiceAsked, Options, SeriesAsked
from scalesweep.analysis.advice.widths import (
    Known,
    Target,
    cost_bounds,
    expected_widths,
    knee_of,
    ratio_width,
    widths,
)
from scalesweep.analysis.prediction.series import Parts, Series, make_series
from scalesweep.analysis.types import Floats

LOADED = next(one for one in PUBLIC if one.program == LOADING).series()  # 1 to 512 ranks
TARGET = Target(1024.0)


def known(count: int = 5, error: float = 0.01, repeats: int = 3) -> Known:
    part = LOADED.first(count)
    errors = np.full(count, error if repeats > 1 else math.nan)
    series = Series(part.ranks, part.cost, errors, "weak")
    return Known(series, np.full(count, float(repeats)))


def of(one: Known, added: dict[float, int]) -> float:
    return float(expected_widths([TARGET], one, added)[0])


def asked(one: Known, counts: list[float]) -> SeriesAsked:
    """A weak series whose runs cost as many node-hours as ranks, over a hundred."""
    costs = {float(p): p / 100 for p in [*one.series.ranks.tolist(), *counts]}
    return SeriesAsked("io", one, {"at 1,024 ranks": TARGET}, costs, counts)


def test_a_point_near_the_target_narrows_more() -> None:
    now = float(widths([TARGET], known().series)[0])
    near, far = of(known(), {512.0: 1}), of(known(), {32.0: 1})
    assert near < now and near < far
    assert of(known(), {256.0: 1, 512.0: 1}) < 1.05 * near
    # Together less than the sum of both alone: the falls do not add up.
    other = of(known(), {256.0: 1})
    assert now - of(known(), {256.0: 1, 512.0: 1}) < (now - near) + (now - other)


def test_the_expected_width_is_that_of_the_prediction_made_again() -> None:
    one = known(5)
    outcomes = [widths([TARGET], one.outcome({256.0: 1}, q))[0] for q in (1 / 6, 1 / 2, 5 / 6)]
    assert of(one, {256.0: 1}) == pytest.approx(np.mean(outcomes))
    series = one.outcome({256.0: 1}, 1 / 2)
    low, high = cost_bounds(one.series, 256.0, 2 / 3)
    assert series.ranks[-1] == 256 and low < series.cost[-1] < high
    assert series.error[-1] == pytest.approx(one.spread)  # of a single run
    # Between measured counts: on the line through the neighbours.
    between = one.outcome({12.0: 1}, 1 / 2)
    line = math.exp(np.interp(math.log(12), np.log(LOADED.ranks), np.log(LOADED.cost)))
    assert between.cost[between.ranks == 12] == pytest.approx(line)


def test_further_runs_tell_their_parts_too() -> None:
    ranks = 2.0 ** np.arange(5)
    parts = np.stack([np.full(5, 1.0), 0.1 * np.log2(ranks)])
    series = make_series(
        ranks, parts.sum(axis=0), "weak", np.full(5, 0.01), Parts(("busy", "exchange"), parts)
    )
    after = Known(series, np.full(5, 3.0)).outcome({4.0: 1, 12.0: 1, 64.0: 2}, 5 / 6)
    assert after.parts is not None
    assert after.parts.cost.sum(axis=0) == pytest.approx(after.cost)
    shares = (after.parts.cost / after.cost)[1]
    old = parts[1] / series.cost
    assert after.ranks.tolist() == [1, 2, 4, 8, 12, 16, 64]
    assert shares[[0, 1, 2, 3, 5]] == pytest.approx(old)
    assert old[3] < shares[4] < old[4] < shares[6]
    # Of one known part, of which a probe says the rest, it is the whole.
    bare = make_series(ranks, series.cost, "weak", None, Parts(("busy",), series.cost[None]))
    whole = Known(bare, np.ones(5)).outcome({64.0: 1}, 1 / 2)
    assert whole.parts is not None and whole.parts.cost[0] == pytest.approx(whole.cost)


def test_repeats_narrow_what_they_blur_and_ever_less() -> None:
    # Points that deviate as much as three runs of each let expect.
    ranks = 2.0 ** np.arange(6)
    away = 0.03 * np.array([1, -1, 1, 1, -1, 1])
    cost = (10 + 0.2 * np.log2(ranks)) * np.exp(away)
    one = Known(make_series(ranks, cost, "weak", np.full(6, 0.03)), np.full(6, 3.0))
    assert one.spread == pytest.approx(0.03 * math.sqrt(3))
    everywhere = [of(one, {float(p): k for p in ranks}) for k in (1, 4, 16)]
    now = float(widths([TARGET], one.series)[0])
    assert now > everywhere[0] > everywhere[1] > everywhere[2]
    # The error of a point falls with the root of its runs.
    errors = one.outcome({16.0: 9}, 1 / 2).error
    assert errors[4] == pytest.approx(one.spread / math.sqrt(12))
    # Of single runs nothing is known of their scatter, so repeats change nothing.
    single = known(repeats=1)
    assert math.isnan(single.spread)
    assert of(single, {1.0: 2}) == pytest.approx(float(widths([TARGET], single.series)[0]))


def test_the_knee_is_enclosed_by_measured_points() -> None:
    def falling(ranks: Floats) -> Known:
        return Known(make_series(ranks, 1 + 0.01 * ranks), np.ones(len(ranks)))

    one = falling(2.0 ** np.arange(4))
    question = knee_of(one.series, 0.8)
    assert question.cap == 256
    beyond = float(widths([question], one.series)[0])
    closed = falling(np.array([1.0, 2, 4, 8, 16, 64]))
    assert float(widths([question], closed.series)[0]) == pytest.approx(math.log(4))
    # The law falls below 0.8 at 26 ranks: 32 halves what is left.
    assert float(expected_widths([question], closed, {32.0: 1})[0]) == pytest.approx(math.log(2))
    assert math.log(2) < beyond <= math.log(32)


@pytest.mark.slow
def test_advice_for_a_target() -> None:
    counts = [32.0, 64.0, 256.0, 512.0]
    options = Options([asked(known(), counts)], [], 8.0)
    advice = options.advise()
    assert advice.cost <= 8 and advice.gap == 0
    (answer,) = advice.answers
    assert answer.question == "io: at 1,024 ranks"
    assert answer.before == pytest.approx(float(widths([TARGET], known().series)[0]))
    assert answer.after == pytest.approx(of(known(), dict(advice.counts["io"])))
    assert answer.after < 0.5 * answer.before
    assert max(advice.counts["io"]) == 512
    (without,) = options.without(advice, "io", 512.0)
    assert answer.after < without.after <= answer.before
    # Again, and for less: the same, and never more than it costs.
    assert options.advise() == advice
    curve = options.curve(4)
    assert [one.budget for one in curve] == [2, 4, 6, 8]
    after = [one.answers[0].after for one in curve]
    assert after == sorted(after, reverse=True) and curve[-1] == advice
    assert all(one.cost <= one.budget for one in curve)
    assert not options.advise(0.001).counts


def test_settings_are_repeated_together_with_falling_returns() -> None:
    # By hand: t for 4 and 10 degrees of freedom, standard errors of a ratio of means.
    assert ratio_width(0.03, (3, 3)) == pytest.approx(2 * 2.776 * 0.03 * math.sqrt(2 / 3), rel=1e-3)
    assert ratio_width(0.03, (6, 6)) == pytest.approx(2 * 2.228 * 0.03 * math.sqrt(2 / 6), rel=1e-3)
    one = ChoiceAsked("layout", 0.03, (3, 5), (0.5, 0.25), width=0.2)
    assert one.raised(1) == (4, 5) and one.raised(3) == (6, 6)
    assert one.width_of((3, 5)) == pytest.approx(0.2)
    options = Options([], [one], 2.0)
    advice = options.advise()
    # 2 more of the first, then both: 0.5 + 0.5 + 0.75 = 1.75 node-hours.
    assert advice.levels == {"layout": (3, 1)} and advice.cost == pytest.approx(1.75)
    assert advice.answers[0].before == pytest.approx(0.2)
    assert advice.answers[0].after == pytest.approx(one.width_of((6, 6)))
    gains = [item.gain / item.cost for item in options.items]
    assert gains == sorted(gains, reverse=True)


def test_a_budget_is_shared_by_what_narrows_most() -> None:
    narrow = ChoiceAsked("wide", 0.03, (2, 2), (0.1, 0.1))
    dear = ChoiceAsked("dear", 0.03, (2, 2), (10.0, 10.0))
    advice: Advice = Options([asked(known(), [512.0])], [narrow, dear], 6.0).advise()
    assert advice.counts["io"].get(512.0) == 1
    assert set(advice.levels) == {"wide"}
    assert len(advice.answers) == 3


@pytest.mark.slow
def test_what_has_to_be_made_once_is_shared() -> None:
    one = asked(known(), [64.0, 256.0, 512.0])
    made = replace(one, once={256.0: ("a", 1.0), 512.0: ("a", 1.0), 64.0: ("b", 0.5)})
    assert made.price({256.0: 2, 512.0: 1}) == pytest.approx(2 * 2.56 + 5.12 + 1.0)
    assert made.price({16.0: 3}) == pytest.approx(0.48)
    # The largest count that can be paid, with what it needs.
    for asked_of, largest in ((one, 512.0), (made, 256.0)):
        advice = Options([asked_of], [], 5.9).advise()
        assert max(advice.counts["io"]) == largest
        assert advice.cost == pytest.approx(asked_of.price(advice.counts["io"]))
        assert advice.cost <= 5.9
    # So many runs at least of a new count.
    twice = Options([replace(one, least=2)], [], 5.9).advise()
    assert max(twice.counts["io"]) == 256 and twice.counts["io"][256.0] >= 2
    assert twice.cost == pytest.approx(one.price(twice.counts["io"]))
    assert twice.cost <= 5.9
