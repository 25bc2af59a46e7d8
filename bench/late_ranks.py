"""How often a rank is called late in traces of which none is, by simulation.

Recordings of calls that end together, through the alignment of clocks and the rule of the table
``lateness`` (docs/methods/traces.md). Each rank's delay in a step is noise of one kind, the same
for all of its calls; clocks are apart by seconds, and drift by up to 100 ppm, not evenly. Printed
are the share of recordings in which any rank is named; and of recordings in which one rank is later
by three standard deviations in each step, the share in which it is, and in which another one is.

    python -m bench.late_ranks [--recordings N] [--seed N]
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.lib.pairs import figure, run
from scalesweep.analysis.kineto_lateness import Matched, lateness_of
from scalesweep.analysis.kineto_stream import Collective

MOST = 0.05
STEP_S = 0.1
# Steps, calls in a step.
RECORDINGS = ((40, 1), (40, 10), (200, 5))
RANKS = (2, 4, 16)
KINDS = (
    "normal", "heavy tails", "skewed", "stalls", "growing", "follows itself 0.5",
    "follows itself 0.8", "follows itself 0.9", "follows itself 0.95", "random walk",
)  # fmt: skip
_KIND = Collective("allreduce", "default_pg", None, 4_000_000)


def delays(rng: np.random.Generator, kind: str, steps: int, ranks: int) -> Any:
    """Delays ``[step, rank]`` of ranks that are all alike, in parts of 3 ms."""
    shape = (steps, ranks)
    noise = rng.normal(0, 1, shape)
    if kind == "heavy tails":
        return rng.standard_t(2, shape)
    if kind == "skewed":
        return rng.lognormal(0, 1.5, shape)
    if kind == "stalls":
        return rng.exponential(0.1, shape) + 10 * (rng.random(shape) < 0.05)
    if kind == "growing":
        return noise * np.linspace(1, 5, steps)[:, None]
    if kind == "random walk":
        return np.cumsum(noise, axis=0) / steps**0.5 + rng.normal(0, 1, shape)
    if kind.startswith("follows itself"):
        of_before = float(kind.rpartition(" ")[2])
        for step in range(1, steps):
            noise[step] = of_before * noise[step - 1] + noise[step] * (1 - of_before**2) ** 0.5
    return noise


def named(rng: np.random.Generator, own: Any, calls: int) -> int | None:
    """The rank that a recording of such delays calls late."""
    steps, ranks = own.shape
    step = np.repeat(np.arange(steps), calls)
    at = STEP_S * (step + np.tile(np.arange(calls), steps) / (2 * calls))[:, None]
    begins = at + 3e-3 * np.repeat(own, calls, axis=0) + rng.normal(0, 1e-4, (len(step), ranks))
    ends = begins.max(axis=1, keepdims=True) + 1e-3 + rng.exponential(1e-4, begins.shape)
    whole = STEP_S * steps
    clock = rng.normal(0, 10, ranks) + at * rng.uniform(-1e-4, 1e-4, ranks)
    clock = clock + whole * 1e-5 * (at / whole) ** 2 * rng.normal(0, 1, ranks)
    table = np.stack([begins + clock, ends + clock], axis=2)
    rows = lateness_of([Matched(_KIND, tuple(range(ranks)), table, step)], {})
    return next((row["rank"] for row in rows if row["latest"]), None)


def measure(recordings: int = 400, seed: int = 20261126) -> Iterator[dict[str, Any]]:
    """Of so many recordings of each kind."""
    rng = np.random.default_rng(seed)
    for steps, calls in RECORDINGS:
        for ranks in RANKS:
            size = f"{steps} steps of {calls} calls, {ranks} ranks"
            for kind in KINDS:
                wrong = sum(
                    named(rng, delays(rng, kind, steps, ranks), calls) is not None
                    for _ in range(recordings)
                )
                yield figure(f"{size}, {kind}: a rank named", wrong / recordings, "", MOST)
            late = np.zeros(ranks)
            late[1] = 3.0
            said = [
                named(rng, late + delays(rng, "normal", steps, ranks), calls)
                for _ in range(recordings)
            ]
            yield figure(f"{size}: a late rank named", said.count(1) / recordings, "")
            others = sum(each not in (None, 1) for each in said) / recordings
            yield figure(f"{size}: another one named instead", others, "", MOST)


if __name__ == "__main__":
    run(measure)
