"""What makes the steps of a point longer, read from its table `causes`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scalesweep.aspects.steps.replays import ALL
from scalesweep.aspects.steps.table import CauseRow
from scalesweep.core.formatting import finite
from scalesweep.experiment.results import ExperimentResults, Row


@dataclass(frozen=True)
class Cause:
    """A cause over the repeats of a point, and what its steps would gain without it (ms)."""

    cause: str
    pattern: str
    ranks: Sequence[int]
    same_ranks: bool  # in each repeat
    shared: bool  # of all ranks
    sure: bool
    inferred: bool  # from how long other ranks wait: the least that it can be
    side_effects: str
    by_rank: str  # in how many steps of a run each rank has it
    lengths: Mapping[int, float]  # ms of each rank
    same_steps: bool  # in each repeat
    within: bool  # ranks wait for each other within a step, not at its end alone
    parts: Mapping[int, tuple[int, int]]  # first and last step, of ranks with one part in all runs
    # Of all causes: ms that ranks compute less than those in the middle, least and most of a run.
    ahead: Mapping[int, tuple[float, float]]
    numbers: Mapping[str, float]  # those that are not missing

    def bounds(self, name: str) -> tuple[float | None, float | None, float | None]:
        """``<name>_ms`` with its 95 % bounds."""
        value, low, high = (self.numbers.get(f"{name}_{part}") for part in ("ms", "low", "high"))
        return value, low, high


@dataclass(frozen=True)
class PointCauses:
    """The causes of a point, the largest gain first; ``together`` is without all of them."""

    row: Row
    repeats: int
    causes: Sequence[Cause]
    together: Cause


def _of_ranks(text: str) -> list[tuple[int, str]]:
    """The parts of ``rank: value, rank: value``."""
    pairs = [pair.split(": ") for pair in text.split(", ") if ": " in pair]
    return [(int(rank), value) for rank, value in pairs]


def _ends(text: str) -> tuple[int, int]:
    first, last = text.split("-")
    return int(first), int(last)


def _least_and_most(text: str) -> tuple[float, float]:
    least, most = text.split("/")
    return float(least), float(most)


def point_causes(results: ExperimentResults) -> list[PointCauses]:
    """One for each point and source that has been looked at, in the order of the table."""
    points: list[PointCauses] = []
    causes: list[Cause] = []
    for row in results.of(CauseRow):
        cause = Cause(
            cause=row.cause,
            pattern=row.pattern,
            ranks=[int(rank) for rank in row.step_ranks.split(", ") if rank],
            same_ranks=row.same_ranks,
            shared=row.shared,
            sure=row.sure,
            inferred=row.inferred,
            side_effects=row.side_effects,
            by_rank=row.by_rank,
            lengths={rank: float(text) for rank, text in _of_ranks(row.lengths)},
            same_steps=row.same_steps,
            within=row.within,
            parts={rank: _ends(text) for rank, text in _of_ranks(row.parts)},
            ahead={rank: _least_and_most(text) for rank, text in _of_ranks(row.ahead)},
            numbers={
                name: float(value)
                for name, value in row.cells.items()
                if isinstance(value, int | float) and not isinstance(value, bool) and finite(value)
            },
        )
        if cause.cause == ALL:
            points.append(PointCauses(row.row, row.repeats, causes, cause))
            causes = []
        else:
            causes.append(cause)
    return points
