"""How often the best of many layouts is called clear though it is not, and what its lead is worth.

Layouts of one scale with known true rates, measured with noise: all alike, two of them alike at the
top of a wide spread, or spread alone. Noise is normal, heavy-tailed (Student's t with 3 degrees of
freedom) or drifts (a random walk over the runs, in blocks of a repeat of each layout, beside as
much normal noise), 2 % of each. Of many campaigns: the share of those in which the best is clear
and is not the best, or another is as good; the mean of its lead over the next as measured, and from
repeats that did not choose, each minus the true lead of the chosen one over the best of the others;
and how often the bounds hold it (up to 100 layouts). Repeats are compared by Welch's t, as those of
imported runs are; measured runs in blocks have less noise.

    python -m bench.best_layout [--campaigns 400]
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.lib.pairs import figure, run
from scalesweep.analysis.best_of_many import ahead_of_others
from scalesweep.analysis.stats import SIGNIFICANT, LogError, ratio_of_means, stated_ratio_error
from scalesweep.analysis.types import Floats

LAYOUTS, REPEATS = (5, 20, 200), (1, 3, 5)
MANY = 100  # of more layouts the bounds take too long
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
    """What is said of one campaign: ``rates[layout]`` and ``noise[layout, repeat]`` as logarithms;
    NaN of what is not known."""
    values = list(rates[:, None] + noise)
    plain = [np.exp(of) for of in values]
    best = int(np.argmax([of.mean() for of in plain]))
    lead = float(rates[best] - np.delete(rates, best).max())

    def error(top: int, bottom: int) -> LogError | None:
        if noise.shape[1] < 2 or len(values) > MANY:
            return None
        return stated_ratio_error(plain[top], plain[bottom])

    ahead = ahead_of_others(plain, error)
    assert ahead is not None
    # The closest first: the first one that it is not told from settles that it is not clear.
    others = sorted((place for place in range(len(values)) if place != best),
                    key=lambda place: -plain[place].mean())  # fmt: skip
    clear = all(
        (ratio_of_means(plain[best], plain[o], stated_ratio_error(plain[best], plain[o])).p or 1)
        <= SIGNIFICANT
        for o in others
    )
    known = ahead.low is not None and ahead.high is not None
    return {
        "clear": float(clear),
        "false": float(clear and lead <= 0),
        "measured": ahead.measured - lead,
        "apart": math.nan if ahead.apart is None else ahead.apart - lead,
        "held": float((ahead.low or 0) <= lead <= (ahead.high or 0)) if known else math.nan,
    }


def measure(campaigns: int = 400) -> Iterator[dict[str, Any]]:
    """Of so many campaigns of each kind of truth, noise, number of layouts and repeats."""
    for truth, rates in TRUTH.items():
        for name, noise in NOISE.items():
            for layouts in LAYOUTS:
                for repeats in REPEATS:
                    if repeats < 2:
                        continue
                    rng = np.random.default_rng(20261125)
                    rows = [
                        campaign(rates(rng, layouts), noise(rng, layouts, repeats))
                        for _ in range(campaigns)
                    ]
                    words = f"{layouts} layouts, {truth}, {name}, {repeats} repeats"
                    false = 100 * float(np.mean([row["false"] for row in rows]))
                    yield figure(f"{words}: falsely clear", false, "%", MOST)
                    off = 100 * float(np.nanmean([row["apart"] for row in rows] or [np.nan]))
                    yield figure(
                        f"{words}: lead, from repeats that did not choose, off by", off, "%"
                    )


if __name__ == "__main__":
    run(measure)
