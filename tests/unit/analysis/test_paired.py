"""Verdicts on pairs: how often they are false, what they find, and that drift cancels."""

import math
from collections import Counter

import numpy as np
import pytest

from scalesweep.analysis.paired import (
    IDENTICAL,
    LEAST_PAIRS,
    log_ratios,
    paired_verdict,
    pairs_for,
    side_of,
)
from scalesweep.analysis.types import Floats
from scalesweep.analysis.verdicts import IMPROVEMENT, INCONCLUSIVE, NO_CHANGE, REGRESSION

MARGIN, SIMULATED = 0.03, 2000


def pairs(
    rng: np.random.Generator, ratio: float, noise: float, count: int = 5, drift: float = 0.0
) -> tuple[Floats, Floats]:
    """Runs in the order A B B A ..., of a machine that loses ``drift`` from run to run."""
    order = [0, 1, 1, 0] * count
    values = np.exp(rng.normal(0, noise, 2 * count) + drift * np.arange(2 * count))
    sides: tuple[list[float], list[float]] = ([], [])
    for value, side in zip(values, order[: 2 * count], strict=True):
        sides[side].append(value * (ratio if side else 1.0))
    return np.array(sides[0]), np.array(sides[1])


def kinds(ratio: float, noise: float, drift: float = 0.0) -> Counter[str]:
    rng = np.random.default_rng(4)
    return Counter(
        paired_verdict(*pairs(rng, ratio, noise, drift=drift), "lower", MARGIN).kind
        for _ in range(SIMULATED)
    )


@pytest.mark.parametrize("drift", [0.0, 0.01])
def test_few_verdicts_are_false(drift: float) -> None:
    """Equal sides, with and without a machine that becomes slower by 1 % from run to run."""
    found = kinds(1.0, 0.03, drift)
    assert (found[REGRESSION] + found[IMPROVEMENT]) / SIMULATED < 0.05


def test_a_step_is_found_and_its_interval_holds_it() -> None:
    found = kinds(1.1, 0.02)
    assert found[REGRESSION] / SIMULATED > 0.95
    rng = np.random.default_rng(5)
    inside = 0
    for _ in range(SIMULATED):
        verdict = paired_verdict(*pairs(rng, 1.1, 0.02), "lower", MARGIN)
        inside += verdict.low <= 1.1 <= verdict.high
    assert 0.93 < inside / SIMULATED < 0.97


def test_steady_drift_cancels() -> None:
    base, new = pairs(np.random.default_rng(0), 1.0, 1e-6, count=8, drift=0.05)
    assert paired_verdict(base, new, "lower", MARGIN).ratio == pytest.approx(1.0, abs=1e-4)
    assert new[0] / base[0] > 1.04  # each pair has it


def test_the_metric_says_what_is_better() -> None:
    base, new = pairs(np.random.default_rng(1), 1.2, 0.005)
    assert paired_verdict(base, new, "lower", MARGIN).kind == REGRESSION
    assert paired_verdict(base, new, "higher", MARGIN).kind == IMPROVEMENT
    assert paired_verdict(base, base * (new / new.mean()), "lower", MARGIN).kind == NO_CHANGE


def test_what_is_inconclusive_says_what_would_settle_it() -> None:
    rng = np.random.default_rng(2)
    verdict = paired_verdict(*pairs(rng, 1.06, 0.05), "lower", MARGIN)
    assert verdict.kind == INCONCLUSIVE and verdict.needed is not None
    settled = [
        paired_verdict(*pairs(rng, 1.06, 0.05, verdict.needed), "lower", MARGIN).kind == REGRESSION
        for _ in range(200)
    ]
    assert np.mean(settled) > 0.5
    assert paired_verdict([1.0], [1.1], "lower", MARGIN).needed == LEAST_PAIRS


def test_what_has_no_scatter_or_no_logarithm_is_not_judged() -> None:
    same = paired_verdict([1.0, 2.0, 4.0], [1.1, 2.2, 4.4], "lower", MARGIN)
    assert (same.kind, same.reason) == (INCONCLUSIVE, IDENTICAL) and math.isnan(same.p)
    assert log_ratios([1, 0, np.nan, 2], [2, 1, 1, 4]) == pytest.approx([math.log(2)] * 2)


def test_a_side_is_taken_only_with_an_interval_off_the_bound() -> None:
    logs = np.log([1.19, 1.2, 1.21, 1.2])
    assert [side_of(logs, math.log(bound), 0.95) for bound in (1.1, 1.2, 1.3)] == [1, 0, -1]
    assert side_of(logs[:2], 0.0, 0.95) == 0
    assert pairs_for(0.02, 0.04, 0.95) == 4 and pairs_for(1.0, 0.001, 0.95) is None
