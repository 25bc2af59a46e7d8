"""The canary as covariate: against least squares, by simulation, and when none is used.

bench/covariate.py simulates more kinds, sizes and campaigns.
"""

import math

import numpy as np
import pytest

from scalesweep.analysis.blocks import Blocks
from scalesweep.analysis.covariate import choose
from scalesweep.analysis.stats import t_quantile
from scalesweep.analysis.types import Floats
from tests.fakes.blocks import SPREAD


def _blocks(logs: Floats) -> Blocks:
    return Blocks(logs, {place: place for place in range(len(logs))})


def test_slope_ratio_and_error_are_those_of_least_squares() -> None:
    generator = np.random.default_rng(10)  # whose residuals scatter alike
    points, repeats = 5, 4
    x = generator.normal(0, 0.1, (points, repeats))
    logs = 0.7 * x + generator.normal(0, 0.005, x.shape) + generator.normal(0, 0.1, repeats)
    one = choose(_blocks(logs), {"compute": x})
    assert one is not None
    rows, columns = np.indices(logs.shape)
    design = np.zeros((logs.size, points + repeats))
    design[np.arange(logs.size), rows.ravel()] = 1
    later = columns.ravel() > 0
    design[np.flatnonzero(later), points + columns.ravel()[later] - 1] = 1
    design[:, -1] = x.ravel()
    found = np.linalg.lstsq(design, logs.ravel(), rcond=None)[0]
    rest = logs.ravel() - design @ found
    degrees = (points - 1) * (repeats - 1) - 1
    variance = float(rest @ rest) / degrees
    inverse = np.linalg.inv(design.T @ design)
    contrast = np.zeros(points + repeats)
    contrast[[3, 1]] = 1, -1
    assert (one.slope, one.degrees) == (pytest.approx(found[-1]), degrees)
    ratio = one.ratio(3, 1)
    assert ratio is not None
    assert ratio[0] == pytest.approx(found[3] - found[1])
    assert ratio[1].error == pytest.approx(math.sqrt(variance * contrast @ inverse @ contrast))
    assert ratio[1].degrees == degrees


def test_none_is_used_where_nothing_links_machine_and_runs() -> None:
    generator = np.random.default_rng(5)
    used = 0
    for _ in range(300):
        logs = SPREAD * generator.normal(size=(6, 4))
        kinds = {str(n): generator.normal(size=logs.shape) for n in range(4)}
        used += choose(_blocks(logs), kinds) is not None
    assert used <= 8  # CHANCE is 1 %: more than 8 of 300 are one in a hundred


def test_the_kind_that_sees_the_machine_is_taken_and_coverage_is_kept() -> None:
    generator = np.random.default_rng(6)
    hits, narrower, kinds = 0, 0, set()
    rounds = 300
    for _ in range(rounds):
        machine = generator.normal(size=(6, 4))
        logs = SPREAD * (0.5 * generator.normal(size=machine.shape) + 0.9 * machine)
        blocks = _blocks(logs)
        one = choose(blocks, {"memory": generator.normal(size=logs.shape), "compute": machine})
        error = blocks.ratio_error(0, 1)
        if error is None:  # one of the points is not like the others
            rounds -= 1
            continue
        value, used = logs[0].mean() - logs[1].mean(), error
        if one is not None and (ratio := one.ratio(0, 1)):
            kinds.add(one.kind)
            value, used = ratio
            narrower += used.error < 0.8 * error.error
        hits += abs(value) <= t_quantile(used.degrees) * used.error
    # None is used where chance keeps the points from sharing their variance (blocks.UNEQUAL).
    assert kinds == {"compute"} and narrower > 0.7 * rounds
    assert 0.92 <= hits / rounds <= 0.98


def test_few_repeats_or_points_use_none() -> None:
    generator = np.random.default_rng(7)
    for shape in ((2, 10), (3, 10), (4, 3), (5, 2)):
        x = generator.normal(size=shape)
        assert (
            choose(_blocks(0.1 * x + 1e-4 * generator.normal(size=shape)), {"compute": x}) is None
        )
    x = generator.normal(size=(6, 4))
    assert choose(_blocks(x), {"compute": np.ones((6, 4))}) is None
    assert choose(_blocks(x), {}) is None
