"""How often a cause of longer steps is called clear: where there is none, and where one is planted.

Campaigns of three repeats of 60 steps on 2, 3 and 8 ranks (tests/acceptance/faults.py), with
noise of several kinds; the planted ones have one rank that computes 8 % longer, one that stalls,
and one that spends time between its steps.

    python -m bench.step_causes [--campaigns N]
"""

from collections.abc import Iterator, Mapping
from typing import Any

from bench.lib.pairs import figure, run
from tests.acceptance.faults import Program, always, every
from tests.fakes.null_steps import NOISES, clear_causes

RANKS = (2, 3, 8)
FALSE, POWER = 0.05, 0.9
PLANTED: Mapping[str, tuple[Program, tuple[str, str, str]]] = {
    "5 ms of computing": (
        Program(faults={"compute": always(5, 1)}),
        ("compute", "every step", "1"),
    ),
    "stalls of 300 ms": (
        Program(faults={"compute": every(300, 15, 1)}),
        ("compute", "single steps", "1"),
    ),
    "8 ms between steps": (
        Program(faults={"between": always(8, 0)}),
        ("between", "every step", "0"),
    ),
}


def measure(campaigns: int = 400) -> Iterator[dict[str, Any]]:
    """Of so many campaigns of each kind."""
    for name, noise in NOISES.items():
        for ranks in RANKS:
            said = sum(bool(clear_causes(noise, ranks, seed)) for seed in range(campaigns))
            words = f"campaigns without a cause that name one, {name}, {ranks} ranks"
            yield figure(words, said / campaigns, "", FALSE)
    seeds = range(max(campaigns // 4, 20))
    for what, (program, truth) in PLANTED.items():
        for name in ("quiet", "loud", "tails"):
            causes = [clear_causes(NOISES[name], 2, seed, program) for seed in seeds]
            right = sum(truth in each for each in causes) / len(causes)
            wrong = sum(any(cause != truth for cause in each) for each in causes) / len(causes)
            least = POWER if name == "quiet" else None
            yield figure(f"campaigns that name {what}, {name}", right, "", least, "higher")
            yield figure(f"campaigns that name another cause, {what}, {name}", wrong, "", FALSE)


if __name__ == "__main__":
    run(measure)
