"""Components of a point over its sessions, and speedup: where numbers are, and where not."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from scalesweep.analysis.stats import mean_interval, ratio_interval
from scalesweep.analysis.verdicts import REGRESSION
from scalesweep.config.history_settings import HistorySettings
from scalesweep.core.files import canonical_json
from scalesweep.history.components import Component, PointComponents
from scalesweep.history.judged import History, read_history
from scalesweep.history.run import write_history
from scalesweep.history.series_head import POINT
from scalesweep.history.speedups import Speedup, speedups_of
from scalesweep.history.store import SESSIONS, append
from scalesweep.history.views import views_of
from tests.fakes.history import FakeSession, make_session

THREE = [1.0, 1.1, 1.2]


def read(folder: Path, *fakes: FakeSession) -> History:
    append(folder, map(make_session, fakes))
    return read_history(folder)


def components(history: History, label: str = "p") -> PointComponents:
    (series,) = (series for series in history.series if series.label == label)
    assert history.components is not None
    point = history.components.of(tuple(getattr(series, name) for name in POINT))
    assert point is not None
    return point


def named(point: PointComponents, title: str) -> Component:
    (component,) = (component for component in point.components if component.title == title)
    return component


def shares(point: PointComponents, title: str) -> list[float]:
    component = named(point, title)
    assert component.shares is not None
    return [float(value) for value in component.shares[0]]


def test_parts_are_shares_of_their_run_with_intervals(tmp_path: Path) -> None:
    parts = [{"mpi": mpi, "other": 100.0 - mpi} for mpi in (10.0, 12.0, 14.0)]
    point = components(read(tmp_path, FakeSession(0, {"p": THREE}, parts=parts)))
    mpi = named(point, "mpi")
    expected = mean_interval([0.1, 0.12, 0.14])
    assert mpi.shares is not None
    assert mpi.shares[:, 0] == pytest.approx([0.12, expected.low, expected.high])
    assert mpi.values[0, 0] == pytest.approx(12.0) and mpi.unit == "s"
    time = named(point, "step_time")
    assert time.shares is None and time.values[0, 0] == pytest.approx(1.1) and time.main
    # What takes most comes first among the parts.
    assert [component.title for component in point.components] == ["step_time", "other", "mpi"]


def test_a_part_is_zero_in_a_run_and_unknown_in_a_session(tmp_path: Path) -> None:
    """A profile lists what took time; a renamed function is no 0 % of the commits before."""
    whole = {"mpi": 20.0, "gemm": 80.0}
    fakes = [
        FakeSession(0, {"p": THREE}, parts=[whole, whole, {"gemm": 100.0}]),
        FakeSession(1, {"p": THREE}, parts=[{"mpi": 0.0, "matmul": 100.0}] * 3),
        FakeSession(2, {"p": THREE}),  # without a profile
    ]
    point = components(read(tmp_path, *fakes))
    np.testing.assert_allclose(shares(point, "mpi"), [0.4 / 3, 0.0, np.nan])
    np.testing.assert_allclose(shares(point, "gemm"), [2.6 / 3, np.nan, np.nan])
    np.testing.assert_allclose(shares(point, "matmul"), [np.nan, 1.0, np.nan])
    mpi = named(point, "mpi").shares
    assert mpi is not None and mpi[1, 0] == 0.0 and mpi[2, 0] <= 1.0  # an interval of a share
    # One profile leaves an interval open, and identical ones do.
    assert np.isnan(mpi[1:, 1]).all()
    history = read(tmp_path / "single", FakeSession(0, {"p": [1.0]}, parts=[whole]))
    assert np.isnan(named(components(history), "mpi").values[1:]).all()
    assert all(series.metric == "step_time" for series in history.series)  # no verdict on parts


def with_rows(fake: FakeSession, **changes: Any) -> Any:
    """A session whose rows of a kind (``kind``) have other values."""
    session, kind = make_session(fake), changes.pop("kind")
    for rows in session.rows.values():
        for row in rows:
            if row["kind"] == kind:
                dict.update(row, changes)
    return session


def test_forms_of_accounts_and_tools_are_apart(tmp_path: Path) -> None:
    """Milliseconds of a step and of an epoch are two quantities; so are parts of two profilers."""
    ledger = {"compute": 800.0, "transfer": 150.0, "barrier": 0.1, "elapsed": 1000.0}
    fake = FakeSession(0, {"p": THREE}, ledger=ledger, parts=[{"mpi": 1.0, "other": 1.0}] * 3)
    epochs = with_rows(replace(fake, day=1, parts=()), kind="ledger", phase="epochs")
    nsys = with_rows(replace(fake, day=2, ledger={}), kind="part", phase="profile of nsys")
    append(tmp_path, [make_session(fake), epochs, nsys])
    point = components(read_history(tmp_path))
    titles = [component.title for component in point.components]
    assert titles[:1] == ["step_time"] and "Barrier (by step)" not in titles  # 0.01 % of a step
    np.testing.assert_allclose(shares(point, "Transfer (by step)"), [0.15, np.nan, np.nan])
    np.testing.assert_allclose(shares(point, "Transfer (by epoch)"), [np.nan, 0.15, np.nan])
    # Terms have names such as computation too: parts say of which profile they are.
    alone = components(read(tmp_path / "alone", replace(fake, day=5)))
    assert shares(alone, "mpi (run)") == [0.5] and shares(alone, "Transfer") == [0.15]
    np.testing.assert_allclose(shares(point, "mpi (run)"), [0.5, np.nan, np.nan])
    np.testing.assert_allclose(shares(point, "mpi (profile of nsys)"), [np.nan, np.nan, 0.5])


def test_stated_shares_count(tmp_path: Path) -> None:
    """Phases of a timeline overlap: their times add up to more than the step."""
    fake = FakeSession(0, {"p": [1.0]}, parts=[{"queue": 6.0, "exchange": 9.0}])
    session = with_rows(fake, kind="part", unit="ms", phase="timeline")
    for rows in session.rows.values():
        parts = [row for row in rows if row["kind"] == "part"]
        rows += [{**row, "unit": "1", "value": row["value"] / 10} for row in parts]
    append(tmp_path, [session])
    point = components(read_history(tmp_path))
    assert shares(point, "exchange") == [0.9] and shares(point, "queue") == [0.6]
    assert named(point, "queue").unit == "ms" and named(point, "queue").values[0, 0] == 6.0


def test_the_breakdowns_of_a_verdict_are_of_the_same_form(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sessions = []
    for day in range(11):
        level = 1.0 if day < 8 else 1.2
        values = list(level * np.exp(rng.normal(0, 0.005, 3)))
        fake = FakeSession(day, {"p": values}, ledger={"compute": 900.0, "elapsed": 1000.0})
        form = "epochs" if day >= 8 else "steps"
        sessions.append(with_rows(fake, kind="ledger", phase=form))
    append(tmp_path, sessions)
    (series,) = read_history(tmp_path).series
    assert series.verdict.kind == REGRESSION and series.ledger == {}


def speedups(*fakes: FakeSession, folder: Path) -> list[Speedup]:
    return speedups_of(read(folder, *fakes).series)


@pytest.mark.parametrize(
    ("scaling", "ideal", "speedup", "ideals"),
    [
        ("weak", "time", 4 / 1.25, [4.0]),
        ("strong", "time", 1 / 1.25, [4.0]),
        ("none", "time", 1 / 1.25, [None]),  # nobody says how the work grows
        ("weak", "total", 1.25, [4.0]),
        ("strong", "rank", 4 * 1.25, [4.0]),
    ],
)
def test_speedup_is_of_the_session_itself(
    tmp_path: Path, scaling: str, ideal: str, speedup: float, ideals: Sequence[float | None]
) -> None:
    points = {"ranks 1": [0.99, 1.0, 1.01], "ranks 4": [1.24, 1.25, 1.26]}
    fake = FakeSession(0, points, scaling=scaling, ideal=ideal)
    (made,) = speedups(fake, folder=tmp_path)
    assert (made.base, made.counts, made.ideals, made.scale) == (1, [4], ideals, "ranks")
    sides = [points["ranks 1"], points["ranks 4"]]
    top, bottom = sides if ideal == "time" else sides[::-1]
    bounds = ratio_interval(top, bottom, speedup * float(np.mean(bottom) / np.mean(top)))
    assert made.values[0][:, 0] == pytest.approx([speedup, bounds.low, bounds.high])


def test_all_sessions_are_held_against_the_same_count(tmp_path: Path) -> None:
    """A base that changed from session to session would look like a change of scaling."""
    every = {"ranks 1": THREE, "ranks 2": THREE, "ranks 4": THREE}
    less = {label: values for label, values in every.items() if label != "ranks 1"}
    (made,) = speedups(FakeSession(0, every), FakeSession(1, less), FakeSession(2, every),
                       folder=tmp_path)  # fmt: skip
    assert made.base == 1 and [session.commit[:4] for session in made.sessions] == ["0000", "0002"]
    # The newest one has no single rank any more.
    (made,) = speedups(FakeSession(3, less), folder=tmp_path)
    assert made.base == 2 and made.counts == [4] and len(made.sessions) == 4
    # Points that share nothing, or are alone, have none.
    folder = tmp_path / "apart"
    assert speedups(FakeSession(0, {"ranks 1": THREE}), FakeSession(1, {"ranks 2": THREE}),
                    folder=folder) == []  # fmt: skip
    zero = FakeSession(0, {"ranks 1": [0.0], "ranks 2": [1.0]})
    assert speedups(zero, folder=tmp_path / "zero") == []


def test_sessions_of_before_are_read_and_get_the_series_of_later_ones(tmp_path: Path) -> None:
    points = {"ranks 1": THREE, "ranks 2": THREE}
    (path,) = append(tmp_path, [make_session(FakeSession(0, points, ledger={"elapsed": 1.0}))])
    table = pq.ParquetFile(path).read()
    pq.write_table(table.drop_columns(["series", "ideal"]), path)
    history = read_history(tmp_path)
    assert len(history.series) == 2 and not history.broken and speedups_of(history.series) == []
    assert components(history, "ranks 1").components
    (made,) = speedups(FakeSession(1, points), folder=tmp_path)
    assert len(made.sessions) == 2 and np.isfinite(made.values[0]).all()
    assert len(list((tmp_path / SESSIONS).iterdir())) == 2


def test_the_page_holds_few_of_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scalesweep.history.page.MAX_FIGURES", 0)
    points = {f"ranks {count}": THREE for count in (1, 2, 4)}
    fakes = [FakeSession(day, points, parts=[{"mpi": 1.0, "other": 3.0}] * 3) for day in range(3)]
    append(tmp_path, map(make_session, fakes))
    history = write_history(HistorySettings(tmp_path))
    table = pd.read_csv(tmp_path / "tables" / "components.csv")
    assert len(table) == 3 * 3 * 3 and set(table["component"]) == {"step_time", "mpi", "other"}
    assert table.query("component == 'mpi'")["share"].tolist() == [0.25] * 9
    table = pd.read_csv(tmp_path / "tables" / "speedups.csv")
    assert table["speedup"].tolist() == [2.0] * 3 + [4.0] * 3
    assert table["efficiency"].tolist() == [1.0] * 6
    page = (tmp_path / "history.html").read_text()
    assert "Speedup in the first and in the newest session" in page
    assert '"./tables/speedups.csv"' in page and '"./tables/components.csv"' in page
    monkeypatch.setattr("scalesweep.history.views.MOST_VALUES", 1)
    write_history(HistorySettings(tmp_path))
    page = (tmp_path / "history.html").read_text()
    assert "2 points or speedups more without components on this page" in page
    views = views_of(history, history.series)
    assert len(views.points) == len(views.speedups) == 1 and views.left_out == 2
    monkeypatch.setattr("scalesweep.history.views.MOST_SESSIONS", 2)
    ((_, point),) = views_of(history, history.series).points
    assert len(point.sessions) == 2 and point.components[0].values.shape == (3, 2)
    assert canonical_json(["weak", None, {}]) == history.series[0].series
