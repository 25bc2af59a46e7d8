"""The time of a step as a sum of terms."""

from dataclasses import replace

import numpy as np
import pytest

from bench.lib.layout_truth import Program, layouts_on, seconds_of, sweep
from scalesweep.analysis.prediction.layouts.cost import TERMS, CostModel, fit_cost
from scalesweep.analysis.prediction.layouts.runs import Columns, Layout, Measured, measured_of


def test_a_sum_of_terms_is_found_again() -> None:
    """Times that terms give are given back, at a scale that was not fitted too."""
    layouts = tuple(x for nodes in (1, 2, 4, 8) for x in layouts_on(Program(), nodes))
    truth = CostModel(np.zeros(len(TERMS)))
    names = list(TERMS)
    for name, value in (("work", 2e-15), ("tp ring inside", 1e-11), ("dp ring between", 2e-11),
                        ("step", 0.05)):  # fmt: skip
        truth.coefficients[names.index(name)] = value
    known = tuple(x for x in layouts if x.ranks < 64)
    ran = np.ones(len(known), np.bool_)
    fitted = fit_cost(Measured(known, truth.seconds(known), ~ran))
    away = np.log(fitted.seconds(layouts) / truth.seconds(layouts))
    assert np.abs(away).max() < 0.02


def test_waiting_stages_take_their_share_of_a_step() -> None:
    """Of four stages and two micro-batches, three of five turns are idle."""
    only_work = CostModel(np.array([float(name == "work") for name in TERMS]))
    layout = Layout(dp=1, tp=1, pp=4, micro_batch=1, accumulation=2, per_node=8)
    assert only_work.parts(layout) == {"idle": pytest.approx(0.6), "compute": pytest.approx(0.4)}


def test_groups_lie_on_nodes_with_tp_innermost() -> None:
    """Four by two ranks of tp and dp fill a node of eight: no exchange of theirs leaves it."""
    between = np.array([float(n in ("tp ring between", "dp ring between")) for n in TERMS])
    inside = Layout(dp=2, tp=4, pp=2, micro_batch=1, accumulation=1, per_node=8)
    across = Layout(dp=4, tp=4, pp=1, micro_batch=1, accumulation=1, per_node=8)
    seconds = CostModel(between).seconds((inside, across))
    assert seconds[0] < 1e-20
    assert seconds[1] == pytest.approx(1 / 4 * 1 / 2)


def test_a_few_runs_that_were_slowed_down_hardly_move_the_fit() -> None:
    program = Program(scatter=0.0, slow=0.0)
    layouts = tuple(x for nodes in (1, 2, 4) for x in layouts_on(program, nodes))
    seconds = np.array([seconds_of(program, layout) for layout in layouts])
    large = np.zeros(len(layouts), np.bool_)
    plain = fit_cost(Measured(layouts, seconds, large)).seconds(layouts)
    slowed = seconds.copy()
    slowed[::10] *= 20
    moved = np.log(fit_cost(Measured(layouts, slowed, large)).seconds(layouts) / plain)
    assert np.median(np.abs(moved)) < 0.2


def test_slower_links_between_nodes_cost_a_layout_that_uses_them() -> None:
    random = np.random.default_rng(3)
    model = fit_cost(sweep(Program(), (1, 2, 4), random))
    inside = replace(next(layouts_on(Program(), 1)), dp=1, tp=8, accumulation=256)
    across = replace(inside, dp=32, accumulation=1)
    slower = model.slower_between(10).seconds((inside, across)) / model.seconds((inside, across))
    assert slower[0] == pytest.approx(1)
    assert slower[1] > 1.05


def test_a_layout_that_ran_twice_counts_once() -> None:
    layout = Layout(dp=8, tp=1, pp=1, micro_batch=1, accumulation=1, per_node=8)
    other = Layout(dp=4, tp=2, pp=1, micro_batch=2, accumulation=1, per_node=8)
    runs = measured_of([(layout, 1.0, False), (layout, 4.0, False), (layout, None, True),
                        (other, None, True), (other, None, False)])  # fmt: skip
    assert runs.layouts == (layout, other)
    assert runs.seconds[0] == pytest.approx(2.0)
    assert runs.ran.tolist() == [True, False]
    assert runs.too_large.tolist() == [False, True]


def test_columns_have_the_fields_of_layouts_only() -> None:
    columns = Columns((Layout(dp=2, tp=4, pp=1, micro_batch=1, accumulation=1, per_node=8),))
    assert columns.tp.tolist() == [4.0]
    assert columns.ranks.tolist() == [8.0]
    with pytest.raises(AttributeError):
        _ = columns.width
