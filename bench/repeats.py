"""Repeats until points are precise, by simulation: coverage of the intervals, and repeats saved.

Coverage: of points with ``repeats: {min, max, until}``, over ratios of spread to target from 0.1 to
8 and several minima and maxima, the least and the largest share of intervals that hold the mean;
for log-normal noise with bounds, for skewed noise and for noise with slow runs as information, next
to what Student's t covers there with a fixed number of repeats. For comparison: the same points
with plain 95 % intervals.

Saving: campaigns until all points are within the target or at the maximum, against a fixed number
of repeats of every point (with plain 95 % intervals) after which as many points are as narrow. Of
24 made points with spreads from 0.5 to 8 %, most of them small; and of six small programs that are
timed on this machine, 150 times each in random order, from whose times repeats are drawn.

    python -m bench.repeats [--rounds N]
"""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.lib.pairs import figure, run, take_turns
from scalesweep.analysis.stats import CONFIDENCE, mean_bounds
from scalesweep.analysis.types import Floats
from tests.fakes import repeats as simulated
from tests.fakes.repeats import KINDS, NORMAL, draw, taken

LIMITS = ((3, 6), (3, 12), (3, 30), (5, 20), (10, 40))
RATIOS = np.geomspace(0.1, 8, 16)
UNTIL = 0.02
LEAST, MOST = 0.93, 0.97

# Coefficients of variation of the repeats of a campaign's points.
SPREADS = np.concatenate([np.geomspace(0.005, 0.02, 16), np.geomspace(0.02, 0.08, 8)])
SAVING = ((3, 12, 0.02), (3, 20, 0.02), (3, 12, 0.05))


def coverage(kind: str, rounds: int, level: float | None = None) -> dict[str, tuple[float, float]]:
    """Least and largest coverage over the ratios, by minimum and maximum."""
    rng = np.random.default_rng(21)
    spans = {}
    for least, most in LIMITS if level is None else [limits for limits in LIMITS if limits[1] < 20]:
        shares = [
            simulated.measure(least, most, UNTIL, UNTIL * ratio, rounds, rng, kind, level).coverage
            for ratio in RATIOS
        ]
        spans[f"{least} to {most}"] = (min(shares), max(shares))
    return spans


def fixed_coverage(kind: str, rounds: int) -> float:
    """What plain intervals of three fixed repeats cover."""
    values = draw(kind, 0.02, (rounds * 4, 3), np.random.default_rng(22))
    low, high = mean_bounds(values).T
    return float(((low <= 1) & (high >= 1)).mean())


Draw = Callable[[int], Floats]  # so many repeats of many points of one kind: [point, repeat]


def saving(draws: Sequence[Draw], least: int, most: int, until: float) -> dict[str, float]:
    """Repeats of a point by the rule, and the fixed number for the same final width."""
    ours = [taken(draw(most), least, until, 1.0) for draw in draws]
    runs = float(np.mean([way.repeats.mean() for way in ours]))
    narrow = float(np.mean([(way.widths <= until).mean() for way in ours]))
    for count in range(2, 200):
        shares = []
        for take in draws:
            values = take(count)
            # Student's t, as a bootstrap of so many rows takes minutes.
            low, high = mean_bounds(values, CONFIDENCE + 1e-12).T
            shares.append(((high - low) / 2 <= until * values.mean(axis=1)).mean())
        if np.mean(shares) >= narrow:
            break
    return {"runs": runs, "fixed": float(count), "narrow": narrow, "saved": 1 - runs / count}


def made(rounds: int) -> list[Draw]:
    """Points with made times."""
    rng = np.random.default_rng(23)

    def drawn(spread: float, count: int) -> Floats:
        return draw(NORMAL, spread, (rounds, count), rng)

    return [partial(drawn, spread) for spread in SPREADS.tolist()]


def timed(rounds: int) -> tuple[list[Draw], float]:
    """Points with times measured here: repeats are drawn from those of each program. Last the
    median of their spreads, over the mean."""
    generator = np.random.default_rng(24)
    matrices = {size: generator.standard_normal((size, size)) for size in (256, 700)}
    line_of_numbers = generator.standard_normal(500_000)
    jobs: dict[str, Callable[[], Any]] = {
        **{f"product {size}": partial(np.matmul, m, m) for size, m in matrices.items()},
        "copy": partial(np.copy, np.zeros(4_000_000)),
        "sort": partial(np.sort, line_of_numbers),
        "loop": lambda: sum(range(1_000_000)),
        "write": lambda: Path(os.devnull).write_bytes(bytes(20_000_000)),
    }
    times = take_turns(jobs, 150)
    shares = [np.array(seconds) / np.mean(seconds) for seconds in times.values()]

    def drawn(values: Floats, count: int) -> Floats:
        return np.asarray(generator.choice(values, (rounds, count)), np.float64)

    return [partial(drawn, draw) for draw in shares], float(
        np.median([draw.std() for draw in shares])
    )


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
    fewer = max(rounds // 10, 200)
    of_here, spread = timed(fewer)
    cases = [("made", made(fewer), *limits) for limits in SAVING]
    # What half of the programs of a machine reach, however busy that is.
    cases.append(("timed here", of_here, 3, 12, 1.5 * spread))
    cases.append(("timed here", of_here, 3, 20, spread))
    for what, draws, least, most, until in cases:
        way = saving(draws, least, most, until)
        name = f"repeats saved, {what}, {least} to {most} until {until:.1%}"
        yield figure(name, way["saved"], "", 0.0, "higher")
        yield figure(f"{name}: repeats of a point", way["runs"], "")
        yield figure(f"{name}: fixed repeats for as many narrow", way["fixed"], "")


if __name__ == "__main__":
    run(measure)
