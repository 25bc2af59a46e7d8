"""The ranking of layouts at ranks at which none was run."""

from dataclasses import replace

import numpy as np
import pytest

from bench.lib.layout_truth import Program, sweep
from scalesweep.analysis.layout_cost import (
    Layout,
    Measured,
    expected_s,
    layouts_like,
    refusal,
    terms_of,
)

BASE = Layout(dp=2, tp=2, pp=1, micro_batch=1, accumulation=4, per_node=8, layers=8)


@pytest.fixture(scope="module")
def measured() -> Measured:
    """Layouts of two nodes at most."""
    return sweep(Program(scatter=0, slow=0), (1, 2), np.random.default_rng(8))


def test_costs_that_are_sums_of_the_terms_come_out(measured: Measured) -> None:
    terms = terms_of([*measured])
    sizes = np.where(terms.any(axis=0), 1 / np.maximum(terms.mean(axis=0), 1e-30), 0)
    true = terms @ (sizes * np.random.default_rng(1).uniform(0.5, 1, len(sizes)))
    said = expected_s(dict(zip(measured, true.tolist(), strict=True)), [*measured])
    assert np.abs(said / true - 1).max() < 1e-6


@pytest.mark.parametrize(
    ("ranks", "layouts", "why"),
    [
        (32, 13, "takes 14 at two"),
        (8, 30, "are fewer than the largest"),
        (128, 30, "measure layouts at 32 ranks"),
        (32, 30, ""),
    ],
)
def test_rankings_that_are_refused(measured: Measured, ranks: int, layouts: int, why: str) -> None:
    known = dict([*measured.items()][-layouts:]) if layouts < 30 else measured
    assert why in refusal(known, ranks) and bool(why) == bool(refusal(known, ranks))


def test_the_first_step_across_nodes_is_refused() -> None:
    runs = {replace(BASE, dp=d, micro_batch=m): 1.0 for d in (1, 2, 4) for m in range(1, 7)}
    assert "ran across nodes" in refusal(runs, 16)


def test_layouts_are_combinations_that_come_out_whole() -> None:
    known = {BASE: 1.0, replace(BASE, tp=1, dp=4, accumulation=2): 2.0}
    made = layouts_like(known, 8)
    assert {(x.dp, x.tp, x.accumulation) for x in made} == {(8, 1, 1), (4, 2, 2)}
    assert all(x.ranks == 8 and x.global_batch == 8 for x in made)
