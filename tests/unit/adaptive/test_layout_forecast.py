"""Layouts at a number of ranks: what is refused, and what is not tried again."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from bench.lib.layout_truth import PER_NODE, Program, layouts_on, sweep
from scalesweep.adaptive.layout_forecast import forecast_at, why_tried
from scalesweep.analysis.choose_best_of import Options, choose_best_of
from scalesweep.analysis.memory_model import EMPTY_STAGE
from scalesweep.analysis.prediction.layouts.fits import fits_as_neighbours
from scalesweep.analysis.prediction.layouts.forecast import Fits
from scalesweep.analysis.prediction.layouts.runs import Layout, Measured
from scalesweep.tables.layout_runs import LayoutStudy


def _study(measured: Measured, fits: Fits = fits_as_neighbours) -> LayoutStudy:
    return LayoutStudy({}, None, "measured", ("rate", "run"), "tokens/s", False, measured, fits)


@pytest.fixture(scope="module")
def measured() -> Measured:
    """Layouts of two nodes at most."""
    return sweep(Program(), (1, 2), np.random.default_rng(8))


def _none_fits(known: Measured, layouts: tuple[Layout, ...]) -> Sequence[bool | None]:
    return [False] * len(layouts)


def test_where_no_layout_fits_none_is_advised(measured: Measured) -> None:
    forecast = forecast_at(_study(measured, _none_fits), 32, 5)
    assert (forecast.options, forecast.layouts) == (None, ())
    count = len(forecast.left)
    assert forecast.refused == f"none of {count:,} layouts is expected to fit into memory"
    assert count > 50
    assert forecast.left_out == [f"{count} layouts: expected not to fit into memory"]


def test_what_never_ran_is_refused(measured: Measured) -> None:
    failed = Measured(
        measured.layouts, np.full(len(measured.layouts), np.nan),
        np.ones(len(measured.layouts), np.bool_),
    )  # fmt: skip
    assert forecast_at(_study(failed), 32, 5).refused == "no layout ran"


def test_ranks_that_no_layout_divides_are_refused_as_such(measured: Measured) -> None:
    ranks = int(max(measured.scale)) + 1
    assert f"divides {ranks} ranks" in forecast_at(_study(measured), ranks, 5).refused


def test_what_was_tried_there_is_not_advised_again(measured: Measured) -> None:
    """Neither what ran nor what was too large; a node that failed is another matter."""
    first = forecast_at(_study(measured), 32, 5).layouts
    ran, large, lost = (each.layout for each in first[:3])
    after = Measured(
        (*measured.layouts, ran, large, lost),
        np.append(measured.seconds, [1.0, np.nan, np.nan]),
        np.append(measured.too_large, [False, True, False]),
    )
    asked = [x for x in layouts_on(Program(), 4) if x.ranks == 4 * PER_NODE]
    again = forecast_at(_study(after), 32, 5, asked)
    named = {each.layout for each in again.layouts}
    assert ran not in named
    assert large not in named
    assert lost in named


def test_layouts_come_with_rates_in_order_and_reasons(measured: Measured) -> None:
    forecast = forecast_at(_study(measured), 32, 5)
    rates = [each.rate.value for each in forecast.layouts]
    assert rates == sorted(rates, reverse=True)
    for each in forecast.layouts:
        low, high = each.rate.low, each.rate.high
        assert low is not None and high is not None and low <= each.rate.value <= high
    assert "%" in forecast.layouts[0].why
    assert forecast.notes[0].startswith("ordered by")
    options = forecast.options
    assert options is not None
    (five,) = choose_best_of([options])
    assert len(five) == 5
    alone = [options.added(place, []) for place in range(len(forecast.layouts))]
    assert alone[five[0]] == max(alone[place] for place in five)
    assert why_tried(options, five[0], []) == "among the fastest expected"


def test_a_layout_that_would_not_start_is_left_out_with_the_reason(measured: Measured) -> None:
    """Of 32 layers on 34 stages: the last but one has none; and what a study says itself."""
    wide = Program(layers=3)
    few = sweep(wide, (1, 2), np.random.default_rng(8))
    asked = [x for x in layouts_on(Program(), 4) if x.ranks == 32]
    three = [replace(x, layers=3.0, work=wide.flop) for x in asked]
    forecast = forecast_at(_study(few), 32, 5, three)
    deep = [x for x in three if x.pp > 4]
    assert deep
    assert [x for x, why in forecast.left if why == EMPTY_STAGE] == deep
    assert not any(each.layout.pp > 4 for each in forecast.layouts)
    none = replace(_study(measured), obstacle=lambda _: "the moon is full")
    refused = forecast_at(none, 32, 5)
    assert refused.refused == f"none of {len(refused.left)} layouts would start: the moon is full"


def test_a_layout_is_tried_for_what_the_others_lack() -> None:
    """The fourth is the slowest expected, and the only one that slower links spare."""
    shares = np.array([[0.9, 1, 0.9, 0.9], [0.1, 0.1, 0.1, 1.0], [0.1, 0.1, 0.1, 0.9], [0.1] * 4])
    options = Options(np.array([0.5, 0.3, 0.19, 0.01]), shares, 0.3, np.zeros(4), 3)
    (places,) = choose_best_of([options])
    assert sorted(places) == [0, 1, 3]
    assert why_tried(options, 3, [0, 1]) == (
        "ahead of the others if links between nodes are 5 times slower"
    )
    assert options.added(2, [0, 1, 3]) == pytest.approx(0.7 * 0.19)
    dear = replace(options, costs=np.array([1.0, 1.0, 1.0, 9.0]))
    assert sorted(choose_best_of([dear], 3.0)[0]) == [0, 1, 2]
    assert choose_best_of([dear], 0.5) == [[]]
    # One budget for two questions: what adds most of both.
    both = choose_best_of([dear, replace(dear, weight=0.0)], 2.0)
    assert [sorted(each) for each in both] == [[0], [0]]
