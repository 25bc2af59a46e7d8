"""Verdicts on series: how often they are false, how often a step is found, and what else holds."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from bench.lib.evenings import NOISE, decay, trends
from bench.lib.planted import KINDS, Kind, plant
from scalesweep.analysis.levels import Series, find_spikes, read_series, segments
from scalesweep.analysis.session_noise import chance_of_each, read_noise
from scalesweep.analysis.types import Floats
from scalesweep.analysis.unsteady import moved_before, slopes
from scalesweep.analysis.verdicts import (
    IMPROVEMENT,
    INCONCLUSIVE,
    NO_CHANGE,
    REGRESSION,
    TOO_EARLY,
    TREND,
    Verdict,
    corrected,
    judge,
    looks,
    worse,
)

QUIET = Kind("quiet", within=0.002, between=0.001)
SIMULATED = 120


def series_of(groups: Sequence[Floats]) -> Series:
    return read_series([np.log(group) for group in groups])


def verdict_of(
    groups: Sequence[Floats], better: str = "lower", base: Sequence[int] | None = None
) -> Verdict:
    return judge(series_of(groups), better, 0.03, base)


def made(levels: Sequence[float], seed: int = 0, kind: Kind = QUIET) -> list[Floats]:
    """Sessions of a quiet machine at these levels."""
    noise = plant(np.random.default_rng(seed), kind, len(levels))
    return [level * group for level, group in zip(levels, noise, strict=True)]


@pytest.mark.parametrize("kind", [KINDS[1], KINDS[-1]], ids=lambda kind: kind.name)
@pytest.mark.slow
def test_false_alarms_are_rare_and_steps_are_found(kind: Kind) -> None:
    """A short version of bench/history.py: 32 sessions of 5 repeats, 2 % noise in a session, 1 %
    among sessions; the last kind drifts, passes noise on, and has spikes and hiccups too. Steps
    are four sessions old."""
    found = {}
    for step in (0.0, 0.05):
        rng = np.random.default_rng(7)
        kinds = [
            verdict_of(plant(rng, kind, 32, step=step, after=4)).kind for _ in range(SIMULATED)
        ]
        found[step] = Counter(kinds)
    false = found[0.0][REGRESSION] + found[0.0][IMPROVEMENT]
    # 5 %, and three standard errors of what was simulated.
    assert false / SIMULATED <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / SIMULATED)
    power = found[0.05][REGRESSION] / SIMULATED
    assert power >= (0.8 if kind is KINDS[1] else 0.2)
    assert found[0.05][NO_CHANGE] / SIMULATED <= 0.05


def test_a_step_counts_from_its_second_session_on() -> None:
    once, twice = made([1.0] * 12 + [1.1]), made([1.0] * 12 + [1.1] * 2)
    assert verdict_of(once).kind == NO_CHANGE  # the one before it
    assert series_of(once).spikes.nonzero()[0].tolist() == [12]
    found = verdict_of(twice)
    assert found.kind == REGRESSION and found.new == (12, 13)
    assert len(found.base) >= 4 and found.base == tuple(range(12))[-len(found.base) :]
    assert found.low < 1.1 < found.high and found.stepped
    assert verdict_of(twice, better="higher").kind == IMPROVEMENT
    later = verdict_of(made([1.0] * 12 + [1.1] * 20))
    assert later.kind == REGRESSION and later.new == tuple(range(12, 32))


def test_a_spike_is_neither_a_level_nor_noise() -> None:
    levels = [1.0] * 20
    levels[3], levels[11], levels[15] = 1.4, 1.3, 0.7
    found = series_of(made(levels))
    assert found.spikes.nonzero()[0].tolist() == [3, 11, 15]
    assert found.starts == (0,) and found.between < 0.01
    assert verdict_of(made(levels)).kind == NO_CHANGE
    # What two sessions show, and then no more, is no level to compare with.
    levels[11:13] = [1.3, 1.3]
    found = series_of(made(levels))
    assert found.starts == (0, 11, 13) and verdict_of(made(levels)).kind == NO_CHANGE


def test_the_first_and_the_last_sessions_have_one_side() -> None:
    values = np.array([2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0])
    assert find_spikes(values, 0.1).nonzero()[0].tolist() == [0, 6]
    assert not find_spikes(np.array([1.0, 1.0, 1.0, 1.0, 2.0, 2.0]), 0.1).any()
    assert find_spikes(np.arange(10.0), 0.1).nonzero()[0].tolist() == [0, 9]


@pytest.mark.parametrize("after", [2, 4, 8])
@pytest.mark.parametrize("step", [0.02, 0.05, 0.5])
def test_steps_between_values_that_agree_are_found(step: float, after: int) -> None:
    """Values without noise, and values of 2 % resolution whose noise hardly shows."""
    same = [np.full(3, 7 + step * (place >= 30 - after)) for place in range(30)]
    rng = np.random.default_rng(4)
    rounded = [
        np.log(np.round((1.003 * np.exp(group - 7) + rng.normal(0, 0.003, 3)) / 0.02) * 0.02)
        for group in same
    ]
    for groups in (same, rounded):
        found = judge(read_series(groups), "lower", 0.03)
        assert found.kind == (
            REGRESSION if step > 0.03 else INCONCLUSIVE if groups is rounded else NO_CHANGE
        )
        assert found.low < math.exp(step) < found.high and len(found.new) == after
    assert judge(read_series([same[0]] * 30), "lower", 0.03).kind == TOO_EARLY


def test_a_border_between_rounded_values_is_crossed_by_chance() -> None:
    """By two sessions of 30 in one of 435 cases, and evening by evening."""
    rounded = [np.log(np.full(3, 1.05 if place >= 28 else 1.0)) for place in range(31)]
    once, again = (judge(read_series(rounded[:end]), "lower", 0.03) for end in (30, 31))
    assert once.kind == INCONCLUSIVE and "values are rounded" in once.reason
    assert again.kind == REGRESSION


@pytest.mark.slow
def test_noise_that_has_grown_is_no_step() -> None:
    """Five times the noise in the last five of 60 sessions: without looking for that a false
    verdict in 22 of 100 series, and a step of 30 % is found none the less."""
    false, found = 0, Counter[str]()
    for seed in range(24):
        rng = np.random.default_rng(seed)
        log = rng.normal(0, 0.01, 60) * np.repeat([1, 5], [55, 5])
        repeats = rng.normal(0, 0.01, (60, 5))
        one = judge(read_series(list(log[:, None] + repeats)), "lower", 0.03)
        false += one.kind in (REGRESSION, IMPROVEMENT)
        found["has grown" in one.reason] += 1
        log[-5:] += 0.3
        found[judge(read_series(list(log[:, None] + repeats)), "lower", 0.03).kind] += 1
    assert false <= 3 and found[True] >= 3 and found[REGRESSION] >= 8, (false, found)


@pytest.mark.slow
def test_a_short_drift_is_no_step() -> None:
    """0.2 % a session, too short for a trend: in 7 of 120 series it looked like a step."""
    verdicts = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        log = 0.002 * np.arange(30) + rng.normal(0, 0.01, 30)
        verdicts.append(
            judge(read_series(list(rng.normal(log[:, None], 0.01, (30, 5)))), "lower", 0.03)
        )
    assert sum(one.kind == REGRESSION for one in verdicts) <= 1


def test_a_line_is_told_from_a_step() -> None:
    line, step = 0.002 * np.arange(30), 0.05 * (np.arange(30) >= 20)
    noise = np.random.default_rng(0).normal(0, 0.01, 30)
    assert slopes(line + noise, list(range(30)), 20)
    assert not slopes(step + noise, list(range(30)), 20)


def test_levels_that_hardly_differ_are_drift() -> None:
    """Their differences are noise among sessions: the interval is wider."""
    groups = made([1.0] * 10 + [1.02] * 10 + [1.05] * 6)
    apart = series_of(groups)
    assert apart.starts == (0, 10, 20)
    one = apart.merged(math.log1p(0.03))
    assert one.starts == (0, 20) and one.between > 2 * apart.between
    assert apart.merged(math.log1p(0.01)) is apart
    found = verdict_of(groups)
    # Compared with the last of them only; a machine that wandered by 2 % may wander by 3 %.
    assert found.base == (16, 17, 18, 19) and found.ratio == pytest.approx(1.029, abs=0.002)
    assert found.kind == INCONCLUSIVE


def test_a_few_odd_sessions_are_no_baseline() -> None:
    """Nothing is compared with what was never stable; a level that is long is with itself."""
    levels = [1.0, 1.3, 1.3] + [1.0] * 20
    groups = made(levels)
    found = verdict_of(groups)
    assert found.kind == NO_CHANGE and found.new == (21, 22) and not found.stepped
    short = verdict_of(made([1.0] * 3 + [1.1] * 3))
    assert short.kind == REGRESSION and short.base == (0, 1, 2)


def test_levels_are_the_best_fit() -> None:
    rng = np.random.default_rng(1)
    values = np.repeat([0.0, 0.1, 0.05, 0.4], [7, 5, 9, 2]) + rng.normal(0, 0.01, 23)
    assert segments(values, 0.01) == [0, 7, 12, 21]
    assert segments(values[:3], 0.01) == [0] and segments(values, 0.0) == [0]
    # Against every way to cut a short series in levels of two sessions or more.
    short = np.array([0.0, 0.02, 0.01, 0.05, 0.06, 0.01, 0.0, 0.03])
    best = min(
        (sum(_fit(part) for part in np.split(short, cuts)) + 3e-4 * math.log(8) * len(cuts), cuts)
        for cuts in ([], [2], [3], [4], [5], [6], [2, 4], [2, 5], [2, 6], [3, 5], [3, 6], [4, 6],
                     [2, 4, 6])
    )  # fmt: skip
    assert segments(short, 0.01) == [0, *best[1]]


def _fit(part: Floats) -> float:
    return float(((part - part.mean()) ** 2).sum())


def test_too_few_sessions_and_no_noise_are_no_verdict() -> None:
    for count, wanted in ((1, 5), (2, 4), (5, 1)):
        found = verdict_of(made([1.0] * count))
        assert (found.kind, found.wanted) == (TOO_EARLY, wanted)
    assert verdict_of(made([1.0] * 6)).kind != TOO_EARLY
    same = verdict_of([np.array([1.0, 1.0])] * 8)
    assert same.kind == TOO_EARLY and "no noise" in same.reason and not same.wanted


def test_a_named_baseline_is_the_measure() -> None:
    groups = made([1.0] * 8 + [1.1] * 8 + [1.2] * 8)
    assert verdict_of(groups).ratio == pytest.approx(1.2 / 1.1, rel=0.01)
    named = verdict_of(groups, base=[0])
    assert named.kind == REGRESSION and named.ratio == pytest.approx(1.2, rel=0.01)
    assert verdict_of(groups, base=[20]).kind == NO_CHANGE
    early = verdict_of(groups, base=[23])
    assert (early.kind, early.wanted) == (TOO_EARLY, 2)
    assert verdict_of(groups, base=[]).kind == TOO_EARLY


def test_what_is_inconclusive_says_what_would_settle_it() -> None:
    noisy = Kind("noisy", within=0.05, between=0.001)
    found = verdict_of(made([1.0] * 30 + [1.005] * 2, seed=1, kind=noisy))
    assert found.kind == INCONCLUSIVE and found.sessions and found.repeats, found
    assert found.sessions > 2 and found.repeats > 5
    at_margin = verdict_of(made([1.0] * 10 + [1.027] * 10, kind=Kind("", 0.01, 0.001)))
    assert at_margin.kind == INCONCLUSIVE


def test_a_page_pays_for_the_number_of_its_verdicts() -> None:
    one = Verdict(REGRESSION, ratio=1.1, p=0.01, new=(1, 2))
    others = [Verdict(NO_CHANGE, p=0.5)] * 30
    assert corrected([one])[0].kind == REGRESSION
    alone, *_ = corrected([one, *others])
    assert alone.kind == INCONCLUSIVE and "31 points" in alone.reason
    many = corrected([one] * 20 + others)
    assert [v.kind for v in many[:20]] == [REGRESSION] * 20
    assert corrected([Verdict(TOO_EARLY)])[0].kind == TOO_EARLY


def test_a_slow_decay_is_a_trend_and_no_regression() -> None:
    assert trends(decay, 100, 20)[TREND] >= 18
    rng = np.random.default_rng(1)
    found = judge(
        read_series(list(rng.normal(decay(rng, 100)[:, None], 0.02, (100, 5)))), "lower", 0.03
    )
    assert found.kind == TREND and found.low < 1.1 < found.high
    assert "steadily over 100 sessions" in found.reason
    assert worse(found, "lower") and not worse(found, "higher")
    # Two levels are none.
    assert verdict_of(made([1.0] * 50 + [1.1] * 50)).kind == REGRESSION


def test_a_weekly_cycle_is_recognised_and_taken_out() -> None:
    levels = [1.05 if day % 7 >= 5 else 1.0 for day in range(35)]
    found = series_of(made(levels))
    assert found.weekly is not None and found.starts == (0,)
    assert np.ptp(found.weekly) == pytest.approx(math.log(1.05), rel=0.05)
    assert found.between < 0.003 and verdict_of(made(levels)).kind == NO_CHANGE
    assert series_of(made([1.0] * 35)).weekly is None
    # By the calendar: the same days, of a job that runs on three days a week.
    days = [0, 2, 5] * 12
    slower = made([1.05 if day == 5 else 1.0 for day in days])
    assert read_series([np.log(one) for one in slower], days).weekly is not None


def test_what_moved_before_is_no_step() -> None:
    rng = np.random.default_rng(0)
    earlier = rng.normal(0, 0.01, 40)
    assert not moved_before(earlier, 0.06, 3)
    earlier[20:23] += 0.06
    assert moved_before(earlier, 0.06, 3) and not moved_before(earlier[:18], 0.06, 3)
    assert not moved_before(earlier[:5], 0.001, 3)


def test_noise_that_neighbours_share_widens_the_error() -> None:
    """Of white noise hardly, of a process with memory about as much as that really varies."""
    rng = np.random.default_rng(2)
    old, new = range(40, 52), range(52, 56)
    cuts = [[0, 52]]
    found = {}
    for name in ("white", "AR(0.6), 2 %"):
        errors, means = [], []
        for _ in range(40):
            log = NOISE[name](rng, 56) + rng.normal(0, 0.004, 56)
            errors.append(read_noise(log, range(56), cuts, 0.001).error(old, new))
            means.append(log[list(new)].mean() - log[list(old)].mean())
        found[name] = float(np.median(errors) / np.std(means))
        assert 0.75 < found[name] < 1.4, (name, found)


def test_the_half_width_is_where_p_is_5_percent() -> None:
    noise = read_noise(np.random.default_rng(0).normal(size=30), range(30), [[0, 26], [26]], 0.1)
    half = noise.half_width(range(10, 26), range(26, 30))
    assert noise.chance(half, range(10, 26), range(26, 30)) == pytest.approx(0.05)
    assert noise.weights.sum() == pytest.approx(1)


def test_single_sessions_far_out_are_not_enough() -> None:
    left = np.random.default_rng(1).normal(0, 0.01, 60)
    none = np.array([])
    both = chance_of_each(np.array([0.04, 0.05]), left, none, 0.01)
    alone = chance_of_each(np.array([0.005, 0.085]), left, none, 0.01)
    assert both < 1e-4 and alone > 0.05
    # Of a series that has had outliers as large, two in a row say less.
    outliers = np.array([0.1, 0.2, -0.1])
    spiky = chance_of_each(np.array([0.04, 0.05]), left, outliers, 0.01)
    assert spiky > 10 * both
    assert chance_of_each(np.array([-0.01, 0.05]), left, none, 0.01) == 1.0


def test_looks_are_more_the_longer_a_series_is() -> None:
    assert [looks(n) for n in (10, 30, 60, 300)] == [60, 75, 150, 300]
