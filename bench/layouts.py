"""Layouts at a scale that was not run: what the first five of a ranking lose, and its error.

From half of the layouts of simulated sweeps (``bench.lib.layout_truth``) on up to so many nodes,
all that fit on twice as many are ranked. ``loss``: by which share the best of the first five falls
short of the best that there is.

    python -m bench.layouts [--sweeps N] [--json FILE]
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.lib.layout_truth import DEVICE, bytes_of, draw_program, layouts_on, seconds_of, sweep
from bench.lib.pairs import figure, line, write_json
from scalesweep.analysis.layout_cost import TRIALS, fit_cost

SEED, SWEEPS, STEPS = 43, 40, (2, 4, 8)
BOUND = 5.0  # %


def losses(sweeps: int) -> Iterator[tuple[float, float]]:
    """Loss and median relative error of a step, by sweep and number of nodes."""
    random = np.random.default_rng(SEED)
    for _ in range(sweeps):
        program = draw_program(random)
        for nodes in STEPS:
            known = [number for number in (1, *STEPS) if number <= nodes]
            there = [x for x in layouts_on(program, 2 * nodes) if bytes_of(program, x) <= DEVICE]
            said = fit_cost(sweep(program, known, random)).seconds(there)
            true = np.array([seconds_of(program, layout) for layout in there])
            batch = np.array([layout.global_batch for layout in there])
            first = np.argsort(said / batch)[:TRIALS]
            loss = 1 - float((true / batch).min() / (true / batch)[first].min())
            yield loss, float(np.median(np.abs(true / said - 1)))


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweeps", type=int, default=SWEEPS)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    loss, error = 100 * np.array(list(losses(args.sweeps))).T
    figures = [
        figure("layouts: mean loss of the first five", float(loss.mean()), "%", BOUND),
        figure("layouts: median error of a step", float(np.median(error)), "%"),
    ]
    print("\n".join(line(row) for row in figures))
    write_json({"figures": figures}, args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
