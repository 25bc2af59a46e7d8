"""Layouts at a scale that was not run."""

from dataclasses import replace

import numpy as np
import pytest

from bench.lib.layout_truth import (
    PER_NODE,
    Program,
    bytes_of,
    collapsed,
    draw_program,
    layouts_on,
    seconds_of,
    sweep,
)
from scalesweep.analysis.choose_best_of import choose_best_of
from scalesweep.analysis.prediction.layouts.fits import fits_as_neighbours
from scalesweep.analysis.prediction.layouts.forecast import (
    TRIALS,
    LayoutForecast,
    beyond,
    first_of,
    forecast_layouts,
    loss_of,
    refusal,
)
from scalesweep.analysis.prediction.layouts.rivals import METHODS
from scalesweep.analysis.prediction.layouts.runs import Layout, Measured, measured_of
from scalesweep.analysis.prediction.layouts.worth import SLOW, worth_of
from scalesweep.analysis.types import Floats


def _split(study: Measured, nodes: int) -> tuple[Measured, Measured]:
    ranks = nodes * PER_NODE
    return study.where(study.scale < ranks), study.where(study.scale == ranks)


def _forecast(known: Measured) -> LayoutForecast:
    forecast = forecast_layouts(known, fits_as_neighbours)
    assert isinstance(forecast, LayoutForecast), forecast
    return forecast


@pytest.mark.slow
def test_five_trials_reach_nearly_the_best_and_intervals_hold() -> None:
    """Of simulated sweeps whose program is none of the model's; five at random lose much more."""
    random = np.random.default_rng(11)
    losses, by_chance, held = [], [], []
    for _ in range(6):
        known, there = _split(sweep(draw_program(random), (1, 2, 4, 8, 16), random), 16)
        forecast = _forecast(known)
        five = forecast.trials(there.layouts, fits_as_neighbours(known, there.layouts))
        assert len(five) == TRIALS
        losses.append(loss_of(there, five))
        draws = [random.choice(len(there.layouts), TRIALS, False).tolist() for _ in range(100)]
        by_chance.append(np.median([loss_of(there, chosen) for chosen in draws]))
        _, low, high = forecast.seconds(there.layouts)
        inside = (there.seconds >= low) & (there.seconds <= high)
        held.append(inside[there.ran].mean())
        assert forecast.warning(16 * PER_NODE) is None
    assert np.median(losses) <= 0.05 < np.median(by_chance)
    assert np.mean(held) >= 0.85


@pytest.mark.slow
def test_a_network_that_collapsed_is_another_regime_from_then_on() -> None:
    """Links that lose nineteen twentieths of their rate beyond 4 nodes are not foreseen; once 8
    nodes have shown it, a forecast says so, and the layouts of the five avoid them."""
    random = np.random.default_rng(5)
    program = collapsed(replace(Program(), crowd=1e9), 4)
    study = sweep(program, (1, 2, 4, 8, 16), random)
    known, there = _split(study, 16)
    forecast = _forecast(known)
    warning = forecast.warning(16 * PER_NODE)
    assert warning is not None
    assert warning.startswith("another regime: at 64 ranks intervals of 90 % from fewer")
    before, _ = _split(study, 8)
    assert _forecast(before).warning(8 * PER_NODE) is None
    five = forecast.trials(there.layouts, fits_as_neighbours(known, there.layouts))
    unaware = first_of(
        METHODS["cost model"](before)(there.layouts), fits_as_neighbours(known, there.layouts)
    )
    assert loss_of(there, five) < loss_of(there, unaware)


def test_a_trial_is_for_slower_links_only_where_the_others_do_not_cover_them() -> None:
    costs, possible = np.arange(8.0) / 5, [True] * 8
    opposite = [costs[::-1].copy()] * 2

    def chosen(slower: list[Floats], possible: list[bool], count: int = 5) -> list[int]:
        return choose_best_of([worth_of(costs, 0.2, slower, possible, count)])[0]

    assert sorted(chosen(opposite, possible)) == [0, 1, 2, 3, 7]
    assert chosen([costs, costs], possible) == [0, 1, 2, 3, 4]
    assert chosen(opposite, possible, 1) == [0]
    assert sorted(chosen(opposite, [True] * 7 + [False])) == [0, 1, 2, 3, 6]
    assert chosen(opposite, [False] * 8) == []


def test_the_chance_to_be_the_best_is_that_of_gumbel_s_law() -> None:
    """Against draws: the costs' errors are of minus Gumbel's law, so that the smallest wins."""
    costs, spread = np.array([0.0, 0.1, 0.4]), 0.2
    options = worth_of(costs, spread, [], [True] * 3, 2)
    scale = spread * np.sqrt(6) / np.pi
    errors = np.random.default_rng(4).gumbel(0, scale, (40_000, 3))
    shares = np.bincount((costs - errors).argmin(axis=1), minlength=3) / 40_000
    assert options.chance == pytest.approx(shares, abs=0.01)
    assert options.gain([0, 1]) == pytest.approx((1 - SLOW) * options.chance[:2].sum())


def test_what_half_the_scale_did_best_comes_first() -> None:
    """Carried over: the same split with twice the replicas."""
    program = Program(scatter=0.0, slow=0.0)
    layouts = [x for x in layouts_on(program, 2) if bytes_of(program, x) < 80e9]
    known = measured_of([(x, seconds_of(program, x), False) for x in layouts])
    best = min(layouts, key=lambda layout: seconds_of(program, layout))
    targets = tuple(layouts_on(program, 4))
    first = targets[first_of(METHODS["carry over"](known)(targets), [None] * len(targets), 1)[0]]
    assert (first.tp, first.pp, first.sharded) == (best.tp, best.pp, best.sharded)
    assert first.micro_batch == best.micro_batch


def test_what_ran_out_of_memory_all_around_is_not_tried() -> None:
    random = np.random.default_rng(2)
    known, there = _split(sweep(Program(parameters=6e10), (1, 2, 4, 8), random), 8)
    fits = fits_as_neighbours(known, there.layouts)
    large = np.array([bytes_of(Program(parameters=6e10), x) > 80e9 for x in there.layouts])
    excluded = np.array([fit is False for fit in fits])
    assert excluded.any()
    assert large[excluded].mean() > 0.8
    nothing_large = Measured(known.layouts, known.seconds, np.zeros(len(known.layouts), np.bool_))
    assert set(fits_as_neighbours(nothing_large, there.layouts)) == {None}


def _layouts(count: int, dp: int) -> list[tuple[Layout, float | None, bool]]:
    return [(Layout(dp, 1, 1, 1, n + 1, 8), 1.0 + n, False) for n in range(count)]


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ([], "0 layouts ran, at 0 numbers of ranks; a forecast takes 14 at two numbers at least"),
        (_layouts(40, 8), "40 layouts ran, at 1 numbers of ranks; a forecast takes 14"),
        ([*_layouts(5, 8), *_layouts(5, 16)], "10 layouts ran, at 2 numbers of ranks"),
        ([*_layouts(5, 8), *_layouts(30, 16)], "no measured scale can be forecast from smaller"),
    ],
)
def test_too_few_layouts_are_refused(
    runs: list[tuple[Layout, float | None, bool]], why: str
) -> None:
    refused = forecast_layouts(measured_of(runs), fits_as_neighbours)
    assert isinstance(refused, str)
    assert refused.startswith(why)


def test_scales_that_the_data_do_not_support_are_refused() -> None:
    across = measured_of([*_layouts(30, 8), *_layouts(30, 16)])
    assert refusal(across) is None
    assert beyond(across, 32) is None
    assert "fewer than the largest measured number (16)" in str(beyond(across, 8))
    assert "more than 4 times the largest measured number (16)" in str(beyond(across, 128))
    inside = measured_of([*_layouts(30, 4), *_layouts(30, 8)])
    assert str(beyond(inside, 16)).startswith(
        "16 ranks take more than one node of 8, and no layout was measured across nodes"
    )


def test_a_factor_of_four_is_another_regime() -> None:
    random = np.random.default_rng(4)
    known, _ = _split(sweep(Program(), (1, 2), random), 4)
    forecast = _forecast(known)
    assert forecast.warning(32) is None
    assert str(forecast.warning(64)).startswith("another regime: 64 ranks are 4 times")
