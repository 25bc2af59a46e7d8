"""What makes the steps of a point longer, read from its table `causes`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scalesweep.core.formatting import finite
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.tables.step_causes import ALL, CAUSE_NUMBERS, CAUSE_TEXTS, cause_column


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


def _of_ranks(text: object) -> list[tuple[int, str]]:
    """The parts of ``rank: value, rank: value``."""
    pairs = [pair.split(": ") for pair in str(text or "").split(", ") if ": " in pair]
    return [(int(rank), value) for rank, value in pairs]


def _ends(text: str) -> tuple[int, int]:
    first, last = text.split("-")
    return int(first), int(last)


def _least_and_most(text: str) -> tuple[float, float]:
    least, most = text.split("/")
    return float(least), float(most)


def point_causes(results: ExperimentResults) -> list[PointCauses]:
    """One for each point and source that has been looked at, in the order of the table."""
    names = {name: cause_column(name, results.axes) for name in (*CAUSE_NUMBERS, *CAUSE_TEXTS)}
    points: list[PointCauses] = []
    causes: list[Cause] = []
    for row in results.rows("causes"):
        texts = {name: row[names[name]] for name in CAUSE_TEXTS}
        ranks = [int(rank) for rank in str(texts["ranks"] or "").split(", ") if rank]
        cause = Cause(
            cause=str(texts["cause"]),
            pattern=str(texts["pattern"] or ""),
            ranks=ranks,
            same_ranks=bool(texts["same_ranks"]),
            shared=bool(texts["shared"]),
            sure=bool(texts["sure"]),
            inferred=bool(texts["inferred"]),
            side_effects=str(texts["side_effects"] or ""),
            by_rank=str(texts["by_rank"] or ""),
            lengths={rank: float(text) for rank, text in _of_ranks(texts["lengths"])},
            same_steps=bool(texts["same_steps"]),
            parts={rank: _ends(text) for rank, text in _of_ranks(texts["parts"])},
            ahead={rank: _least_and_most(text) for rank, text in _of_ranks(texts["ahead"])},
            numbers={
                name: float(value)
                for name in CAUSE_NUMBERS
                if finite(value := row[names[name]])
            },
        )  # fmt: skip
        if cause.cause == ALL:
            points.append(PointCauses(row, int(row[names["repeats"]]), causes, cause))
            causes = []
        else:
            causes.append(cause)
    return points
