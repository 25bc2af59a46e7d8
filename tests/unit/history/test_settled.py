"""Verdicts of commits measured alternately: kept, damaged, and what they do to a history's."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scalesweep.analysis.verdicts import (
    CONFOUNDED,
    IMPROVEMENT,
    INCONCLUSIVE,
    NO_CHANGE,
    REGRESSION,
    Verdict,
)
from scalesweep.config.history_settings import HistorySettings
from scalesweep.core.errors import UserError
from scalesweep.core.files import sealed
from scalesweep.history.run import regressions, settled_regressions, write_history
from scalesweep.history.settled import (
    SETTLED,
    Evidence,
    Settled,
    SettledPoint,
    evidence_for,
    keep,
    load_settled,
    with_evidence,
)
from scalesweep.history.store import append
from scalesweep.history.words import line_of, settled_line
from tests.fakes.history import FakeSession, commit_of, make_history, make_session, settled_of
from tests.fakes.pages import bare


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without figures, which take seconds."""
    monkeypatch.setattr("scalesweep.history.page.MAX_FIGURES", 0)


def verdict(kind: str, ratio: float = 1.1) -> Verdict:
    return Verdict(kind, "horovod changed", (0, 1), (2, 3), ratio, ratio - 0.02, ratio + 0.02)


def point(kind: str, ratio: float) -> SettledPoint:
    (found,) = settled_of(9, 10, kind, ratio).points
    return found


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    older, newer = settled_of(9, 10), replace(settled_of(9, 10), started="2026-03-01T00:00:00Z")
    path = keep(tmp_path, older)
    assert keep(tmp_path, older) == path and len(list((tmp_path / SETTLED).iterdir())) == 1
    keep(tmp_path, newer)
    assert load_settled(tmp_path) == ([newer, older], {})
    assert load_settled(tmp_path / "none") == ([], {})


def test_a_damaged_file_is_set_aside_and_a_newer_one_refused(tmp_path: Path) -> None:
    path = keep(tmp_path, settled_of(9, 10))
    text = path.read_text()
    for bad in (text.replace("1.1", "1.2"), text[:50], "", '{"version": 1}\n'):
        path.write_text(bad)
        found, broken = load_settled(tmp_path)
        assert found == [] and [*broken] == [path.name] and not path.exists()
        path.with_name(f"{path.name}.broken").unlink()
    # Well sealed, by somebody else.
    for old, new in {
        '"device": "cpu"': '"device": [1]', '"ratio": 1.1': '"ratio": 1e308',
        '"ratio": 1.1,': '"ratio": "1.1",', '"better": "lower"': '"better": "less"',
        '+00:00"': '"', '"pairs": 5': '"pairs": 5, "more": 1', '"between": 0': '"between": [0]',
    }.items():  # fmt: skip
        value = json.loads(text.replace(old, new))
        assert value != json.loads(text)
        path.write_text(sealed({k: v for k, v in value.items() if k != "digest"}))
        found, broken = load_settled(tmp_path)
        assert found == [] and [*broken] == [path.name], new
        path.with_name(f"{path.name}.broken").unlink()
    path.write_text(sealed({"version": 2, "points": []}))
    with pytest.raises(UserError, match="written by a newer scalesweep"):
        load_settled(tmp_path)


def test_evidence_is_of_both_sides_and_of_the_point() -> None:
    one = settled_of(9, 10)
    key = {"site": "here", "metric": "step_time", "identity": one.points[0].identity}
    base, new = one.base.commit, one.new.commit
    assert evidence_for(key, ["x", base], [new], [one]) == Evidence(one, one.points[0])
    for sides in (([base], ["x"]), (["x"], [new]), ([new], [base])):
        assert evidence_for(key, *sides, [one]) is None
    assert evidence_for({**key, "site": "there"}, [base], [new], [one]) is None


@pytest.mark.parametrize(
    ("before", "shown", "after"),
    [
        (REGRESSION, (REGRESSION, 1.12), REGRESSION),
        (CONFOUNDED, (REGRESSION, 1.12), REGRESSION),
        (CONFOUNDED, (IMPROVEMENT, 0.9), CONFOUNDED),  # the other direction explains nothing
        (CONFOUNDED, (INCONCLUSIVE, 1.1), CONFOUNDED),
        (REGRESSION, (NO_CHANGE, 1.001), CONFOUNDED),
        (INCONCLUSIVE, (REGRESSION, 1.06), REGRESSION),
        (INCONCLUSIVE, (NO_CHANGE, 1.001), NO_CHANGE),
        (NO_CHANGE, (REGRESSION, 1.06), REGRESSION),  # too small, or too new, for sessions
    ],
)
def test_alternate_runs_count_more_than_sessions(
    before: str, shown: tuple[str, float], after: str
) -> None:
    evidence = Evidence(settled_of(9, 10), point(*shown))
    found = with_evidence(verdict(before), evidence)
    assert found.kind == after
    if before in (INCONCLUSIVE, NO_CHANGE):
        assert found.ratio == shown[1]
    if after == CONFOUNDED and shown[0] == NO_CHANGE:
        assert "measured alternately show no change; horovod changed" in found.reason
    assert with_evidence(verdict(before), None) == verdict(before)


def test_the_page_shows_it(tmp_path: Path) -> None:
    make_history(tmp_path)
    # Ranks 2 get slower at the tenth, with nothing else; ranks 8 faster with another Horovod.
    keep(tmp_path, replace(settled_of(9, 10), first_bad=True))
    keep(tmp_path, settled_of(7, 8, NO_CHANGE, 1.001, label="ranks 8"))
    history = write_history(HistorySettings(tmp_path))
    by_label = {one.label: one for one in history.series if one.site == "here"}
    assert by_label["ranks 2"].verdict.kind == REGRESSION and by_label["ranks 2"].evidence
    assert by_label["ranks 8"].verdict.kind == CONFOUNDED
    page = bare((tmp_path / "history.html").read_text())
    assert "measured alternately on 2026-02-01: +10 [8, 12] % in 5 pairs, regression" in page
    assert "The first bad commit is 0010cccccc (Change 10)" in page
    assert 'id="settled"' in page and "new is the first bad commit" in page
    table = pd.read_csv(tmp_path / "tables" / "verdicts.csv").set_index("label")
    assert table.loc["ranks 2", "settled"] == REGRESSION
    assert table.loc["ranks 8", "settled_ratio"] == 1.001


def test_hostile_text_is_escaped(tmp_path: Path) -> None:
    make_history(tmp_path, 2)
    one = settled_of(9, 10, label='"><script>alert(1)</script>')
    keep(tmp_path, Settled(**{**vars(one), "repository": "<b>"}))
    write_history(HistorySettings(tmp_path))
    assert "<script>alert" not in bare((tmp_path / "history.html").read_text())


@pytest.mark.slow
def test_a_verdict_of_settle_counts_at_once(tmp_path: Path) -> None:
    """Before sessions can show it, where they are too few, and where none is of the commit yet."""
    rng = np.random.default_rng(0)
    around = [list(np.exp(rng.normal(0, 0.005, 3))) for _ in range(9)]
    days = [FakeSession(day, {"ranks 2": values}) for day, values in enumerate(around)]
    for count in (9, 2):
        folder = tmp_path / str(count)
        append(folder, map(make_session, days[:count]))
        assert regressions(write_history(HistorySettings(folder))) == []
        keep(folder, settled_of(0, count - 1))
        (worse,) = regressions(write_history(HistorySettings(folder)))
        assert worse.verdict.kind == REGRESSION and worse.verdict.ratio == 1.1
        line = line_of(worse)
        assert f"+10 [8, 12] % against {commit_of(0)[:10]}" in line
        assert "measured alternately on 2026-02-01" in line
        assert settled_regressions(write_history(HistorySettings(folder))) == []
    ahead = tmp_path / "ahead"
    append(ahead, map(make_session, days[:3]))
    keep(ahead, settled_of(2, 5))
    history = write_history(HistorySettings(ahead))
    ((one, point),) = settled_regressions(history)
    assert regressions(history) == []
    assert settled_line(one, point).startswith("regression: b on here, ranks 2: step_time: +10 [")
    # Sessions of later commits have a verdict of their own.
    append(ahead, map(make_session, days[6:8]))
    assert settled_regressions(write_history(HistorySettings(ahead))) == []
    # A newer measurement that shows no change counts instead.
    keep(tmp_path / "9", replace(settled_of(0, 8, NO_CHANGE, 1.0), started="2026-03-01T00:00:00Z"))
    assert regressions(write_history(HistorySettings(tmp_path / "9"))) == []
