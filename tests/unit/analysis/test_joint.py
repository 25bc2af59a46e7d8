"""The largest of several effects: against hand values."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from scalesweep.analysis.joint import lead_of
from scalesweep.analysis.stats import cautious_degrees, one_sidedness
from scalesweep.analysis.types import Floats

A, B = np.array([12.0, 15.0, 13.5]), np.array([7.0, 9.5, 9.0])


def cautious(test: Any, plus: Sequence[Floats], minus: Sequence[Floats]) -> float:
    """The p value of a t test with the degrees of freedom of a claim on three repeats."""
    parts = [[float(part.var(ddof=1)) / part.size for part in side] for side in (plus, minus)]
    degrees = cautious_degrees(test.df, 3, one_sidedness(*parts))
    assert degrees < test.df
    return float(2 * stats.t.sf(abs(test.statistic), degrees))


def test_a_lead_is_welchs_t_of_the_differences_within_runs() -> None:
    base = np.array([1.0, 2.0, 4.0, 2.5])
    lead = lead_of({"a": {"here": A, "base": -base}, "b": {"here": B}, "zero": {}})
    assert lead is not None and lead.name == "a"
    # Against b, which is closer than 0: A - B in each run here, and the base's own on its side.
    test = stats.ttest_ind(A - B, base, equal_var=False)
    assert lead.margin == pytest.approx((A - B).mean() - base.mean())
    assert lead.p == pytest.approx(cautious(test, [A], [B, base]))
    assert lead.low == pytest.approx(test.confidence_interval().low)


def test_runs_of_the_same_blocks_pair_up() -> None:
    base = A - 10 + np.array([0.1, 0.0, -0.1])
    effects = {"a": {"here": A, "base": -base}, "zero": {}}
    paired, apart = lead_of(effects, paired=True), lead_of(effects)
    assert paired is not None and apart is not None
    test = stats.ttest_rel(A, base)
    assert paired.p == pytest.approx(cautious(test, [A], [base])) and paired.p < apart.p / 10


def test_what_has_no_scatter_is_never_clear() -> None:
    single = lead_of({"a": {"here": A[:1]}, "b": {"here": B[:1]}})
    same = lead_of({"a": {"here": np.full(3, 5.0)}, "b": {"here": np.full(3, 1.0)}})
    for lead in (single, same):
        assert lead is not None and lead.p == 1 and math.isnan(lead.low)
    assert lead_of({}) is None
