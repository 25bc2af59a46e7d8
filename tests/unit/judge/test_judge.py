"""Verdicts: over time, on pairs, on two groups; and what else changed."""

import math

import numpy as np
import pandas as pd
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
    moments,
    overall,
    paired,
    ratios,
)
from scalesweep.judge.facts import NOT_RECORDED, differences, other_hosts
from scalesweep.judge.over_time import judge, levels_of, trimmed_means

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
        ([(20, 1.0), (1, 1.5)], "lower", NO_CHANGE, None),  # a single session is no step
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


def test_noisy_sessions_are_inconclusive() -> None:
    far = judge(levels_of(series((14, 1.0), noise=0.05)), "lower", MARGIN)
    assert far.verdict == INCONCLUSIVE
    same = judge(levels_of(np.zeros(20)), "lower", MARGIN)
    assert same.verdict == INCONCLUSIVE and "identical" in same.reason


def test_a_named_baseline_replaces_the_level() -> None:
    read = levels_of(series((10, 1.0), (10, 1.1), (10, 1.1)))
    assert judge(read, "lower", MARGIN, [12, 13, 14, 15, 16, 17]).verdict != REGRESSION
    assert judge(read, "lower", MARGIN, range(6)).verdict == REGRESSION
    assert judge(read, "lower", MARGIN, [*range(25, 30)]).base == [*range(25, 30)]


def test_neighbours_that_are_alike_count_for_less() -> None:
    rng = np.random.default_rng(3)
    walk = np.zeros(200)
    for n in range(1, 200):
        walk[n] = 0.7 * walk[n - 1] + rng.normal(0, 0.01)
    assert levels_of(walk).r > 0.25
    assert levels_of(rng.normal(0, 0.01, 200)).r < 0.15
    assert levels_of(walk).worth(10) < 6


def test_a_session_is_the_mean_of_its_repeats_without_the_ends() -> None:
    logs = [(0, v) for v in (0.0, 1.0, 2.0, 3.0, 100.0)] + [(1, 1.0), (1, 2.0)]
    rows = pd.DataFrame(logs, columns=["session", "value"])
    rows["value"] = np.exp(rows["value"])
    assert trimmed_means(rows, ["session"]).tolist() == pytest.approx([2.0, 1.5])


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


def test_two_groups_and_the_mean_over_points() -> None:
    rng = np.random.default_rng(4)
    base, new = rng.normal(10, 0.1, 5), rng.normal(11, 0.1, 5)
    groups = [(0, base, new), (1, new, base), (2, base, new[:1]), (3, base, new * 0 + 11.0),
              (4, base, new - 11)]  # fmt: skip
    sides = [
        moments(pd.DataFrame([(g[0], v) for g in groups for v in g[side]],
                             columns=["point", "value"]), ["point"])
        for side in (1, 2)
    ]  # fmt: skip
    made = ratios(*sides, "higher")
    assert made["verdict"].tolist() == [IMPROVEMENT, REGRESSION, *[INCONCLUSIVE] * 3]
    first = made.loc[0]
    assert first["low"] < 1.1 < first["high"]
    assert first["ratio"] == pytest.approx(new.mean() / base.mean())
    expected = stats.ttest_ind(np.log(base), np.log(new), equal_var=False)
    assert first["df"] == pytest.approx(expected.df)
    for row, why in ((2, "one repeat"), (3, "identical"), (4, "not positive")):
        assert why in made.loc[row, "reason"] and math.isnan(made.loc[row, "low"])
    mean = overall(made.head(2))
    assert mean is not None and mean.ratio == pytest.approx(1) and mean.low < 1 < mean.high
    assert overall(made.head(1)) is None


def test_many_verdicts_pay_for_their_number() -> None:
    weak = Change(REGRESSION, ratio=1.1, p=0.04)
    assert [c.verdict for c in corrected([weak])] == [REGRESSION]
    others = [Change(NO_CHANGE, ratio=1.0, p=0.5) for _ in range(20)]
    first, *_ = corrected([weak, *others, Change(TOO_EARLY)])
    assert first.verdict == INCONCLUSIVE and "one of 21" in first.reason


def test_what_differs_between_two_sides() -> None:
    base = [{"CPU": "A", "horovod": "0.28.1"}, {"CPU": "B", "horovod": "0.28.1"}]
    new = [{"CPU": "B", "horovod": "0.28.2", "kernel": "6"}]
    first, *rest = differences(base, new)
    assert str(first) == "horovod (0.28.1 → 0.28.2)" and first.apart
    assert [(d.fact, d.apart, d.known) for d in rest] == [
        ("CPU", False, True), ("kernel", False, False),
    ]  # fmt: skip
    assert rest[1].base == NOT_RECORDED
    assert other_hosts([{"a"}], [{"b"}]) and not other_hosts([{"a"}], [{"a", "b"}])
