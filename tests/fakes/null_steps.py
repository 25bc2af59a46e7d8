"""Campaigns whose ranks differ by noise only, and how often a cause is clear in them."""

from collections.abc import Mapping

from scalesweep.analysis.step_delays import causes_of
from scalesweep.analysis.step_work import step_work
from scalesweep.aspects.steps.causes import Accounted, cause_rows
from tests.acceptance.faults import Noise, Program, planted_run

# What the rule was not made for, too: tails, memory, ranks of unequal speed in each run.
NOISES: Mapping[str, Noise] = {
    "quiet": Noise(1, 0.5),
    "loud": Noise(8, 4),
    "tails": Noise(2, 1, tails=3),
    "memory": Noise(3, 1, memory=0.9),
    "long memory": Noise(4, 1, memory=0.98),
    "other ranks in each run": Noise(1, 0.5, rank=3),
    "disturbed": Noise(1, 0.5, spikes=0.15),
    "all of it": Noise(3, 2, rank=1, memory=0.8, tails=3),
}


def clear_causes(
    noise: Noise,
    ranks: int,
    seed: int,
    program: Program = Program(),  # noqa: B008
) -> list[tuple[str, str, str]]:
    """Cause, pattern and ranks of what a campaign of three repeats of 60 steps would call clear."""
    runs = []
    for repeat in range(3):
        arrays = planted_run(program, ranks, 60, seed * 100 + repeat, noise)
        work = step_work(arrays, {}, ranks)
        runs.append(Accounted(work, *causes_of(work)))
    return [
        (row["cause"], row["pattern"], row["step_ranks"])
        for row in cause_rows(runs)[:-1]
        if row["clear"]
    ]
