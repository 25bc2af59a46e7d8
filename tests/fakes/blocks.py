"""Made repeats in randomised blocks, and how often intervals of them hold the truth."""

import math
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.blocks import Blocks, interval_of
from scalesweep.analysis.stats import Interval, mean_interval, ratio_interval
from scalesweep.analysis.types import Floats

SPREAD = 0.05  # standard deviation of a run's logarithm within its block
# Steady: nothing but independent errors. States: the machine is in another state in each block.
# Trend: it slows down from first run to last. Heavy: Student's t with 5 degrees of freedom.
# Twice, thrice: half of the points scatter so much more. One: a single point, thrice.
KINDS = ("steady", "states", "trend", "heavy", "twice", "thrice", "one")


def made_logs(generator: np.random.Generator, kind: str, points: int, repeats: int) -> Floats:
    """Logarithms ``[point, block]`` whose expectation is 0 (trend: on average over all runs)."""
    shape = (points, repeats)
    errors = generator.normal(size=shape)
    if kind == "heavy":
        errors = generator.standard_t(5, shape) / np.sqrt(5 / 3)
    scale = np.ones((points, 1))
    if kind in ("twice", "thrice"):
        scale[points // 2 :] = 2 if kind == "twice" else 3
    if kind == "one":
        scale[-1] = 3
    logs = errors * scale
    if kind == "states":
        logs += 1.5 * generator.normal(size=repeats)
    if kind == "trend":
        order = generator.permuted(np.tile(np.arange(points)[:, None], repeats), axis=0)
        place = order + points * np.arange(repeats)
        logs += 6 * (place / (points * repeats - 1) - 0.5)
    return np.asarray(logs * SPREAD)


@dataclass(frozen=True)
class Coverage:
    """Shares of intervals that hold the truth, of means and ratios, over points and pairs; of the
    point that is covered least; and median width (of logarithms) over that of today's method."""

    mean: float
    ratio: float
    least_mean: float
    least_ratio: float
    mean_before: float
    ratio_before: float
    mean_width: float
    ratio_width: float


def coverage(kind: str, points: int, repeats: int, rounds: int, seed: int = 1) -> Coverage:
    """What intervals from blocks cover, and those of each point alone (``before``)."""
    generator = np.random.default_rng((seed, points, repeats, KINDS.index(kind)))
    pairs = [(i, j) for i in range(points) for j in range(i)]
    # [before or now, round, point or pair]: whether it covers, and half its width.
    means = np.empty((2, 2, rounds, points))
    ratios = np.empty((2, 2, rounds, len(pairs)))
    for number in range(rounds):
        logs = made_logs(generator, kind, points, repeats)
        values = np.exp(logs)
        levels = values.mean(axis=1)
        blocks = Blocks(logs, {place: place for place in range(points)})
        for place in range(points):
            alone = mean_interval(values[place])
            error = blocks.mean_error(place)
            now = interval_of(levels[place], error) if error else alone
            for method, span in enumerate((alone, now)):
                means[method, :, number, place] = _hit(span.low, span.high)
        for place, (top, bottom) in enumerate(pairs):
            alone = ratio_interval(values[top], values[bottom])
            error = blocks.ratio_error(top, bottom)
            now = interval_of(levels[top] / levels[bottom], error) if error else alone
            for method, span in enumerate((alone, now)):
                ratios[method, :, number, place] = _hit(span.low, span.high)
    (mean_before, mean), (ratio_before, ratio) = means[:, 0].mean((1, 2)), ratios[:, 0].mean((1, 2))
    return Coverage(
        float(mean),
        float(ratio),
        float(means[1, 0].mean(axis=0).min()),
        float(ratios[1, 0].mean(axis=0).min()),
        float(mean_before),
        float(ratio_before),
        float(np.median(means[1, 1] / means[0, 1])),
        float(np.median(ratios[1, 1] / ratios[0, 1])),
    )


def _hit(low: float, high: float) -> tuple[float, float]:
    return float(low <= 1 <= high), float(np.log(high / low)) / 2


@dataclass(frozen=True)
class Growing:
    """Noise that grows along the points: coverage of the noisiest over the first, and the power to
    see that the quietest two differ, by blocks and by Welch's t alone."""

    noisiest: float
    power: float
    power_alone: float


def growing(points: int, repeats: int, ratio: float, rounds: int, seed: int = 1) -> Growing:
    """What intervals from blocks do where the last point scatters ``ratio`` times as much.

    The quietest two differ by 3.2 standard errors (three repeats; 2.6 for more).
    """
    generator = np.random.default_rng((seed, points, repeats, int(ratio)))
    spread = np.geomspace(1, ratio, points)[:, None] * SPREAD / ratio
    error = math.sqrt(float(spread[0, 0] ** 2 + spread[1, 0] ** 2) / repeats)
    hits = np.empty((rounds, 3))
    for number in range(rounds):
        logs = spread * generator.normal(size=(points, repeats))
        logs[1] += error * (3.2 if repeats == 3 else 2.6)
        values, blocks = np.exp(logs), Blocks(logs, {place: place for place in range(points)})

        def span(top: int) -> Interval:
            within = blocks.ratio_error(top, 0)  # noqa: B023
            value = float(values[top].mean() / values[0].mean())  # noqa: B023
            alone = ratio_interval(values[top], values[0])  # noqa: B023
            return interval_of(value, within) if within else alone

        last, quiet, alone = span(points - 1), span(1), ratio_interval(values[1], values[0])
        hits[number] = (last.low <= 1 <= last.high, quiet.low > 1, alone.low > 1)
    return Growing(*(float(share) for share in hits.mean(axis=0)))
