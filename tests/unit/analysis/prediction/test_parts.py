"""Sums by parts against planted laws of the parts: where they help, and must not harm."""

from dataclasses import replace

import numpy as np
import pytest

from bench.lib.prediction_parts import KINDS, PROBED, WRONG, with_and_without
from scalesweep.analysis.prediction.forecast import predict
from scalesweep.analysis.prediction.parts import sums_by_parts
from scalesweep.analysis.prediction.series import Parts, make_series

RANKS = 2.0 ** np.arange(8)
SERIES = 30


def errors(kind: str) -> tuple[float, float]:
    """Mean error of the larger half, without and with the parts."""
    without, own = with_and_without(kind, SERIES, seed=5)
    return without.mean, own.mean


@pytest.mark.slow
def test_parts_that_grow_by_different_laws_help() -> None:
    ratios = {kind: errors(kind) for kind in KINDS if kind not in WRONG}
    worse = {kind: pair for kind, pair in ratios.items() if pair[1] > 1.02 * pair[0]}
    assert worse == {}
    assert np.mean([own / without for without, own in ratios.values()]) < 0.95
    for kind in PROBED:
        assert ratios[kind][1] < 0.92 * ratios[kind][0]


@pytest.mark.parametrize("kind", WRONG)
def test_parts_that_are_wrong_do_no_harm(kind: str) -> None:
    without, with_parts = errors(kind)
    assert with_parts < 1.1 * without


def test_a_part_that_grows_is_continued_although_another_one_hides_it() -> None:
    # Computation falls at first, as caches fill: the cost does too, and then grows.
    computation = np.array([1.2, 1.1, 1.05, 1, 1, 1, 1, 1])
    transfer = 0.002 * (RANKS - 1)
    parts = Parts(("computation", "transfer"), np.stack([computation, transfer]))
    series = make_series(RANKS, computation + transfer, "weak", None, parts)
    found = predict(series, [512.0])
    truth = 1 + 0.002 * 511
    assert found.growing_part(0) == ("transfer", pytest.approx(1 - 1 / truth, abs=0.08))
    (own,) = sums_by_parts(series, np.append(series.ranks, 512.0))
    assert np.exp(own.log_cost[-1, -1]) == pytest.approx(truth, rel=0.15)
    alone = predict(replace(series, parts=None), [512.0])
    assert abs(found.cost[0] - truth) < 0.9 * abs(alone.cost[0] - truth)


def test_points_without_parts_or_of_a_single_one_add_no_sum() -> None:
    series = make_series(RANKS, 1 + 0.01 * np.log2(RANKS))
    assert list(sums_by_parts(series, series.ranks)) == []
    whole = Parts(("computation",), series.cost[None, :])
    assert list(sums_by_parts(replace(series, parts=whole), series.ranks)) == []
