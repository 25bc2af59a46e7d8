"""What of a campaign becomes a session, and of which commit its runs are."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from scalesweep.analysis.table_io import read_table, write_parquet
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign_keys import HistorySettings, TrackKeys
from scalesweep.core.paths import BENCHMARKS
from scalesweep.history import session
from scalesweep.history.session import sessions_of, usable_record
from scalesweep.history.store import SCHEMA
from scalesweep.history.tracked import UNTRACKED, Tracked, tracked_of
from tests.fakes.results import SITE, Fake, make_results
from tests.fakes.tracked import commit, git

SHIPPED = cast(Benchmark, SimpleNamespace(folder=BENCHMARKS / "data_loading", extract=None))
FOREIGN = cast(Benchmark, SimpleNamespace(folder=BENCHMARKS / "tf_cnn", extract=object()))
GIT = {"commit": "a" * 40, "dirty": True}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    commit(folder, "First", GIT_COMMITTER_DATE="2026-01-02T03:04:05+00:00")
    git(folder, "tag", "v1")
    return folder


def record_of(path: Path | None = None, **more: Any) -> Mapping[str, Any]:
    files = {"main": {"path": str(path), "git": GIT}} if path else {}
    return {"program": {"files": files}, "started": "2026-02-01T00:00:00+00:00", **more}


def test_the_program_decides_whose_commit_counts(repository: Path, tmp_path: Path) -> None:
    own = record_of(git={"commit": "b" * 40, "dirty": False}, study={**GIT, "commit": "c" * 40})
    assert tracked_of(own, SHIPPED, None).commit == "b" * 40
    study = cast(Benchmark, SimpleNamespace(folder=tmp_path, extract=None))
    assert tracked_of(own, study, None).commit == "c" * 40
    assert tracked_of(own, FOREIGN, None) == UNTRACKED
    found = tracked_of(record_of(repository / "main.py"), FOREIGN, None)
    assert (found.commit, found.dirty, found.repository) == ("a" * 40, True, str(repository))


def test_a_named_repository_counts_if_it_has_not_moved(repository: Path, tmp_path: Path) -> None:
    found = tracked_of(record_of(), SHIPPED, repository)
    assert (found.subject, found.tags, found.dirty) == ("First", "v1", False)
    assert found.time.startswith("2026-01-02T03:04:05") and len(found.commit) == 40
    early: dict[str, Any] = {"started": "2026-01-01T00:00:00+00:00"}
    assert tracked_of(record_of(**early), SHIPPED, repository) == UNTRACKED
    # What the record says of a program in it is sure.
    inside = record_of(repository / "x.py", **early)
    assert tracked_of(inside, FOREIGN, repository).commit == "a" * 40
    assert tracked_of(record_of(), SHIPPED, tmp_path) == UNTRACKED  # no repository


def test_finished_runs_become_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_results(tmp_path / "results", [Fake("io", {"ranks": [1, 2]})], "study")
    summary = tmp_path / "results" / "summary.parquet"
    frame = read_table(summary)
    frame["_parts"] = '{"mpi": 1.5, "other": 0}'
    frame["_load"] = ["0.0"] * (len(frame) - 1) + ["0.5"]
    write_parquet(frame, summary, {})
    io = SimpleNamespace(name="data_loading", folder=SHIPPED.folder, extract=None, framework=None)
    campaign: Any = SimpleNamespace(
        name="study", results=tmp_path / "results",
        history=HistorySettings(folder=tmp_path / "kept"),
        keys=SimpleNamespace(track=TrackKeys()),
        experiments=[SimpleNamespace(name="io", benchmark=io)],
        site=SimpleNamespace(name=SITE, launch=None, launch_for=lambda _: {}),
        runs_folder=tmp_path / "results" / "runs" / SITE,
    )  # fmt: skip
    frame = sessions_of(campaign)
    rows = frame.to_dict("records")
    assert list(frame) == SCHEMA.names and frame["run_id"].notna().all()
    assert frame["run_id"].nunique() == 2 * 3 - 1  # others disturbed the last one
    parts = {(row["metric"], row["value"], row["unit"]) for row in rows if row["kind"] == "part"}
    assert parts == {("mpi", 1.5, "s"), ("other", 0.0, "s")}
    # Speedups are those of the campaign's tables, with their intervals.
    own = frame[frame["kind"] == "speedup"].set_index("metric")
    speedup = own[own["phase"] == "later"].loc["speedup of total_throughput, ranks 1 = 1"]
    assert speedup["label"] == "ranks 2" and speedup["low"] < speedup["value"] < speedup["high"]
    assert speedup["share"] == pytest.approx(speedup["value"] / 2)
    judged = {(row["metric"], row["phase"]) for row in rows if row["judged"]}
    assert ("total_throughput", "later") in judged and ("total_throughput", "init") not in judged
    assert {row["label"] for row in rows} == {"ranks 1", "ranks 2"}
    assert {row["workers"] for row in rows} == {1, 2} and {row["device"] for row in rows} == {"cpu"}
    assert set(frame["read_from"]) == {""}
    # Imports of one file's age are told apart by what they were read from, and of which commit.
    # None says that it was a CPU.
    told = set[tuple[str, str]]()
    for number in range(4):
        notes = {"source_blake2b": f"{number % 2}", "variant": {"GPU": "H100"} if number else {}}
        record = {"source": "imported", "notes": notes}
        monkeypatch.setattr(session, "usable_record", lambda it, of=record: usable_record(it) | of)
        monkeypatch.setattr(session, "tracked_of", lambda *_, n=number: Tracked(f"{n // 2}"))
        told |= {*sessions_of(campaign)[["device", "read_from"]].itertuples(False, None)}
    assert sorted(device for device, _ in told) == ["", "gpu", "gpu", "gpu"]
