"""The bench of advice: every way stays within its budget, and pays what runs cost."""

import numpy as np
import pytest

from bench.lib.advice_methods import (
    METHODS,
    advised,
    doubling,
    extra_p,
    first_counts,
    published,
    result,
    simulated,
)
from bench.lib.prediction_series import PUBLIC

DAINT = published(next(one for one in PUBLIC if one.name == "Piz Daint GPU"))  # 1 to 64 ranks


def test_a_run_costs_its_ranks_times_its_time() -> None:
    assert DAINT.price(64) == pytest.approx(64 * 29.642493)
    assert DAINT.grid_price() == pytest.approx(sum(map(DAINT.price, DAINT.counts[:-1])))
    strong = simulated("amdahl", 0)
    assert strong.price(4.0) == strong.costs[strong.counts == 4][0]
    assert DAINT.run(8, 0) == DAINT.run(8, 0) != DAINT.run(8, 1)
    assert DAINT.run(8, 0) == pytest.approx(28.971968, rel=0.05)


@pytest.mark.parametrize("name", METHODS)
def test_every_way_stays_within_its_budget_and_below_the_target(name: str) -> None:
    budget = 0.4 * DAINT.grid_price()
    spent = METHODS[name](DAINT, budget)
    paid = sum(DAINT.price(count) * len(runs) for count, runs in spent.runs.items())
    assert paid == pytest.approx(spent.price) and paid <= budget
    assert max(spent.runs) < DAINT.target
    found = result(spent)
    assert found is None or (found.width > 0 and found.price == spent.price)


def test_grids_are_laid_out_as_stated() -> None:
    whole = DAINT.grid_price()
    assert {k: len(v) for k, v in doubling(DAINT, 3 * whole, 3).runs.items()} == dict.fromkeys(
        [1.0, 2, 4, 8, 16, 32], 3
    )
    assert sorted(extra_p(DAINT, 100 * whole).runs) == [2, 4, 8, 16, 32]
    assert {len(v) for v in extra_p(DAINT, 100 * whole).runs.values()} == {5}
    assert sorted(advised(DAINT, 0.4 * whole).runs)[:3] == [1, 2, 4]
    assert np.isfinite([one.noise for one in (DAINT, simulated("log", 1))]).all()


def test_the_first_counts_in_strong_scaling_are_the_largest_that_can_be_paid() -> None:
    assert first_counts(DAINT, 1.0) == [1, 2, 4]
    strong = simulated("amdahl", 0)
    largest = strong.doubling.tolist()
    assert first_counts(strong, strong.grid_price()) == [largest[0], *largest[-2:]]
    # All cost about the same, a larger one never less: of two that are just too dear the next ones.
    price = sum(map(strong.price, [largest[0], *largest[-2:]]))
    assert first_counts(strong, 0.999 * price) == [largest[0], *largest[-3:-1]]
    assert first_counts(strong, 0.1) == largest[:5:2]
