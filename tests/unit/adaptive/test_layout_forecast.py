"""Layouts at a number of ranks: what is refused, and what is not tried again."""

from collections.abc import Sequence

import numpy as np
import pytest

from bench.lib.layout_truth import PER_NODE, Program, layouts_on, sweep
from scalesweep.adaptive.layout_forecast import forecast_at
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
    assert (forecast.trials, forecast.layouts) == ((), ())
    assert forecast.refused == (
        f"none of {forecast.too_large:,} layouts is expected to fit into memory"
    )
    assert forecast.too_large > 50


def test_what_never_ran_is_refused(measured: Measured) -> None:
    failed = Measured(
        measured.layouts, np.full(len(measured.layouts), np.nan),
        np.ones(len(measured.layouts), np.bool_),
    )  # fmt: skip
    assert forecast_at(_study(failed), 32, 5).refused == "no layout ran"


def test_what_was_tried_there_is_not_advised_again(measured: Measured) -> None:
    """Neither what ran nor what was too large; a node that failed is another matter."""
    first = forecast_at(_study(measured), 32, 5).trials
    ran, large, lost = (trial.layout for trial in first[:3])
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
    assert len(forecast.trials) == 5
    assert forecast.trials[-1].why.startswith("fastest if links between nodes are 10 times slower")
    assert "%" in forecast.trials[0].why
    assert forecast.notes[0].startswith("ordered by")
