"""Profiled runs: which there are, where they lie, and what is read from what they leave."""

import cProfile
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalesweep.aspects.profiles.functions import MAX_FUNCTIONS, function_rows
from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.core.errors import UserError
from scalesweep.core.record import write_record
from scalesweep.planning.plan import build_plan, kept_profiles
from scalesweep.planning.plan_text import plan_text
from scalesweep.smk.config_keys import read_options
from scalesweep.state.run_state import scan
from scalesweep.table.declared import frame_of
from tests.fakes.records import make_record
from tests.fakes.table_inputs import of_files

Load = Callable[[str], Campaign]
BODY = "axes: {ranks: [1, 2]}\nrepeats: 3\n"


def record_of(run_id: str, kind: str | None = None, files: list[str] | None = None) -> Any:
    record = make_record(run_id, benchmark="toy", point={"ranks": 1}, site="toy", wall_s=1.0)
    return record if kind is None else {**record, "profile": {"kind": kind, "files": files or []}}


def test_the_override_names_a_kind_or_none(toy: Path, campaign_of: Load) -> None:
    asked = campaign_of(BODY + "profile: cprofile\n")
    assert not load_campaign(asked.file, profile="none").experiments[0].profiles
    other = load_campaign(asked.file, profile="horovod_timeline")
    assert {run.profile for run in other.experiments[0].profiles} == {"horovod_timeline"}
    # Whether profiles are asked for belongs to the state that a report is made of.
    assert len({asked.digest, other.digest}) == 2
    with pytest.raises(UserError, match=r"--config profile=perf: allowed: none, c"):
        read_options({"profile": "perf"})


def test_a_foreign_program_has_horovods_timeline_only(toy: Path, campaign_of: Load) -> None:
    path = toy / "benchmarks" / "toy" / "benchmark.yaml"
    path.write_text(path.read_text().replace("result: native", "result: wall_time"))
    with pytest.raises(UserError, match=r"experiments\.e\.profile: .* has no 'cprofile'; allowed:"):
        campaign_of("profile: cprofile\n")
    assert campaign_of("profile: horovod_timeline\n").experiments[0].profiles


def profiled(campaign: Campaign, run: int = 0) -> Path:
    """Leave a cProfile of two ranks as a profiled run does; returns the run's folder."""
    experiment = campaign.experiments[0]
    folder = campaign.runs_folder / f"{experiment.runs[run].run_id}.cprofile"
    files = []
    for rank in range(2):
        with cProfile.Profile() as profile:
            for _ in range(50 * (rank + 1)):
                json.dumps({"a": [1, 2, 3]}, sort_keys=True)
        path = folder / "attempt-1" / "profile" / f"rank{rank}.prof"
        path.parent.mkdir(parents=True, exist_ok=True)
        profile.dump_stats(path)
        files.append(f"profile/{path.name}")
    write_record(folder, record_of(experiment.runs[run].run_id, "cprofile", files))
    return folder


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def campaign(campaign_of: Load) -> Campaign:
    return campaign_of(BODY + "profile: cprofile\n")


def plan_of(campaign: Campaign) -> dict[str, Any]:
    runs = campaign.unique_runs()
    states = scan(campaign.runs_folder, runs)
    return build_plan(campaign, {**kept_profiles(campaign, runs), **states})


def test_the_plan_has_profiles_beside_the_runs(campaign: Campaign) -> None:
    profiled(campaign)
    (entry,) = plan_of(campaign)["experiments"]
    assert [run["status"] for run in entry["profiles"]] == ["done", "new"]
    assert len(entry["runs"]) == 6
    told = "profiled with cprofile: 2 runs more, 1 done, 0 failed, 1 new"
    assert told in plan_text(plan_of(campaign))
    # Not asked for any more, those that are there stay in sight.
    (entry,) = plan_of(load_campaign(campaign.file, profile="none"))["experiments"]
    assert [run["status"] for run in entry["profiles"]] == ["done"]


def test_a_failed_profile_is_run_again_only_if_it_is_asked_for(campaign_of: Load) -> None:
    asked = campaign_of("axes: {ranks: [1]}\nprofile: cprofile\n")
    (measured,) = asked.experiments[0].runs
    write_record(asked.runs_folder / measured.run_id, record_of(measured.run_id))
    folder = asked.runs_folder / f"{measured.run_id}.cprofile"
    folder.mkdir()
    (folder / "failure.json").write_text('{"cause": "TIMEOUT", "detail": "too slow"}')
    assert "remaining time" in plan_text(plan_of(asked))
    text = plan_text(plan_of(load_campaign(asked.file, profile="none")))
    assert "remaining time" not in text
    assert "profiled with cprofile: 1 run more, 0 done, 1 failed" in text


def test_functions_are_means_over_ranks(campaign: Campaign) -> None:
    profiled(campaign)
    (entry,) = plan_of(campaign)["experiments"]
    table = frame_of(function_rows(of_files(entry, campaign.runs_folder)))
    assert len(table) <= MAX_FUNCTIONS
    assert table[["ranks", "profiled_ranks"]].drop_duplicates().to_numpy().tolist() == [[1, 2]]
    row = table[table["function"] == "dumps"].iloc[0]
    assert row["calls"] == 75.0  # 50 on one rank, 100 on the other
    assert row["place"].startswith("json/__init__.py:")
    assert table["own_s"].is_monotonic_decreasing
    assert 0 < table["share"].sum() <= 1 + 1e-9
    assert (table["total_s"] >= table["own_s"] - 1e-12).all()


def test_a_run_whose_profile_is_cut_is_left_out(campaign: Campaign) -> None:
    os.truncate(profiled(campaign) / "attempt-1" / "profile" / "rank1.prof", 200)
    (entry,) = plan_of(campaign)["experiments"]
    unread: list[str] = []
    assert not list(function_rows(of_files(entry, campaign.runs_folder, unread)))
    assert unread == [entry["profiles"][0]["run_id"]]
