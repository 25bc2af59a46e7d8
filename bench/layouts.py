"""Layouts at a scale that was not run: what the first five of a ranking lose, and its error.

From half of the layouts of simulated sweeps (``bench.lib.layout_truth``) on up to so many nodes,
all that fit on twice as many are ranked. ``loss``: by which share the best of the first five falls
short of the best that there is.

    python -m bench.layouts [--sweeps N]
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.lib.layout_truth import DEVICE, bytes_of, draw_program, layouts_on, seconds_of, sweep
from bench.lib.pairs import figure, run
from scalesweep.analysis.layout_cost import TRIALS, expected_s

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
            said = expected_s(sweep(program, known, random), there)
            true = np.array([seconds_of(program, layout) for layout in there])
            batch = np.array([layout.global_batch for layout in there])
            first = np.argsort(said / batch)[:TRIALS]
            loss = 1 - float((true / batch).min() / (true / batch)[first].min())
            yield loss, float(np.median(np.abs(true / said - 1)))


def measure(sweeps: int = SWEEPS) -> Iterator[dict[str, Any]]:
    """Of so many sweeps."""
    loss, error = 100 * np.array(list(losses(sweeps))).T
    yield figure("layouts: mean loss of the first five", float(loss.mean()), "%", BOUND)
    yield figure("layouts: median error of a step", float(np.median(error)), "%")


if __name__ == "__main__":
    run(measure)
