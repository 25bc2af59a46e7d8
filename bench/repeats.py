"""Repeats until points are precise, by simulation: coverage of the intervals.

Of points with ``repeats: {min, max, until}``, over ratios of spread to target from 0.1 to
8 and several minima and maxima, the least and the largest share of intervals that hold the mean;
for log-normal noise with bounds, for skewed noise and for noise with slow runs as information, next
to what Student's t covers there with a fixed number of repeats. For comparison: the same points
with plain 95 % intervals.

    python -m bench.repeats [--rounds N]
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.lib.pairs import figure, run
from scalesweep.analysis.stats import CONFIDENCE, mean_bounds
from tests.fakes.repeats import KINDS, NORMAL, draw, held

LIMITS = ((3, 6), (3, 12), (3, 30), (5, 20), (10, 40))
RATIOS = np.geomspace(0.1, 8, 16)
UNTIL = 0.02
LEAST, MOST = 0.93, 0.97


def coverage(kind: str, rounds: int, level: float | None = None) -> dict[str, tuple[float, float]]:
    """Least and largest coverage over the ratios, by minimum and maximum."""
    rng = np.random.default_rng(21)
    spans = {}
    for least, most in LIMITS if level is None else [limits for limits in LIMITS if limits[1] < 20]:
        shares = [
            held(draw(kind, UNTIL * ratio, (rounds, most), rng), least, UNTIL, level)
            for ratio in RATIOS
        ]
        spans[f"{least} to {most}"] = (min(shares), max(shares))
    return spans


def fixed_coverage(kind: str, rounds: int) -> float:
    """What plain intervals of three fixed repeats cover."""
    values = draw(kind, 0.02, (rounds * 4, 3), np.random.default_rng(22))
    low, high = mean_bounds(values).T
    return float(((low <= 1) & (high >= 1)).mean())


def measure(rounds: int = 10_000) -> Iterator[dict[str, Any]]:
    """Of so many points of each kind."""
    for kind in KINDS:
        bounded = kind == NORMAL
        # Two standard errors of a share beyond what is stated.
        room = 2 * np.sqrt(0.05 * 0.95 / rounds)
        for limits, (low, high) in coverage(kind, rounds).items():
            name = f"coverage of means until precise, {kind}, {limits} repeats"
            lower = LEAST - room if bounded else None
            yield figure(f"{name}: least", low, "", lower, "higher")
            yield figure(f"{name}: most", high, "", MOST + room if bounded else None)
        if not bounded:
            fixed = fixed_coverage(kind, rounds)
            yield figure(f"coverage of means, {kind}, 3 fixed repeats", fixed, "")
    for limits, (low, _) in coverage(NORMAL, rounds, CONFIDENCE).items():
        name = f"coverage of means until precise, plain 95 % intervals, {limits} repeats: least"
        yield figure(name, low, "")


if __name__ == "__main__":
    run(measure)
