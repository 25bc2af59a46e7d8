"""How often a ceiling from several runs is confirmed and false, by what disturbed the runs.

Each campaign is a few runs on a machine whose undisturbed rate is known (``bench/lib/disturbed``).
Counted are the ceilings that a finding would confirm, those among them whose interval misses the
truth, and, for comparison, how often Student's interval of the mean misses it.

    python -m bench.ceilings [--rounds N]
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.lib.disturbed import DISTURBANCES, Draw
from bench.lib.pairs import figure, run
from scalesweep.analysis.best_rate import best_rate
from scalesweep.analysis.stats import mean_of
from scalesweep.aspects.probes.table import WIDE

RUNS = (3, 5, 7, 10)
ENOUGH = 5  # runs from which on the bound holds
MOST_FALSE = 0.07


@dataclass(frozen=True)
class Outcome:
    """Shares of campaigns."""

    confirmed: float
    false: float
    mean_false: float


def outcome(draw: Draw, runs: int, rounds: int) -> Outcome:
    """What becomes of so many campaigns of some runs each."""
    rng = np.random.default_rng(1)
    confirmed = false = mean_false = 0
    for _ in range(rounds):
        rates = draw(rng, runs)
        best, mean = best_rate(rates).rate, mean_of(rates)
        mean_false += not (mean.low or 0) <= 1 <= (mean.high or 0)
        if best.low and best.high and best.high <= WIDE * best.low:
            confirmed += 1
            false += not best.low <= 1 <= best.high
    return Outcome(confirmed / rounds, false / rounds, mean_false / rounds)


def measure(rounds: int = 4000) -> Iterator[dict[str, Any]]:
    """By disturbance: confirmed ceilings that are false, and the same of the mean."""
    for name, draw in DISTURBANCES.items():
        by_runs = {runs: outcome(draw, runs, rounds) for runs in RUNS}
        worst = max(accuracy.false for runs, accuracy in by_runs.items() if runs >= ENOUGH)
        yield figure(f"confirmed and false ceilings, {name}", worst, "", MOST_FALSE)
        yield figure(f"the same of the mean of five runs, {name}", by_runs[5].mean_false, "")
        if name == "none, noise 1 %":
            words = "ceilings confirmed by five undisturbed runs"
            yield figure(words, by_runs[5].confirmed, "", 0.95, "higher")


if __name__ == "__main__":
    run(measure)
