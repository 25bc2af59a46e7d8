"""What probes of the network say of the cost model's exchange terms."""

from dataclasses import replace

import numpy as np
import pytest

from bench.lib.layout_truth import PER_NODE, draw_program, sweep
from scalesweep.analysis.prediction.layouts.cost import TERMS, fit_cost
from scalesweep.analysis.prediction.layouts.links import Link, expected_costs


def test_costs_are_those_of_rings_and_blocks() -> None:
    inside, between = Link(4e11, 1e-5), Link(5e10, 3e-5)
    costs = expected_costs(inside, between, 2, weights_known=True)
    assert set(costs) < set(TERMS)
    assert costs["dp ring between"] == pytest.approx(2 * 2 / 5e10)
    assert costs["tp ring inside"] == pytest.approx(4 * 2 * 2 / 4e11)
    assert costs["tp hops between"] == pytest.approx(4 * 2 * 3e-5)
    assert costs["pp volume"] == pytest.approx(2 * 2 / 5e10)
    assert "dp ring inside" not in expected_costs(inside, None, 2, weights_known=False)
    assert set(expected_costs(Link(4e11), None, 2, weights_known=True)) == {
        "tp ring inside", "dp ring inside",
    }  # fmt: skip
    assert not expected_costs(None, None, 2, weights_known=True)


def test_a_term_that_nothing_measured_has_costs_what_probes_say() -> None:
    """One node: nothing between nodes was measured."""
    random = np.random.default_rng(6)
    study = sweep(draw_program(random), (1,), random)
    expected = expected_costs(Link(), Link(4e10), 2, weights_known=True)
    places = [[*TERMS].index(name) for name in expected if name.endswith("between")]
    before = fit_cost(study).coefficients
    after = fit_cost(replace(study, expected=expected)).coefficients
    assert not before[places].any()
    assert after[places] == pytest.approx([expected[[*TERMS][place]] for place in places])


def test_probes_help_where_little_was_measured_and_harm_nothing_where_they_are_wrong() -> None:
    """Forecasts of two nodes from one, and of four from two, by links that are right, twice as fast
    or half as fast: medians of errors over programs."""
    random = np.random.default_rng(61)
    errors: dict[tuple[int, float | None], list[float]] = {}
    for _ in range(6):
        program = draw_program(random)
        study = sweep(program, (1, 2, 4), random)
        for nodes in (1, 2):
            known = study.where(study.scale <= nodes * PER_NODE)
            there = study.where((study.scale == 2 * nodes * PER_NODE) & study.ran)
            for factor in (None, 1.0, 2.0, 0.5):
                expected = {}
                if factor:
                    inside = Link(program.inside * factor, program.latency / factor)
                    between = Link(program.between * factor, 3 * program.latency / factor)
                    expected = expected_costs(inside, between, 2, weights_known=True)
                model = fit_cost(replace(known, expected=expected))
                away = np.abs(np.log(there.seconds / model.seconds(there.layouts)))
                errors.setdefault((nodes, factor), []).append(float(np.quantile(away, 0.9)))
    means = {key: float(np.mean(values)) for key, values in errors.items()}
    assert means[1, 1.0] < 0.9 * means[1, None]
    for factor in (1.0, 2.0, 0.5):
        assert means[1, factor] < means[1, None]
        assert means[2, factor] < 1.05 * means[2, None]
