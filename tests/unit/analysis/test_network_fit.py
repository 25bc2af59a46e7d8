"""The fit of a network: planted latency and bandwidth, algorithms, ranges, and what it refuses."""

import numpy as np
import pytest

from scalesweep.analysis.network_fit import (
    ALGORITHMS,
    HALVING,
    RING,
    TREE,
    AlgorithmFit,
    RangeFit,
    fit_network,
    spanning,
)

LATENCY, BANDWIDTH, NOISE = 5e-6, 1e10, 0.05
SIZES = 4.0 * 4.0 ** np.arange(14)  # 4 B to 256 MiB


def formula(algorithm, ranks, size):
    """The cost as Thakur, Rabenseifner and Gropp give it, written out once more."""
    if algorithm == RING:
        return 2 * (ranks - 1) * (LATENCY + size / ranks / BANDWIDTH)
    if algorithm == HALVING:
        return 2 * np.log2(ranks) * LATENCY + 2 * (ranks - 1) / ranks * size / BANDWIDTH
    return 2 * np.log2(ranks) * (LATENCY + size / BANDWIDTH)


def simulated(draw, counts, small, large=None, cut=np.inf, noise=NOISE):
    """Times of ``small`` up to ``cut`` bytes and of ``large`` from there on."""
    grid = [(p, size) for p in counts for size in SIZES for _ in range(3)]
    times = [formula(small if size < cut else large, p, size) for p, size in grid]
    ranks, sizes = np.array(grid, np.float64).T
    return ranks, sizes, np.array(times) * np.exp(draw.normal(0, noise, len(times)))


def of(found, algorithm):
    return next(fit for fit in found.fits if fit.algorithm == algorithm)


def supported(found):
    """The algorithms that the data cannot tell apart from the best one, and that one."""
    return [fit.algorithm for fit in found.fits if fit.indistinguishable]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_planted_latency_and_bandwidth_are_recovered(algorithm):
    draw = np.random.default_rng(22)
    covered = []
    for _ in range(12):
        ranges = fit_network(*simulated(draw, [2, 4, 8, 16], algorithm))
        first, last = of(ranges[0], algorithm), of(ranges[-1], algorithm)
        assert first.latency.value == pytest.approx(LATENCY, rel=0.1)
        assert last.bandwidth.value == pytest.approx(BANDWIDTH, rel=0.1)
        covered += [
            first.latency.low <= LATENCY <= first.latency.high,
            last.bandwidth.low <= BANDWIDTH <= last.bandwidth.high,
        ]
        assert algorithm in supported(ranges[0])
    assert sum(covered) >= 20  # of 24; 95 %, less what chance takes


def test_one_rank_count_cannot_tell_the_algorithms_apart():
    draw = np.random.default_rng(1)
    (found,) = fit_network(*simulated(draw, [4], RING))
    assert set(supported(found)) == set(ALGORITHMS)
    # The formulas differ by factors, and so do what they make of the times.
    ring, halving, tree = (of(found, name) for name in (RING, HALVING, TREE))
    assert halving.latency.value == pytest.approx(ring.latency.value * 6 / 4)
    assert halving.bandwidth.value == pytest.approx(ring.bandwidth.value)
    assert tree.bandwidth.value == pytest.approx(ring.bandwidth.value * 4 / 1.5)


def test_ranges_are_split_where_the_library_changes_and_not_by_chance():
    draw = np.random.default_rng(3)
    counts = [2, 4, 8, 16]
    alone = [len(fit_network(*simulated(draw, counts, TREE))) for _ in range(10)]
    assert sum(number > 1 for number in alone) <= 2
    two = fit_network(*simulated(draw, counts, TREE, RING, cut=65536, noise=0.02))
    assert [found.best.algorithm for found in two] == [TREE, RING]
    assert (two[0].high, two[1].low) == (16384, 65536)


def test_coefficients_are_never_negative():
    # Larger messages that take less time, and times that grow faster than their size.
    for seconds in (np.array([3.0, 2.0, 1.0, 0.5]), np.array([1e-9, 1.0, 1e4, 1e9])):
        sizes = np.array([4.0, 16.0, 64.0, 256.0])
        for fit in (fit for it in fit_network(np.full(4, 4.0), sizes, seconds) for fit in it.fits):
            assert fit.latency.value >= 0 and fit.bandwidth.value > 0
            assert fit.latency.low is None or fit.latency.low >= 0


def test_too_little_for_a_fit():
    ranks, sizes, seconds = np.full(6, 2.0), np.repeat([4.0, 8.0], 3), np.ones(6)
    assert fit_network(ranks, sizes, seconds) == []
    # Times that are none are left out, and a single rank exchanges nothing.
    sizes = np.array([4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
    bad = np.array([1.0, np.nan, 2.0, np.inf, -1.0, 0.0])
    assert fit_network(ranks, sizes, bad) == []
    assert fit_network(np.ones(6), sizes, np.ones(6)) == []


def test_a_number_holds_those_of_all_algorithms_that_may_be_at_work() -> None:
    def fit(seconds: float, likely: bool) -> AlgorithmFit:
        return AlgorithmFit("a", np.array([seconds, 1e-9]), np.zeros((2, 2)), 4, 0.0, likely)

    found = spanning(
        RangeFit(1, 2, [fit(2, True), fit(3, True), fit(9, False)]), lambda it: it.latency
    )
    assert (found.value, found.low, found.high) == pytest.approx((2, 2, 3))
