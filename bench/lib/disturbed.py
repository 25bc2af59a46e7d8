"""Made-up best rates of runs on a machine that reaches 1.0 undisturbed, by what disturbs them."""

from collections.abc import Callable, Mapping

import numpy as np

from scalesweep.analysis.types import Floats

Draw = Callable[[np.random.Generator, int], Floats]
_NOISE = 0.005  # of an undisturbed run, in both directions


def _slowed(by: Draw) -> Draw:
    """Rates whose logarithms are lower by what ``by`` draws, and scatter a little."""
    return lambda rng, runs: np.exp(rng.normal(0, _NOISE, runs) - by(rng, runs))


def _at_times(rng: np.random.Generator, runs: int) -> Floats:
    """Half of the runs, by up to 60 %."""
    depth = np.where(rng.random(runs) < 0.5, rng.uniform(0, 0.6, runs), 0.0)
    return np.asarray(-np.log1p(-depth))


DISTURBANCES: Mapping[str, Draw] = {
    "none, noise 1 %": lambda rng, runs: np.exp(rng.normal(0, 0.01, runs)),
    "none, noise 3 %": lambda rng, runs: np.exp(rng.normal(0, 0.03, runs)),
    "each run, 5 %": _slowed(lambda rng, runs: rng.exponential(0.05, runs)),
    "each run, 20 %": _slowed(lambda rng, runs: rng.exponential(0.2, runs)),
    "each run, up to half": _slowed(lambda rng, runs: -np.log1p(-rng.uniform(0, 0.5, runs))),
    "two causes": _slowed(lambda rng, runs: rng.gamma(2, 0.025, runs)),
    "three causes": _slowed(lambda rng, runs: rng.gamma(3, 0.03, runs)),
    "heavy tail": _slowed(lambda rng, runs: 0.02 * rng.pareto(1.5, runs)),
    "half of the runs": _slowed(_at_times),
    "a quarter or not at all": _slowed(
        lambda rng, runs: -np.log1p(-0.25 * (rng.random(runs) < 0.5))
    ),
}
