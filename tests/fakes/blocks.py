"""Made repeats in randomised blocks."""

import numpy as np

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
