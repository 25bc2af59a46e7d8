"""How often the best of many layouts is called clear though it is not, and what its lead is worth.

Layouts of one scale with known true rates, measured with noise: all alike, two of them alike at the
top of a wide spread, or spread alone. Noise is normal, heavy-tailed (Student's t with 3 degrees of
freedom) or drifts (a random walk over the runs, in blocks of a repeat of each layout, beside as
much normal noise), 2 % of each. Of many campaigns: the share of those in which the best is clear
and is not the best, or another is as good; the mean of its lead over the next as measured, minus
the true lead of the chosen one over the best of the others; and how often its interval holds that.
Repeats are compared by Welch's t, as those of imported runs are; measured runs in blocks have less
noise.

    python -m bench.best_layout [--campaigns 400]
"""

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from bench.lib.pairs import figure, run
from scalesweep.analysis.stats import SIGNIFICANT, ratio_of_means, stated_ratio_error
from scalesweep.analysis.types import Floats
from scalesweep.aspects.layouts.table import ahead_of

LAYOUTS, REPEATS = (5, 20, 200), (3, 5)
SIGMA = 0.02
MOST = 5.0  # percent of campaigns whose best is clear, and is not
_Noise = Callable[[np.random.Generator, int, int], Floats]


def _normal(rng: np.random.Generator, layouts: int, repeats: int) -> Floats:
    return rng.normal(0, SIGMA, (layouts, repeats))


def _heavy(rng: np.random.Generator, layouts: int, repeats: int) -> Floats:
    # As far spread as the normal one: the variance of t with 3 degrees of freedom is 3.
    return np.asarray(SIGMA * rng.standard_t(3, (layouts, repeats)) / math.sqrt(3))


def _drift(rng: np.random.Generator, layouts: int, repeats: int) -> Floats:
    walk = rng.normal(0, SIGMA / math.sqrt(layouts), layouts * repeats).cumsum()
    walk = walk.reshape(repeats, layouts)
    order = np.array([rng.permutation(layouts) for _ in range(repeats)])
    return np.take_along_axis(walk, order, axis=1).T + _normal(rng, layouts, repeats)


NOISE: dict[str, _Noise] = {"normal": _normal, "heavy-tailed": _heavy, "drift": _drift}


def _alike(_rng: np.random.Generator, layouts: int) -> Floats:
    return np.zeros(layouts)


def _two(rng: np.random.Generator, layouts: int) -> Floats:
    rates = _spread(rng, layouts)
    rates[:2] = 0.0
    return rates


def _spread(rng: np.random.Generator, layouts: int) -> Floats:
    # To a tenth of the best, as layouts of large scales are.
    rates = -rng.uniform(0, math.log(10), layouts)
    return np.asarray(rates - rates.max())


TRUTH = {"all alike": _alike, "two best": _two, "spread": _spread}


def campaign(rates: Floats, noise: Floats) -> dict[str, float]:
    """What is said of one campaign: ``rates[layout]`` and ``noise[layout, repeat]`` as
    logarithms."""
    values = np.exp(rates[:, None] + noise)
    best = int(values.mean(axis=1).argmax())
    lead = math.exp(rates[best] - np.delete(rates, best).max())
    ratios = [
        ratio_of_means(values[best], of, stated_ratio_error(values[best], of))
        for of in np.delete(values, best, axis=0)
    ]
    clear = all(ratio.chance <= SIGNIFICANT for ratio in ratios)
    ahead = ahead_of(ratios)
    assert ahead.low is not None and ahead.high is not None
    return {
        "false": float(clear and lead <= 1),
        "off": ahead.value - lead,
        "held": float(ahead.low <= lead <= ahead.high),
    }


def measure(campaigns: int = 400) -> Iterator[dict[str, Any]]:
    """Of so many campaigns of each kind of noise: the worst of the three kinds."""
    for truth, rates in TRUTH.items():
        for layouts, repeats in product(LAYOUTS, REPEATS):
            of_noise = []
            for noise in NOISE.values():
                rng = np.random.default_rng(20261125)
                rows = [
                    campaign(rates(rng, layouts), noise(rng, layouts, repeats))
                    for _ in range(campaigns)
                ]
                of_noise.append(100 * pd.DataFrame(rows).mean())
            worst = pd.DataFrame(of_noise)
            words = f"{truth}, {layouts} layouts, {repeats} repeats"
            yield figure(f"{words}: falsely clear", worst["false"].max(), "%", MOST)
            yield figure(f"{words}: lead off by, at most", worst["off"].abs().max(), "%")
            yield figure(f"{words}: interval holds the lead", worst["held"].min(), "%")


if __name__ == "__main__":
    run(measure)
