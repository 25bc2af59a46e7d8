"""How often a ceiling from several runs is confirmed and false, by what disturbed the runs.

Each campaign is a few runs on a machine whose undisturbed rate is known (``bench/lib/disturbed``).
Counted are the ceilings that a finding would confirm, those among them whose interval misses the
truth, and, for comparison, how often Student's interval of the mean misses it.

    python -m bench.ceilings [--json FILE] [--rounds N]
"""

import argparse
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bench.lib.disturbed import DISTURBANCES, Draw
from bench.lib.pairs import figure, line, write_json
from scalesweep.analysis.best_rate import best_rate
from scalesweep.analysis.stats import mean_interval
from scalesweep.aspects.probes.ceilings import WIDE

RUNS = (3, 5, 7, 10)
ENOUGH = 5  # runs from which on the bound holds
MOST_FALSE = 0.07


@dataclass(frozen=True)
class Outcome:
    """Shares of campaigns, and the median of the confirmed intervals' upper over lower ends."""

    confirmed: float
    false: float
    mean_false: float
    width: float


def outcome(draw: Draw, runs: int, rounds: int) -> Outcome:
    """What becomes of so many campaigns of some runs each."""
    rng = np.random.default_rng(1)
    false = mean_false = 0
    widths: list[float] = []
    for _ in range(rounds):
        rates = draw(rng, runs)
        best, mean = best_rate(rates), mean_interval(rates)
        mean_false += not mean.low <= 1 <= mean.high
        if not math.isnan(best.low) and best.high <= WIDE * best.low:
            widths.append(best.high / best.low)
            false += not best.low <= 1 <= best.high
    width = float(np.median(widths)) if widths else math.nan
    return Outcome(len(widths) / rounds, false / rounds, mean_false / rounds, width)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=4000, help="campaigns of each kind")
    args = parser.parse_args()
    cases, rows = {}, []
    print(f"{'disturbed':24} {'runs':>4} confirmed  false  false mean  width")
    for name, draw in DISTURBANCES.items():
        by_runs = {runs: outcome(draw, runs, args.rounds) for runs in RUNS}
        cases[name] = {str(runs): asdict(accuracy) for runs, accuracy in by_runs.items()}
        for runs, accuracy in by_runs.items():
            print(
                f"{name:24} {runs:4} {accuracy.confirmed:9.1%} {accuracy.false:6.1%} "
                f"{accuracy.mean_false:11.1%} {accuracy.width:6.3f}"
            )
        worst = max(accuracy.false for runs, accuracy in by_runs.items() if runs >= ENOUGH)
        rows.append(figure(f"confirmed and false ceilings, {name}", worst, "", MOST_FALSE))
        rows.append(figure(f"the same of the mean of five runs, {name}", by_runs[5].mean_false, ""))
    quiet = cases["none, noise 1 %"]["5"]["confirmed"]
    rows.append(figure("ceilings confirmed by five undisturbed runs", quiet, "", 0.95, "higher"))
    for row in rows:
        print(line(row))
    write_json({"rounds": args.rounds, "cases": cases, "figures": rows}, args.json)


if __name__ == "__main__":
    main()
