"""What share of imported logs of training programs is left unfinished because its times drift.

``python -m bench.log_warm_up`` prints, for kinds of noise and numbers of lines, the share of runs
whose times are said to drift still, or never to become steady, and the error of the mean of those
that count. Three first lines are slow (20, 3 and 1.5 times); simulated, seeded, some seconds.
"""

from collections.abc import Callable, Mapping

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.importers.training_logs.build_run import slowed_down, steady_from

RUNS, LINES, SLOW = 300, (8, 30, 300), (20.0, 3.0, 1.5)
_DRAW = np.random.default_rng(1)


def _waves(count: int, memory: float) -> Floats:
    """Noise that remembers so much of itself from line to line, with a deviation of 5 %."""
    errors = _DRAW.standard_normal(count)
    for place in range(1, count):
        errors[place] = memory * errors[place - 1] + (1 - memory**2) ** 0.5 * errors[place]
    return np.asarray(0.05 * errors)


KINDS: Mapping[str, Callable[[int], Floats]] = {
    "normal, 3 %": lambda n: 0.03 * _DRAW.standard_normal(n),
    "normal, 10 %": lambda n: 0.1 * _DRAW.standard_normal(n),
    "heavy tails (t with 2 degrees), 5 %": lambda n: 0.05 * _DRAW.standard_t(2, n),
    "memory of 0.7, 5 %": lambda n: _waves(n, 0.7),
    "memory of 0.95, 5 %": lambda n: _waves(n, 0.95),
    "a step in 50 twice as long": lambda n: np.log1p(_DRAW.random(n) < 0.02),
    "half as fast from the middle on": lambda n: (
        0.02 * _DRAW.standard_normal(n) + np.log1p(np.arange(n) > n / 2)
    ),
    "rising by 20 %": lambda n: 0.02 * _DRAW.standard_normal(n) + 0.2 * np.arange(n) / n,
}


def main() -> None:
    """Print a line for each kind of noise and number of lines."""
    for name, noise in KINDS.items():
        for count in LINES:
            errors = []
            for _ in range(RUNS):
                times = np.exp(noise(count))
                slow = min(len(SLOW), count // 4)
                times[:slow] *= SLOW[:slow]
                first, drifts = steady_from(times)
                if first is not None and not drifts and not slowed_down(times, first):
                    errors.append(abs(times[first:].mean() / times[slow:].mean() - 1))
            lost = 100 * (1 - len(errors) / RUNS)
            off = f"{100 * np.quantile(errors, 0.95):.1f} %" if errors else "-"
            print(f"{name}, {count} lines: unfinished {lost:.1f} %, mean off by {off} (95 of 100)")


if __name__ == "__main__":
    main()
