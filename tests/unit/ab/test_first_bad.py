"""The search with its decisions: noise, commits that fail, what cannot be told, what is refused."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from scalesweep.ab import first_bad
from scalesweep.ab.checkouts import BadCommitError
from scalesweep.ab.first_bad import BAD, LOOKS, Finder, Search
from scalesweep.ab.first_bad import GOOD as IS_GOOD
from scalesweep.ab.session import AbSession
from scalesweep.ab.targets import Target
from scalesweep.core.errors import UserError

GOOD = "good".ljust(40, "0")


@dataclass(frozen=True)
class FakeTarget:
    label: str
    repeats: int

    def run_id(self, repeat: int) -> str:
        return f"{self.label} {repeat}"


class FakeSession:
    """Commits that take so long (None: they fail) with so much noise; what is asked and said."""

    campaign = SimpleNamespace(history=None)

    def __init__(self, times: Sequence[float | None], noise: float, good: float = 1.0) -> None:
        self.commits = [f"{n:04d}".ljust(40, "c") for n in range(len(times))]
        self.times: Mapping[str, float | None] = {
            GOOD: good, **dict(zip(self.commits, times, strict=True))
        }  # fmt: skip
        self.noise, self.rng = noise, np.random.default_rng(3)
        self.said: list[str] = []
        self.asked: list[tuple[str, str, int]] = []
        self.targets = [cast(Target, FakeTarget("steps: ranks 2", 4))]
        self.repository = SimpleNamespace(
            subject=lambda commit: f"Change {commit[:4]}", merged=lambda commit: 0
        )

    def say(self, line: str) -> None:
        self.said.append(line)

    def pairs(self, base: str, new: str) -> Any:
        return SimpleNamespace(folder=Path("somewhere"))

    def measure(self, base: str, new: str, targets: Sequence[Target]) -> list[Any]:
        shown = []
        for target in targets:
            self.asked.append((base, new, target.repeats))
            sides = []
            for commit in (base, new):
                time = self.times[commit]
                if time is None:
                    raise BadCommitError(commit, "fails")
                sides.append(time * np.exp(self.rng.normal(0, self.noise, target.repeats)))
            shown.append(
                SimpleNamespace(
                    target=target, base=list(sides[0]), new=list(sides[1]), worse=1, failure=None,
                    row={"metric": "step_time", "better": "lower"}, head={}, started=[],
                )
            )  # fmt: skip
        return shown


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_bad, "report", lambda *words: words[5](f"kept: {words[6]}"))


def search(times: Sequence[float | None], noise: float = 0.002, good: float = 1.0) -> FakeSession:
    session = FakeSession(times, noise, good)
    Finder(cast(AbSession, session), GOOD, session.commits).find()
    return session


def test_every_culprit_is_named_in_about_log2_looks() -> None:
    for commits in (1, 2, 3, 7, 8, 33):
        for culprit in range(commits):
            looks: list[int] = []
            alone = Search([str(n) for n in range(commits)])

            def look(place: int, seen: list[int] = looks, first: int = culprit) -> tuple[str, str]:
                seen.append(place)
                return (BAD if place >= first else IS_GOOD), ""

            alone.run(look)
            assert (alone.good, alone.bad, alone.between) == (culprit - 1, culprit, [])
            assert len(looks) <= math.ceil(math.log2(commits))


def test_the_first_bad_commit_is_named() -> None:
    session = search([1.0, 1.0, 1.0, 1.1, 1.1, 1.1])
    assert f"first bad commit: {session.commits[3]} (Change 0003)" in session.said
    # The step, two commits on the way, and the result between the two.
    assert len(session.asked) == 4 and session.said[-1] == "kept: True"
    assert session.asked[-1][:2] == (session.commits[2], session.commits[3])


def test_most_searches_are_right_in_noise() -> None:
    right = 0
    for _ in range(40):
        session = search([1.0, 1.0, 1.0, 1.0, 1.08, 1.08, 1.08, 1.08], 0.02)
        right += any(session.commits[4] in line for line in session.said)
    assert right >= 36


def test_a_commit_that_fails_is_skipped() -> None:
    session = search([1.0, 1.0, None, 1.1, 1.1, 1.1])
    assert "skipped: 0002cccccc (Change 0002): 0002cccccc: fails" in session.said
    assert "first bad commit: one of 2, after 0001cccccc:" in session.said
    assert session.said[-1] == "kept: False"


def test_what_cannot_be_told_ends_between_two_commits() -> None:
    """A commit right at the bound gets twice the repeats, twice, and is left out then."""
    session = search([1.0, 1.0488, 1.1], 0.02)
    looks = [repeats for _, new, repeats in session.asked if new == session.commits[1]]
    assert looks == [4 << n for n in range(LOOKS)]
    assert any("cannot be told" in line for line in session.said)
    assert any(line.startswith("first bad commit: one of 2, after 0000") for line in session.said)


def test_without_a_step_there_is_nothing_to_search_for() -> None:
    for times, good in (([1.0, 1.0, 1.0], 1.0), ([1.0, 1.0, 1.0], 1.2)):
        with pytest.raises(
            UserError, match="is not shown to be worse than GOOD good000000 by more"
        ):
            search(times, good=good)
