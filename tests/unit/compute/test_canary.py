"""The canary: run before and after a program, kept in the record, and never its failure."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from scalesweep.compute import canary
from scalesweep.compute.launcher import launch
from scalesweep.config.campaign import load_campaign
from scalesweep.core.paths import CANARY, REPO
from scalesweep.core.record import read_record
from scalesweep.jobs.run_spec import run_spec
from scalesweep.planning.plan import build_plan
from scalesweep.planning.plan_text import plan_text
from scalesweep.state.stock import take_stock
from tests.fakes.toy_run import spec


def watched(
    folder: Path, argv: list[str], behaviour: str = "good", results: int = 4, **more: Any
) -> dict[str, Any]:
    """A run between two looks at its machine."""
    return spec(folder, behaviour, canary={"argv": argv, "results": results, **more})


def record(folder: Path) -> dict[str, Any]:
    return read_record(folder / "toy-r2-0123456789ab" / "record.json")


@pytest.mark.slow
def test_two_ranks_look_before_and_after(tmp_path: Path) -> None:
    words = [sys.executable, str(CANARY), "--out", "{out}", "--workers", "2", "--seconds", "0.01"]
    both = ["bash", "-c", '"$@" & "$@" & wait', "-", *words]
    began = time.monotonic()
    assert launch(watched(tmp_path, both), REPO) == 0
    took, found = time.monotonic() - began, record(tmp_path)
    assert found["canary"].keys() == {"before", "after"}
    for look in found["canary"].values():
        assert len(look["hosts"]) == len(look["compute"]) == len(look["memory"]) == 1
        assert look["compute"][0] > 1e8 and look["memory"][0] > 1e7
        assert look["seconds"] > 0
    # The time of the run is its own.
    assert found["wall_s"] + sum(look["seconds"] for look in found["canary"].values()) < took
    work = tmp_path / "toy-r2-0123456789ab" / "attempt-1"
    assert sorted(path.name for path in work.glob("canary*")) == [
        "canary-after.log", "canary-before.log",
    ]  # fmt: skip


def leaves(*files: dict[str, Any], ends: str = "") -> list[str]:
    """A program that leaves such files, and then does what ``ends`` says."""
    made = [f"echo '{json.dumps(one)}' > {{out}}/{n}.json" for n, one in enumerate(files)]
    return ["bash", "-c", "; ".join(["mkdir {out}", *made, ends or "true"])]


RATES = {"compute": 3.0, "memory": 2.0}


def test_rates_of_processes_are_added_up_by_host(tmp_path: Path) -> None:
    argv = leaves({"host": "b", **RATES}, {"host": "a", **RATES}, {"host": "a", **RATES})
    assert launch(watched(tmp_path, argv, results=3), REPO) == 0
    look = record(tmp_path)["canary"]["before"]
    assert look.pop("seconds") > 0
    assert look == {"hosts": ["a", "b"], "compute": [6.0, 3.0], "memory": [4.0, 2.0]}


@pytest.mark.parametrize(
    ("argv", "missing"),
    [
        (["false"], "exit code 1"),
        (["no-such-program-here"], "cannot start no-such-program-here: No such file or directory"),
        (["sleep", "60"], "took longer than 0.2 s"),
        (["bash", "-c", "mkdir {out}; echo '{\"host\": 1}' > {out}/a.json"], "0 of 4 processes"),
    ],
)
def test_a_canary_that_fails_is_no_failure_of_the_run(
    tmp_path: Path, argv: list[str], missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canary, "LIMIT_S", 0.2 if argv[0] == "sleep" else 60)
    assert launch(watched(tmp_path, argv), REPO) == 0
    found = record(tmp_path)["canary"]
    assert missing in found["before"]["missing"] and missing in found["after"]["missing"]


def test_a_run_that_fails_is_not_followed_by_one(tmp_path: Path) -> None:
    assert launch(watched(tmp_path, ["true"], "exit3"), REPO) == 1
    work = tmp_path / "toy-r2-0123456789ab" / "attempt-1"
    assert (work / "canary-before.log").exists() and not (work / "canary-after.log").exists()


CAMPAIGN = """
campaign: c
site: local
{more}
experiments:
  e: {{benchmark: data_loading, fixed: {{batch_size: 4}}}}
"""


def test_a_campaign_asks_for_it_and_no_run_id_changes(tmp_path: Path) -> None:
    path, loaded = tmp_path / "c.yaml", []
    for more in ("canary: true", ""):
        path.write_text(CAMPAIGN.format(more=more))
        loaded.append(load_campaign(path, results=str(tmp_path / "results")))
    campaign, plain = loaded
    assert campaign.unique_runs().keys() == plain.unique_runs().keys()
    run = campaign.experiments[0].runs[0]
    order = run_spec(campaign, campaign.experiments[0], run)
    without = run_spec(plain, plain.experiments[0], run)
    assert "canary" not in without
    assert {name: value for name, value in order.items() if name != "canary"} == without
    words = order["canary"]["argv"]
    cores = campaign.site.cores_per_node
    ours = [campaign.site.python, str(CANARY), "--out", "{out}", "--workers", str(cores)]
    assert words[-len(ours) :] == ours
    assert order["canary"] == {"argv": words, "results": cores}
    assert words[: -len(ours)] == order["argv"][: len(words) - len(ours)]  # as the program is
    text = plan_text(build_plan(campaign, take_stock(campaign, campaign.unique_runs())))
    assert "canary: up to 10 s more for each of 1 run, 10 s in all" in text
