"""The history: kept once, read whole, judged, and shown on one page."""

import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

from scalesweep.config.campaign_keys import HistorySettings
from scalesweep.core.errors import UserError
from scalesweep.history.page import regressions, write_history
from scalesweep.history.series import History, Line, read_history
from scalesweep.history.store import append, keep_alternate, load, load_alternate
from scalesweep.judge.change import (
    CONFOUNDED,
    IMPROVEMENT,
    INCONCLUSIVE,
    NO_CHANGE,
    REGRESSION,
    TOO_EARLY,
)
from tests.fakes.history import FakeSession, alternate_of, make_history, make_session

pytestmark = pytest.mark.slow
RANKS_2 = {"ranks 2": [1.0, 1.01, 0.99]}


def line(history: History, label: str, site: str = "here") -> Line:
    (chosen,) = [
        one for one in history.judged if (one.head["label"], one.head["site"]) == (label, site)
    ]
    return chosen


def verdict(history: History, label: str, site: str = "here") -> str:
    return line(history, label, site).change.verdict


def test_appending_twice_adds_nothing_and_a_session_grows(tmp_path: Path) -> None:
    session = make_session(FakeSession(0, RANKS_2))
    assert len(append(tmp_path, session)) == 1 and append(tmp_path, session) == []
    more = make_session(FakeSession(0, RANKS_2 | {"ranks 4": [1.0]}))
    assert len(append(tmp_path, more)) == 1
    rows = load(tmp_path)
    assert len(rows) == 4 and rows["session"].nunique() == 1
    # Another file of the same age, imported into the same folder.
    assert len(append(tmp_path, more.assign(read_from="x"))) == 1
    assert load(tmp_path)["session"].nunique() == 2
    assert not [path for path in (tmp_path / "sessions").iterdir() if path.name[0] == "."]


def test_two_writers_lose_no_session(tmp_path: Path) -> None:
    sessions = [make_session(FakeSession(day, RANKS_2)) for day in range(12)]
    with ProcessPoolExecutor(4) as pool:
        list(pool.map(append, [tmp_path] * 12, [pd.concat(sessions[: n + 1]) for n in range(12)]))
    rows = load(tmp_path)
    assert rows["session"].nunique() == 12 and len(rows) == 36  # each run once


def test_a_damaged_file_is_named_and_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, _ = append(tmp_path, pd.concat(make_session(FakeSession(n, RANKS_2)) for n in (0, 1)))
    first.write_bytes(first.read_bytes()[:200])
    assert len(load(tmp_path)) == 3 and f"{first.name}: cannot be read" in caplog.text
    with pytest.raises(UserError, match="no history"):
        load(tmp_path / "none")


def test_verdicts_of_a_history(tmp_path: Path) -> None:
    make_history(tmp_path, 20)
    history = read_history(HistorySettings(folder=tmp_path))
    assert verdict(history, "ranks 2") == REGRESSION
    assert line(history, "ranks 2").since == "0009cccccc..0010cccccc"
    assert verdict(history, "ranks 8") == CONFOUNDED
    assert "horovod (0.28.1 → 0.28.2)" in line(history, "ranks 8").change.reason
    assert verdict(history, "ranks 4") == NO_CHANGE  # with a single spike
    assert list(line(history, "ranks 4").levels.spikes) == [5]  # type: ignore[union-attr]
    assert verdict(history, "ranks 16") == INCONCLUSIVE
    assert verdict(history, "ranks 1", "new") == TOO_EARLY
    assert verdict(history, "ranks 1", "gpus") == NO_CHANGE
    places = {(one.head["site"], one.head["place"]) for one in history.judged}
    assert {("gpus", "b on gpus, GPU, strong scaling"), ("new", "b on new, weak scaling")} < places


def test_terms_are_lines_of_the_same_table(tmp_path: Path) -> None:
    make_history(tmp_path, 20)
    write_history(HistorySettings(folder=tmp_path))
    values = pd.read_csv(tmp_path / "tables" / "values.csv")
    transfer = values.query("label == 'ranks 2' and metric == 'Transfer'")
    assert transfer["mean"].unique().tolist() == [50.0]
    assert transfer["share"].tolist()[0] == pytest.approx(50 / 950)
    data = json.loads(
        (tmp_path / "history.html").read_text().split('id="history-data">')[1].split("</script>")[0]
    )
    first = data["points"][0]
    assert first["title"].endswith("ranks 2") and first["lines"][0]["verdict"] == REGRESSION
    kinds = {one["kind"] for one in first["lines"]}
    assert kinds == {"metric", "term"}


def test_parts_of_profiles(tmp_path: Path) -> None:
    """A part that a run lacks took none in it; of a session without it nothing is shown."""
    parts = [{"MPI": 2.0, "copies": 6.0}, {"copies": 8.0}]
    for day in range(3):
        fake = FakeSession(day, {"ranks 2": [1.0, 1.01]}, parts=parts if day else parts[1:] * 2)
        append(tmp_path, make_session(fake))
    history = read_history(HistorySettings(folder=tmp_path))
    values = history.values.set_index("metric")
    mpi, copies = values.loc["MPI"], values.loc["copies"]
    assert mpi["mean"].tolist() == [1.0, 1.0] and len(copies) == 3
    assert mpi["share"].tolist() == [1 / 8, 1 / 8] and copies["share"].iloc[1] == 7 / 8


def test_a_baseline_is_a_commit_or_tag(tmp_path: Path) -> None:
    make_history(tmp_path, 20)
    for name in ("v1.0", "0003"):
        history = read_history(HistorySettings(folder=tmp_path, baseline=name))
        change = line(history, "ranks 2").change
        assert list(change.base) == [3] and change.ratio > 1.05
    with pytest.raises(UserError, match="baseline 'v9': no session"):
        read_history(HistorySettings(folder=tmp_path, baseline="v9"))


@pytest.mark.parametrize(
    ("shown", "ratio", "label", "verdict_after"),
    [
        (NO_CHANGE, 1.0, "ranks 2", CONFOUNDED),
        (REGRESSION, 1.1, "ranks 2", REGRESSION),
        (IMPROVEMENT, 0.9, "ranks 8", IMPROVEMENT),  # confounded by Horovod before
        (INCONCLUSIVE, 1.01, "ranks 2", REGRESSION),
    ],
)
def test_commits_measured_alternately_decide(
    tmp_path: Path, shown: str, ratio: float, label: str, verdict_after: str
) -> None:
    make_history(tmp_path, 20)
    step = (9, 10) if label == "ranks 2" else (7, 8)
    keep_alternate(tmp_path, alternate_of(*step, shown, ratio, label))
    assert verdict(read_history(HistorySettings(folder=tmp_path)), label) == verdict_after


def test_of_pairs_that_were_added_the_first_verdict_goes(tmp_path: Path) -> None:
    first = alternate_of(9, 10)
    for more in (first.assign(pairs=9, verdict=INCONCLUSIVE), first):
        keep_alternate(tmp_path, more)
    assert load_alternate(tmp_path)["verdict"].tolist() == [INCONCLUSIVE]


def test_what_no_session_has_yet_is_a_regression_too(tmp_path: Path) -> None:
    make_history(tmp_path, 20)
    for _ in range(2):
        keep_alternate(tmp_path, alternate_of(19, 25))
    assert len(load_alternate(tmp_path)) == 1
    (tmp_path / "alternate" / "x.parquet").write_text("{")
    told = regressions(read_history(HistorySettings(folder=tmp_path)))
    assert len(told) == 2 and "from 0019cccccc to 0025cccccc (Change 25)" in told[1]


def test_sessions_are_in_the_order_of_their_commits(tmp_path: Path) -> None:
    fakes = [FakeSession(day, RANKS_2) for day in (5, 3, 4)]
    append(tmp_path, pd.concat(map(make_session, fakes)))
    history = read_history(HistorySettings(folder=tmp_path))
    assert line(history, "ranks 2").rows["name"].str[:4].tolist() == ["0003", "0004", "0005"]
