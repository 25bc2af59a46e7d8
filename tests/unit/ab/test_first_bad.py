"""The search with its decisions: noise, commits that fail, what cannot be told, what is refused."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from scalesweep.ab import first_bad
from scalesweep.ab.commits import BadCommitError
from scalesweep.ab.first_bad import LOOKS, find, search
from scalesweep.ab.outcome import Measured
from scalesweep.ab.pairs import Target
from scalesweep.ab.session import AbSession
from scalesweep.core.errors import UserError

GOOD = "good".ljust(40, "0")


@dataclass(frozen=True)
class FakeTarget:
    label: str
    repeats: int

    def run_id(self, repeat: int) -> str:
        return f"{self.label} {repeat}"


class FakeSession:
    """Commits that take so long (None: they fail) with so much noise; what is asked."""

    campaign = SimpleNamespace(history=None)

    def __init__(self, times: Sequence[float | None], noise: float, good: float = 1.0) -> None:
        self.commits = [f"{n:04d}".ljust(40, "c") for n in range(len(times))]
        self.times: Mapping[str, float | None] = {
            GOOD: good, **dict(zip(self.commits, times, strict=True))
        }  # fmt: skip
        self.noise, self.rng = noise, np.random.default_rng(3)
        self.asked: list[tuple[str, str, int]] = []
        self.targets = [cast(Target, FakeTarget("steps: ranks 2", 4))]
        self.repository = SimpleNamespace(
            subject=lambda commit: f"Change {commit[:4]}",
            described=lambda commit: f"{commit[:10]} (Change {commit[:4]})",
        )  # fmt: skip

    def pairs(self, base: str, new: str) -> Any:
        return base, new

    def measure(self, pairs: tuple[str, str], targets: Sequence[Target]) -> list[Measured]:
        shown = []
        for target in targets:
            self.asked.append((*pairs, target.repeats))
            logs = []
            for commit in pairs:
                if (time := self.times[commit]) is None:
                    raise BadCommitError(commit, "fails")
                logs.append(math.log(time) + self.rng.normal(0, self.noise, target.repeats))
            head = {"metric": "step_time", "better": "lower"}
            shown.append(Measured(target, logs[1] - logs[0], head))
        return shown


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_bad, "report", lambda *words: first_bad.say(f"kept: {words[-1]}"))


def searched(times: Sequence[float | None], noise: float = 0.002, good: float = 1.0) -> FakeSession:
    session = FakeSession(times, noise, good)
    find(cast(AbSession, session), GOOD, session.commits)
    return session


def test_every_culprit_is_named_in_about_log2_looks() -> None:
    for commits in (1, 2, 3, 7, 8, 33):
        for culprit in range(commits):
            looks: list[int] = []

            def look(place: int, seen: list[int] = looks, first: int = culprit) -> tuple[int, str]:
                seen.append(place)
                return (1 if place >= first else -1), ""

            assert search(commits, look) == (culprit - 1, culprit, {})
            assert len(looks) <= math.ceil(math.log2(commits))


def test_a_commit_that_fails_is_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    searched([1.0, 1.0, None, 1.1, 1.1, 1.1])
    said = capsys.readouterr().out.splitlines()
    assert "skipped: 0002cccccc (Change 0002): 0002cccccc: fails" in said
    assert "first bad commit: one of 2, after 0001cccccc:" in said and said[-1] == "kept: False"


def test_what_cannot_be_told_ends_between_two_commits(capsys: pytest.CaptureFixture[str]) -> None:
    """A commit right at the bound gets twice the repeats, twice, and is left out then."""
    session = searched([1.0, 1.0488, 1.1], 0.02)
    looks = [repeats for _, new, repeats in session.asked if new == session.commits[1]]
    assert looks == [4 << n for n in range(LOOKS)]
    said = capsys.readouterr().out
    assert "cannot be told" in said and "first bad commit: one of 2, after 0000" in said


@pytest.mark.parametrize("good", [1.0, 1.2])
def test_without_a_step_there_is_nothing_to_search_for(good: float) -> None:
    with pytest.raises(UserError, match="is not shown to be worse than GOOD good000000 by more"):
        searched([1.0, 1.0, 1.0], good=good)
