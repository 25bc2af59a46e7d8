"""The first line of a comparison, and what it is about: the commit of the measured program."""

from pathlib import Path

import numpy as np
import pytest

from scalesweep.analysis.multiple import holm_p
from scalesweep.commands.compare import compare
from scalesweep.compare.environment_diff import CODE, Surroundings, _subject, surroundings
from scalesweep.compare.inputs import Side
from scalesweep.compare.matching import join
from scalesweep.compare.significance import IMPROVED, WORSE, changes
from scalesweep.compare.verdict_words import verdict_words
from scalesweep.tables.provenance import PROGRAM, run_facts
from tests.fakes.pages import bare
from tests.fakes.sides import RATE, FakePoint, FakeSide, make_side, rates

RANKS = (1, 2, 4, 8)
SEEDS = {"base": 5, "new": 7}


def side(role: str, factors: dict[int, float], commit: str = "0" * 40, **more: str) -> Side:
    rng = np.random.default_rng(SEEDS[role])
    points = [
        FakePoint(
            {"ranks": ranks},
            rates((100 * factors.get(ranks, 1.0) * np.exp(rng.normal(0, 0.004, 5))).tolist()),
        )
        for ranks in RANKS
    ]
    return make_side(FakeSide(role, points, commit=commit, **more))  # type: ignore[arg-type]


def said(base: Side, new: Side) -> tuple[str, str, Surroundings]:
    joined = join(base, new)
    around = surroundings(joined.both, base, new)
    found, _ = changes(joined.both, base, new)
    text, tag = verdict_words(found, around.subject)
    return text, tag, around


def test_the_new_commit_is_faster_at_so_many_points() -> None:
    text, tag, around = said(side("base", {}), side("new", {1: 1.05, 4: 1.05}, "1" * 40))
    assert tag == "improved"
    assert text.startswith(
        "The new commit (111111111111, against 000000000000) is faster at 2 of 4 "
    )
    assert "] % on average); no clear difference at the other 2 [e, " in text
    assert around.subject is not None and around.subject.kind == CODE
    assert around.of(CODE) == []  # what is compared is no warning


def test_both_ways_and_none() -> None:
    text, tag, _ = said(side("base", {}), side("new", {1: 1.05, 4: 0.9}, "1" * 40))
    assert tag == "both ways"
    assert "is faster at 1 of 4 points (+" in text and "and slower at 1 of 4 points (-" in text
    text, tag, around = said(side("base", {}), side("new", {}))
    assert tag == "unclear" and around.subject is None
    assert text.startswith("No clear difference between the new side and base at any of 4 points: ")


def test_the_commit_of_an_external_program_comes_before_scalesweeps() -> None:
    base, new = side("base", {}), side("new", {}, "1" * 40)
    differences = said(base, new)[2].differences
    assert _subject(differences, ["git commit"]) is not None
    # The program's is known and the same: scalesweep's own is no subject.
    assert _subject(differences, ["git commit", PROGRAM]) is None
    git = {"commit": "a" * 40, "dirty": True}
    facts = run_facts({"program": {"files": {"train.py": {"path": "/x/train.py", "git": git}}}})
    assert (PROGRAM, f"{'a' * 12} with local changes") in facts.environment


@pytest.mark.parametrize("host", ["node1", "node2"])
def test_the_page_begins_with_the_verdict(tmp_path: Path, host: str) -> None:
    base, new = side("base", {}), side("new", {1: 1.05}, "1" * 40, host=host)
    compare(base, new, tmp_path)
    page = bare((tmp_path / "compare.html").read_text())
    verdict = page.index("The new commit (111111111111")
    assert verdict < page.index("4 points on both sides")
    assert "The code differs" not in page
    warned = "Besides the commit, more differs between the sides" in page
    assert warned is (host == "node2")


def test_the_first_line_stands_among_all_points_of_the_experiment() -> None:
    """At 40 points without a change some intervals exclude 1; the line names none of them."""
    rng = np.random.default_rng(4)
    sides = []
    for role in ("base", "new"):
        points = [
            FakePoint({"ranks": n}, rates((100 * np.exp(rng.normal(0, 0.01, 5))).tolist()))
            for n in range(40)
        ]
        sides.append(make_side(FakeSide(role, points)))
    base, new = sides
    found, _ = changes(join(base, new).both, base, new)
    assert any(one.verdict in (IMPROVED, WORSE) for one in found)
    assert verdict_words(found, None)[1] == "unclear"
    assert [one.family for one in found] == pytest.approx(holm_p([one.p for one in found]))


def test_the_family_is_of_the_phase_that_is_shown() -> None:
    rng = np.random.default_rng(0)
    sides = []
    for role, factor in (("base", 1.0), ("new", 1.2)):
        draw = {
            phase: (factor * np.exp(rng.normal(0, 0.01, 5))).tolist() for phase in ("init", "later")
        }
        metrics = {(RATE, phase): values for phase, values in draw.items()}
        sides.append(make_side(FakeSide(role, [FakePoint({"ranks": 1}, metrics)])))
    found, _ = changes(join(*sides).both, *sides)
    assert {one.phase: np.isnan(one.family) for one in found} == {"init": True, "later": False}
    assert next(one for one in found if one.phase == "later").stands


def test_identical_repeats_are_said_to_be_and_their_difference_is_seen() -> None:
    """Three repeats that are identical are no single ones: the difference is there, unjudged."""

    def alike(role: str, last: float) -> Side:
        values = {1: 100.0, 8: last}
        points = [FakePoint({"ranks": n}, rates([v] * 3)) for n, v in values.items()]
        return make_side(FakeSide(role, points))

    text, tag, _ = said(alike("base", 800.0), alike("new", 720.0))
    assert tag == "unclear" and "two or more repeats" not in text
    assert "identical on a side at all 2 points: they have no scatter to judge" in text
    assert "the sides differ at 1 point by -10.0 %, which cannot be judged" in text
    text, _, _ = said(alike("base", 800.0), alike("new", 800.0))
    assert "identical on a side at all 2 points" in text and "differ at" not in text
