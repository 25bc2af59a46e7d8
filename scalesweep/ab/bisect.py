"""The search for the first bad commit: which one is looked at next, and what that has shown.

Pure of measurements, which are asked for by a function: as ``git bisect`` halves the commits that
are left, takes a neighbour where one cannot be judged, and ends between two commits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

GOOD, BAD, SKIPPED = "good", "bad", "skipped"


@dataclass
class Search:
    """Commits after the good one, up to the bad one, the oldest first.

    ``good``: place of the newest known to be good, -1 for the one before all; ``bad``: of the
    oldest known to be bad. ``skipped``: place -> why it could not be judged.
    """

    commits: Sequence[str]
    good: int = -1
    bad: int = field(init=False)
    skipped: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """The newest is bad."""
        self.bad = len(self.commits) - 1

    @property
    def next(self) -> int | None:
        """Place of the commit to look at: of those left the nearest to the middle; None at the
        end."""
        left = [n for n in range(self.good + 1, self.bad) if n not in self.skipped]
        middle = (self.good + self.bad) / 2
        return min(left, key=lambda n: (abs(n - middle), n), default=None)

    @property
    def between(self) -> list[int]:
        """Places of the commits that could not be judged and lie in what is left."""
        return [n for n in range(self.good + 1, self.bad) if n in self.skipped]

    def note(self, place: int, outcome: str, why: str = "") -> None:
        """What a commit has shown: GOOD, BAD or SKIPPED."""
        if outcome == GOOD:
            self.good = place
        elif outcome == BAD:
            self.bad = place
        else:
            self.skipped[place] = why

    def run(self, look: Callable[[int], tuple[str, str]]) -> None:
        """Look at commits until none is left; ``look`` returns the outcome of a place and why."""
        while (place := self.next) is not None:
            self.note(place, *look(place))
