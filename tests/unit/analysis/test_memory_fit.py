"""Constants of the memory model from made-up peaks, and what verdicts say."""

import numpy as np
import pytest

from scalesweep.analysis.memory_model import (
    DEFAULT_SPREAD,
    TOO_LARGE,
    UNCERTAIN,
    MemoryFit,
    fit_memory,
)

TRUE = np.array([1.2, 1.4, 0.8, 8e8])


def made_points(count, stages=1, seed=0, noise=0.03):
    """Parts of points, and their peaks by ``TRUE``: of the stage with the most."""
    generator = np.random.default_rng(seed)
    points = []
    for _ in range(count):
        parts = generator.lognormal(np.log(4e9), 1, (stages, 5))
        terms = np.column_stack([parts[:, :3].sum(axis=1), parts[:, 3:], np.ones(stages)])
        peak = (terms @ TRUE).max() * generator.lognormal(0, noise)
        points.append((parts, float(peak)))
    return points


def test_outliers_move_little():
    points = made_points(80)
    odd = [(parts, 3 * peak if place % 10 == 0 else peak) for place, (parts, peak) in
           enumerate(points)]  # fmt: skip
    fit = fit_memory(odd)
    assert fit.values[:3] == pytest.approx(TRUE[:3], rel=0.1)
    assert fit.spread > 0.15  # but they count where a verdict is asked how sure it is


def test_few_points_stay_near_the_defaults():
    parts, _ = made_points(1)[0]
    needed = MemoryFit().needed(parts)
    fit = fit_memory([(parts, 1.5 * needed)])
    assert fit.spread == DEFAULT_SPREAD
    assert 1.05 < fit.needed(parts) / needed < 1.5
    assert fit_memory([]) == MemoryFit()


def test_peaks_of_the_first_and_the_mean_rank():
    points = made_points(60, stages=4, noise=0)
    for of, rank in (("first", lambda s: s[0]), ("mean", np.mean)):
        peaks = []
        for parts, _ in points:
            terms = np.column_stack([parts[:, :3].sum(axis=1), parts[:, 3:], np.ones(4)])
            peaks.append((parts, float(rank(terms @ TRUE))))
        fit = fit_memory(peaks, of=of)
        assert fit.values[:3] == pytest.approx(TRUE[:3], rel=0.05)
        assert fit.needed(points[0][0], of) == pytest.approx(peaks[0][1], rel=0.05)
        assert fit.needed(points[0][0]) >= fit.needed(points[0][0], of)


def test_likely_verdicts_are_right_nine_times_of_ten():
    """Of points that nothing was fitted to, about the limit of their device."""
    said, right = 0, 0
    for seed in range(15):
        points = made_points(30, seed=seed, noise=0.15)
        fit = fit_memory(points[:15])
        for parts, peak in points[15:]:
            device = 1.3 * float(np.median([peak for _, peak in points]))
            verdict = fit.verdict(parts, device)
            if verdict != UNCERTAIN:
                said += 1
                right += (verdict == TOO_LARGE) == (1.1 * peak > device)
    assert said > 100
    assert right / said > 0.95
