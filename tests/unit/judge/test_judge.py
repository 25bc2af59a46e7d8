"""Verdicts: over time, on pairs, on two groups; and what else changed."""

import math

import numpy as np
import pytest
from scipy import stats

from scalesweep.analysis.types import Floats
from scalesweep.judge.change import (
    IMPROVEMENT,
    INCONCLUSIVE,
    NO_CHANGE,
    REGRESSION,
    TOO_EARLY,
    Change,
    corrected,
    paired,
)
from scalesweep.judge.over_time import judge, levels_of

MARGIN = 0.03


def series(*levels: tuple[int, float], noise: float = 0.01, seed: int = 2) -> Floats:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(math.log(value), noise, count) for count, value in levels])


@pytest.mark.parametrize(
    ("levels", "better", "verdict", "new"),
    [
        ([(20, 1.0)], "lower", NO_CHANGE, None),
        ([(20, 1.0), (6, 1.1)], "lower", REGRESSION, range(20, 26)),
        ([(20, 1.0), (6, 1.1)], "higher", IMPROVEMENT, range(20, 26)),
        ([(6, 1.0), (2, 1.5)], "lower", REGRESSION, range(6, 8)),
        ([(20, 1.0), (1, 1.5)], "lower", INCONCLUSIVE, None),  # a single session is no step
        ([(20, 1.0), (1, 1.5), (10, 1.0)], "lower", NO_CHANGE, None),
        ([(20, 1.0), (20, 1.01)], "lower", NO_CHANGE, None),  # within the margin
        ([(5, 1.0)], "lower", TOO_EARLY, None),
        ([(12, 1.0), (8, 1.2), (12, 1.4)], "lower", REGRESSION, range(20, 32)),  # the last stable
    ],
)
def test_the_newest_level_against_the_last_stable_one(
    levels: list[tuple[int, float]], better: str, verdict: str, new: range | None
) -> None:
    change = judge(levels_of(series(*levels)), better, MARGIN)
    assert change.verdict == verdict
    if new is not None:
        assert list(change.new) == list(new)
        step = levels[-1][1] / levels[-2][1]
        assert change.low < step < change.high


def test_pairs() -> None:
    rng = np.random.default_rng(2)
    logs = rng.normal(0, 0.014, 8)
    assert paired(logs + 0.18, "lower", MARGIN).verdict == REGRESSION
    assert paired(logs + 0.18, "higher", MARGIN).verdict == IMPROVEMENT
    assert paired(logs, "lower", MARGIN).verdict == NO_CHANGE
    assert paired(logs[:2], "lower", MARGIN).verdict == TOO_EARLY
    # 5 % with 4 % noise, and within the margin: as many pairs as make the interval narrow enough.
    for step, noise in ((0.05, 0.08), (0.005, 0.05)):
        pairs = step + noise * stats.zscore(logs, ddof=1)
        change = paired(pairs, "lower", MARGIN)
        assert change.verdict == INCONCLUSIVE and change.needed
        longer = np.tile(pairs, 2 + change.needed // 8)
        assert paired(longer, "lower", MARGIN).verdict in (REGRESSION, NO_CHANGE)
    assert paired(0.001 + stats.zscore(logs), "lower", MARGIN).needed is None


def test_many_verdicts_pay_for_their_number() -> None:
    weak = Change(REGRESSION, ratio=1.1, p=0.04)
    assert [c.verdict for c in corrected([weak])] == [REGRESSION]
    others = [Change(NO_CHANGE, ratio=1.0, p=0.5) for _ in range(20)]
    first, *_ = corrected([weak, *others, Change(TOO_EARLY)])
    assert first.verdict == INCONCLUSIVE and "one of 21" in first.reason
