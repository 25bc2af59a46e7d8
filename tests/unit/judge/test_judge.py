"""Verdicts: over time, on pairs, on two groups; and what else changed."""

import math

import numpy as np
import pytest

from scalesweep.analysis.types import Floats
from scalesweep.judge.change import (
    IMPROVEMENT,
    INCONCLUSIVE,
    NO_CHANGE,
    REGRESSION,
    TOO_EARLY,
    Change,
    corrected,
    overall,
    paired,
    welch,
)
from scalesweep.judge.facts import NOT_RECORDED, differences, machine_moved, other_hosts
from scalesweep.judge.over_time import judge, levels_of, read_levels

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


def test_noisy_sessions_say_how_many_more_would_settle_it() -> None:
    change = judge(levels_of(series((30, 1.0), noise=0.02)), "lower", MARGIN)
    assert change.verdict == INCONCLUSIVE and change.needed
    far = judge(levels_of(series((14, 1.0), noise=0.05)), "lower", MARGIN)
    assert far.verdict == INCONCLUSIVE and far.needed is None
    longer = judge(levels_of(series((90, 1.0), noise=0.03)), "lower", MARGIN)
    assert longer.verdict in (NO_CHANGE, INCONCLUSIVE)
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
    read = read_levels([np.array([0.0, 1.0, 2.0, 3.0, 100.0]), np.array([1.0, 2.0])])
    assert read.centres.tolist() == [2.0, 1.5]


def test_pairs() -> None:
    rng = np.random.default_rng(2)
    base = np.exp(rng.normal(0, 0.01, 8))
    new = base * np.exp(rng.normal(0, 0.01, 8))
    assert paired(base, 1.2 * new, "lower", MARGIN).verdict == REGRESSION
    assert paired(base, 1.2 * new, "higher", MARGIN).verdict == IMPROVEMENT
    assert paired(base, new, "lower", MARGIN).verdict == NO_CHANGE
    assert paired(base[:2], new[:2], "lower", MARGIN).verdict == TOO_EARLY
    noisy = paired(base, new * np.exp(rng.normal(0, 0.08, 8)), "lower", MARGIN)
    assert noisy.verdict == INCONCLUSIVE and (noisy.needed is None or noisy.needed > 0)
    # A drift of the machine adds to one pair what it takes off the next (A B, B A).
    drift = np.tile([0.02, -0.02], 4)
    assert abs(math.log(paired(base, base * np.exp(drift), "lower", MARGIN).ratio)) < 1e-12


def test_two_groups_and_the_mean_over_points() -> None:
    rng = np.random.default_rng(4)
    base, new = rng.normal(10, 0.1, 5), rng.normal(11, 0.1, 5)
    change = welch(base, new, "higher")
    assert change.verdict == IMPROVEMENT and change.low < 1.1 < change.high
    assert change.ratio == pytest.approx(new.mean() / base.mean())
    assert welch(base, new[:1], "higher").reason == "one repeat on a side"
    assert "identical" in welch(base, np.full(3, 11.0), "higher").reason
    assert "not positive" in welch(base, new - 11, "higher").reason
    mean = overall([change, welch(new, base, "higher")])
    assert mean is not None and mean.ratio == pytest.approx(1) and mean.low < 1 < mean.high
    assert overall([change]) is None


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


def test_a_canary_explains_a_step_only_if_it_moved_with_it() -> None:
    old, now = [1e9, 1.01e9, 0.99e9, 1e9], [0.9e9, 0.91e9, 0.89e9]
    assert machine_moved("compute", old, now, math.log(0.9)) is not None
    assert machine_moved("compute", old, now, math.log(1.1)) is None  # the other way
    assert machine_moved("compute", old, now, math.log(0.5)) is None  # too little
    assert machine_moved("compute", old, old) is None
