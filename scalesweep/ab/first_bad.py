"""``scalesweep bisect``: the first commit that made the program slower, by bisection.

The step between good and bad is measured first. A commit on the way is good or bad by whether the
interval of its ratio to the good one, measured alternately with it, lies below or above half of
that step (on logarithms). At the end the commits on both sides of the step are measured against
each other, which is what the history keeps.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from scalesweep.ab.checkouts import BadCommitError
from scalesweep.ab.commits import SHORT
from scalesweep.ab.outcome import Measured
from scalesweep.ab.run import described, report
from scalesweep.ab.session import AbSession
from scalesweep.ab.targets import Target
from scalesweep.analysis.types import Floats
from scalesweep.config.campaign import Campaign
from scalesweep.config.history_settings import MARGIN
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted, listed, percent
from scalesweep.judge.change import LEVEL, side_of

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

    def run(self, look: Callable[[int], tuple[str, str]]) -> None:
        """Look at commits until none is left; ``look`` returns the outcome of a place and why."""
        while (place := self.next) is not None:
            outcome, why = look(place)
            if outcome == GOOD:
                self.good = place
            elif outcome == BAD:
                self.bad = place
            else:
                self.skipped[place] = why


# A commit whose interval still holds the bound gets twice the repeats, so often at most.
LOOKS = 3
# Of each look, so that all of them together are wrong in 5 % at most (Bonferroni).
_LEVEL = LEVEL / LOOKS
Say = Callable[[str], None]


def first_bad(campaign: Campaign, options: Mapping[str, str], show: bool, say: Say) -> None:
    """Name the first bad commit between ``good`` and ``bad`` of the options.

    What it costs is said first; ``show``: only that. Raises UserError, also if bad is not worse
    than good.
    """
    session = AbSession(campaign, options, say)
    repository = session.repository
    good, bad = (repository.commit(options[n], n.upper()) for n in ("good", "bad"))
    commits = repository.between(good, bad)
    say(f"good: {described(repository, good)}")
    say(f"bad: {described(repository, bad)}, {counted(len(commits), 'commit')} later")
    if changes := repository.local_changes:
        say(f"note: {changes}")
    first = {t.run_id(0): 2 * t.repeats + 2 for t in session.targets}
    say(f"cost: the step, {counted(len(first), 'point')}: {session.cost_text(first)}")
    if steps := steps_of(len(commits)):
        later = {group: runs * (steps + 1) for group, runs in first.items()}
        say(
            f"cost: then about {counted(steps, 'commit')} and the result, at one point: at most "
            f"{session.cost_text(later)}; up to {2 ** (LOOKS - 1)} times as many runs of a commit "
            "that is hard to tell"
        )
    if not show:
        with session.open():
            Finder(session, good, commits).find()


def steps_of(commits: int) -> int:
    """Commits that a bisection of so many looks at."""
    return math.ceil(math.log2(commits)) if commits > 1 else 0


class Finder:
    """One search; ``good`` comes before ``commits``, the oldest of which is the first."""

    def __init__(self, session: AbSession, good: str, commits: Sequence[str]) -> None:
        self._session, self._say = session, session.say
        self._good, self._commits = good, commits
        self._search = Search(commits)

    def find(self) -> None:
        """Measure, and say what was found; raises UserError if there is no step."""
        target, step = self._step()
        self._search.run(lambda place: self._look(target, self._commits[place], step / 2))
        self._tell(target)

    def _step(self) -> tuple[Target, float]:
        """The point that shows the step best, and the step: a logarithm, above 0 if the new one is
        worse."""
        good, bad = self._good, self._commits[-1]
        targets = self._session.targets
        for look in range(LOOKS):
            asked = [replace(target, repeats=target.repeats << look) for target in targets]
            measured = self._session.measure(good, bad, asked)
            sides = [self._side(entry, self._margin(entry)) for entry in measured]
            if 1 in sides or set(sides) == {-1}:
                break
        worse = [entry for entry, side in zip(measured, sides, strict=True) if side > 0]
        if not worse:
            shown = [f"{e.target.label} {_change(_logs(e))}" for e in measured if e.base]
            raise UserError(
                f"BAD {bad[:SHORT]} is not shown to be worse than GOOD {good[:SHORT]} by "
                f"more than the margin: {listed(shown, 3)}; nothing to search for"
            )
        chosen = max(worse, key=lambda entry: _logs(entry).mean() / _logs(entry).std(ddof=1))
        others = [entry.target.label for entry in worse if entry is not chosen]
        self._say(f"bad is {_change(_logs(chosen))}: {chosen.target.label}")
        if others:
            self._say(
                f"searched at this point, the clearest; worse too: {listed(others, 3)} "
                "(--points for another)"
            )
        target = next(t for t in targets if t.run_id(0) == chosen.target.run_id(0))
        return target, float(_logs(chosen).mean())

    def _margin(self, measured: Measured) -> float:
        history = self._session.campaign.history
        metric = str(measured.row.get("metric", ""))
        return math.log1p(history.margin_of(metric) if history else MARGIN)

    def _side(self, measured: Measured, bound: float) -> int:
        return side_of(_logs(measured), bound, _LEVEL)

    def _look(self, target: Target, commit: str, half: float) -> tuple[str, str]:
        """Whether a commit is good or bad, or why that cannot be told."""
        name = described(self._session.repository, commit)
        for look in range(LOOKS):
            asked = replace(target, repeats=target.repeats << look)
            try:
                (measured,) = self._session.measure(self._good, commit, [asked])
            except BadCommitError as error:
                if error.commit == self._good:
                    raise  # it has been measured before: nothing can be told any more
                self._say(f"skipped: {name}: {error}")
                return SKIPPED, str(error)
            if side := self._side(measured, half):
                outcome = BAD if side > 0 else GOOD
                self._say(f"{outcome}: {name}: {_change(_logs(measured))}")
                return outcome, ""
        why = f"{_change(_logs(measured))} after {counted(len(measured.base), 'pair')}"
        self._say(f"skipped: {name}: cannot be told, {why}")
        return SKIPPED, why

    def _tell(self, target: Target) -> None:
        """Measure both sides of the step against each other, and say what was found."""
        search, repository, commits = self._search, self._session.repository, self._commits
        before = self._good if search.good < 0 else commits[search.good]
        bad = commits[search.bad]
        measured = self._session.measure(before, bad, [target])
        left = [*search.between, search.bad]
        if len(left) > 1:
            self._say(f"first bad commit: one of {len(left)}, after {before[:SHORT]}:")
            for place in left:
                why = search.skipped.get(place)
                name = described(repository, commits[place])
                self._say(f"  {name}" + (f": {why}" if why else ""))
        else:
            self._say(f"first bad commit: {bad} ({repository.subject(bad)})")
            if merged := repository.merged(bad):
                self._say(
                    f"  a merge of {counted(merged, 'commit')}: search in it with "
                    f"`scalesweep bisect {before[:SHORT]} {bad[:SHORT]}^2`"
                )
        folder = self._session.pairs(before, bad).folder
        campaign = self._session.campaign
        report(campaign, repository, measured, folder, (before, bad), self._say, len(left) == 1)


def _logs(measured: Measured) -> Floats:
    """Logarithms of the pairs' ratios, above 0 where new is worse."""
    pairs = np.array([measured.base, measured.new]).reshape(2, -1)
    base, new = pairs[:, (pairs > 0).all(axis=0)]
    logs: Floats = measured.worse * np.log(new / base)
    return logs


def _change(logs: Floats) -> str:
    """How much worse, in words."""
    if not logs.size:
        return "not measured"
    change = math.expm1(float(logs.mean()))
    return f"{percent(abs(change))} {'better' if change < 0 else 'worse'}"
