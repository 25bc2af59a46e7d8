"""Intervals from randomised blocks: against least squares, and where there is none."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.special import polygamma

from scalesweep.analysis import blocks as module
from scalesweep.analysis.blocks import Blocks, Layout, interval_of, layouts, start_seconds
from scalesweep.analysis.stats import LogError
from scalesweep.analysis.types import Floats

# Four points in three blocks, whose residuals scatter alike.
LOGS = np.array(
    [[1.00, 1.21, 1.52], [2.02, 2.19, 2.48], [2.97, 3.23, 3.51], [4.03, 4.20, 4.50]]
)  # fmt: skip


def _blocks(logs: Floats) -> Blocks:
    return Blocks(logs, {place: place for place in range(len(logs))})


def test_variances_are_those_of_least_squares_on_points_and_blocks() -> None:
    points, repeats = LOGS.shape
    rows, columns = np.indices(LOGS.shape)
    design = np.zeros((LOGS.size, points + repeats))
    design[np.arange(LOGS.size), rows.ravel()] = 1
    design[np.arange(LOGS.size), points + columns.ravel()] = 1
    fitted = design @ np.linalg.lstsq(design, LOGS.ravel(), rcond=None)[0]
    rest = LOGS.ravel() - fitted
    degrees = LOGS.size - (points + repeats - 1)
    residual = float(rest @ rest) / degrees
    found = _blocks(LOGS)
    assert found.pool is not None and found.drifted and found.alike.all()
    assert math.isinf(found.pool.prior)
    assert found.pool.residual == pytest.approx(residual) and found.pool.degrees == degrees == 6
    ratio = found.ratio_error(1, 0)
    assert ratio is not None and ratio.degrees == 6
    assert ratio.error == pytest.approx(math.sqrt(2 * residual / repeats))
    # Of a mean what blocks differ by counts too: its variance is that of all runs, each against
    # the mean of its point, and the degrees lie between those of one point and of all.
    within = float(LOGS.var(axis=1, ddof=1).mean())
    mean = found.mean_error(2)
    assert mean is not None and mean.error == pytest.approx(math.sqrt(within / repeats))
    assert repeats - 1 < mean.degrees < points * (repeats - 1)
    # 95 % quantile of t with 6 degrees of freedom: 2.446912 (any table).
    span = interval_of(2.0, ratio)
    assert span.high == pytest.approx(2 * math.exp(2.446912 * ratio.error), rel=1e-6)
    assert (span.low * span.high, span.method, span.degrees) == (pytest.approx(4), "blocks", 6)


def test_what_a_whole_block_shifts_changes_no_ratio() -> None:
    shifted = _blocks(LOGS + np.array([0.0, 5.0, -3.0])).ratio_error(3, 0)
    before = _blocks(LOGS).ratio_error(3, 0)
    assert before is not None and shifted is not None
    assert (shifted.error, shifted.degrees) == pytest.approx((before.error, before.degrees))


def test_variances_that_differ_weigh_less_than_a_points_own() -> None:
    generator = np.random.default_rng(1)
    spread = np.exp(generator.normal(0, 0.35, (12, 1)))
    found = _blocks(spread * generator.normal(0, 0.01, (12, 6)))
    assert found.pool is not None and 1 < found.pool.prior < 30
    own = found.logs.std(axis=1, ddof=1) / math.sqrt(6)
    pooled = math.sqrt(found.pool.total / 6)
    noisy = []
    for place in np.flatnonzero(found.alike).tolist():
        error, alone = found.mean_error(place), float(own[place])
        assert error is not None and 5 < error.degrees <= found.pool.prior + 5
        assert min(alone, pooled) <= error.error <= max(alone, pooled)
        if alone > pooled:
            assert error.degrees < found.pool.prior + 5  # more of it is its own
            noisy.append(place)
    assert noisy


def test_a_point_that_scatters_more_keeps_its_own_interval() -> None:
    generator = np.random.default_rng(2)
    logs = generator.normal(0, 0.01, (6, 5))
    logs[2] *= 20
    found = _blocks(logs)
    assert found.alike.tolist() == [True, True, False, True, True, True]
    assert found.mean_error(2) is None and found.ratio_error(2, 0) is None
    assert found.pool is not None and found.pool.residual < 0.02**2
    # The blocks differ: the noisy point's ratios are taken block by block, with its own degrees.
    drifting = _blocks(logs + 0.3 * np.arange(5))
    paired = drifting.ratio_error(2, 0)
    assert paired is not None and paired.degrees == 4
    apart = (logs[2] - logs[0]).std(ddof=1) + 0
    assert paired.error == pytest.approx(apart / math.sqrt(5))


def test_of_two_points_blocks_count_only_where_they_differ() -> None:
    generator = np.random.default_rng(8)
    logs = generator.normal(0, 0.01, (2, 6))
    assert _blocks(logs).ratio_error(0, 1) is None and _blocks(logs).pool is None
    shifted = _blocks(logs + 0.2 * np.arange(6)).ratio_error(0, 1)
    assert shifted is not None and shifted.degrees == 5
    assert shifted.error == pytest.approx((logs[0] - logs[1]).std(ddof=1) / math.sqrt(6))
    # Nothing but rounding is left: the repeats did not vary independently.
    assert _blocks(np.array([[0.0, 1.0], [2.0, 3.0]])).ratio_error(0, 1) is None
    same = _blocks(np.arange(4.0)[:, None] + np.arange(3.0))
    assert same.pool is None and same.mean_error(0) is None and same.ratio_error(0, 1) is None


def test_points_without_every_repeat_or_without_spread_are_left_out() -> None:
    layout = Layout("abcdef", np.arange(18).reshape(6, 3))
    values = np.exp(np.random.default_rng(1).normal(0, 0.1, 18))
    values[1], values[4], values[8], values[9:12] = math.nan, 0.0, -1.0, 7.0
    found = layout.blocks(values)
    assert found is not None and dict(found.places) == {"e": 0, "f": 1}
    values[12] = math.inf
    assert layout.blocks(values) is None


def _layouts(order: Sequence[str]) -> list[Layout]:
    """Of runs of points (letters), whose repeats began in this order."""
    count = dict.fromkeys(order, 0)
    runs = []
    for began, point in enumerate(order):
        runs.append((point, count[point], float(began)))
        count[point] += 1
    # Runs come point by point, as in a plan.
    runs.sort(key=lambda run: run[:2])
    return layouts(*(list(column) for column in zip(*runs, strict=True)))


def test_blocks_are_seen_by_when_runs_began() -> None:
    (found,) = _layouts("abcdcbaddbca")
    assert found.points == list("abcd")
    assert found.runs.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    # Jobs of a cluster overtake each other a little.
    (found,) = _layouts("abcdcbdaadcb")
    assert found.points == list("abcd")
    assert not _layouts("aaabbbcccddd")  # one point after the other
    assert not _layouts("abcd")  # one repeat
    assert not layouts(["a", "b"] * 3, [0, 0, 1, 1, 2, 2], [math.nan] * 6)
    assert not layouts(["a", "b"] * 3, [0, 0, 1, 1, 2, 2], [0.0] * 6)


def test_what_was_added_or_run_again_later_is_no_part_of_the_blocks() -> None:
    first, later = _layouts("abcbcacabdeedde")
    assert (first.points, later.points) == (list("abc"), list("de"))
    # The second repeat of d failed, and was run again when all else was done.
    points, repeats = list("abcd" * 3), [0] * 4 + [1] * 4 + [2] * 4
    began = [float(place) if place != 7 else 99.0 for place in range(12)]
    (found,) = layouts(points, repeats, began)
    assert found.points == list("abc")
    # Points with more repeats are on their own.
    first, more = _layouts("abcdbcdacddc")
    assert (first.points, more.points) == (list("ab"), list("cd"))


def test_starts_are_read_as_records_have_them() -> None:
    assert start_seconds("1970-01-01T00:01:00.500+00:00") == 60.5
    assert math.isnan(start_seconds(None)) and math.isnan(start_seconds(""))
    assert math.isnan(start_seconds(math.nan))


@pytest.mark.parametrize(("points", "free"), [(3, 2), (6, 4), (12, 1)])
def test_chance_scatter_is_that_of_equal_variances(points: int, free: int) -> None:
    generator = np.random.default_rng(points)
    found = [
        np.log(module._residual_variances(generator.normal(size=(points, free + 1)))).var(ddof=1)
        for _ in range(2500)
    ]
    assert module._chance_scatter(points, free) == pytest.approx(np.mean(found), rel=0.06)


@pytest.mark.parametrize("degrees", [0.1, 1.0, 7.3, 400.0])
def test_prior_degrees_solve_their_equation(degrees: float) -> None:
    assert module._prior_degrees(float(polygamma(1, degrees / 2))) == pytest.approx(degrees)
    assert math.isinf(module._prior_degrees(0.0)) and math.isinf(module._prior_degrees(-1.0))


def test_no_error_gives_no_width() -> None:
    assert interval_of(3.0, LogError(0.0, 4.0)).low == 3.0
