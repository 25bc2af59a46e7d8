"""``plan/<experiment>.json`` changes with what its tables are made of, and only then."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalesweep.core.plan_format import read_plan
from scalesweep.report import export_tables
from scalesweep.tables.summary import build_summary
from tests.fakes.training import SITE, Training, make_training


class Campaign:
    """A results folder, of which the plan says what is there."""

    def __init__(self, root: Path) -> None:
        self.root, self.runs = root, root / "runs" / SITE

    def edit(self, change: Callable[[dict[str, Any]], None]) -> None:
        plan = json.loads((self.root / "plan.json").read_text())
        change(plan)
        (self.root / "plan.json").write_text(json.dumps(plan))

    def ids(self, experiment: str) -> list[str]:
        plan = json.loads((self.root / "plan.json").read_text())
        (entry,) = [one for one in plan["experiments"] if one["name"] == experiment]
        return [run["run_id"] for run in entry["runs"]]

    def _states(self, plan: dict[str, Any]) -> None:
        for run in (run for entry in plan["experiments"] for run in entry["runs"]):
            folder = self.runs / run["run_id"]
            failed = (folder / "failure.json").exists()
            run["status"] = "failed" if failed else "new"
            run["status"] = "done" if (folder / "record.json").exists() else run["status"]
            run["cause"] = "TIMEOUT" if failed else ""

    def changed(self) -> str:
        """The experiments whose file has changed by what has happened."""
        before = self._inputs()
        self.edit(self._states)
        plan = read_plan(self.root / "plan.json")
        runs = {r["run_id"]: r for e in plan["experiments"] for r in e["runs"]}
        done = [self.runs / i / "record.json" for i, r in runs.items() if r["status"] == "done"]
        export_tables.note_inputs(build_summary(done), plan, self.runs, self.root)
        return " ".join(
            path.stem for path, when in self._inputs().items() if before.get(path) != when
        )

    def _inputs(self) -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in sorted(self.root.glob("plan/*"))}


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """Three experiments: power in the first, names in the last; the second lacks its last run."""
    make_training(
        tmp_path,
        Training({"ranks": [1, 2]}, "a", repeats=2),
        Training({"ranks": [1, 2]}, "b", repeats=2, watts=lambda point, repeat: None),
        Training({"mode": ["x", "y"]}, "c", repeats=2, watts=lambda point, repeat: None),
    )
    made = Campaign(tmp_path)
    (made.runs / made.ids("b")[-1]).rename(tmp_path / "kept-for-later")
    assert made.changed() == "a b c"
    return made


@pytest.mark.slow
def test_runs_come_go_and_fail(campaign: Campaign) -> None:
    assert campaign.changed() == ""
    new = campaign.runs / campaign.ids("b")[-1]
    (campaign.root / "kept-for-later").rename(new)
    assert campaign.changed() == "b"
    gone = campaign.runs / campaign.ids("c")[0]
    shutil.rmtree(gone)
    assert campaign.changed() == "c"
    gone.mkdir()
    (gone / "failure.json").write_text(json.dumps({"cause": "TIMEOUT", "detail": "made up"}))
    assert campaign.changed() == "c"
    os.utime(campaign.runs / campaign.ids("a")[0] / "power.csv", (1, 1))
    assert campaign.changed() == "a"
    there = campaign.root / "runs" / "there"  # another site
    for run_id in campaign.ids("b")[:2]:
        shutil.copytree(campaign.runs / run_id, there / run_id)
    assert campaign.changed() == "b"
    shutil.rmtree(there)
    assert campaign.changed() == "b"


@pytest.mark.slow
def test_the_campaign_and_the_code_are_edited(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def texts(plan: dict[str, Any]) -> None:
        plan |= {"description": "Another one.", "created": "2026-03-11T12:00:00+00:00"}
        plan["order"] = {"seed": 7, "of": 99}
        for entry in plan["experiments"]:
            entry["estimate"] = {"wall_s": 1.0, "core_hours": 2.0}
            for place, run in enumerate(entry["runs"]):
                run |= {"position": 50 - place, "reused": place == 1, "to_run": False}

    campaign.edit(texts)
    assert campaign.changed() == ""
    campaign.edit(lambda plan: plan["experiments"][2]["parameters"]["mode"].update(unit="m"))
    assert campaign.changed() == "c"
    removed: list[Any] = []
    for name in ("tables", "figures"):
        (campaign.root / name / "b").mkdir(parents=True, exist_ok=True)
    campaign.edit(lambda plan: removed.append(plan["experiments"].pop(1)))
    assert campaign.changed() == ""
    assert not any((campaign.root / name).exists() for name in ("plan/b.json", "tables/b"))
    assert not (campaign.root / "figures" / "b").exists()
    campaign.edit(lambda plan: plan["experiments"].append(removed[0]))
    assert campaign.changed() == "b"
    campaign.edit(lambda plan: plan.update(campaign="renamed"))
    assert campaign.changed() == "a b c"  # for LaTeX
    monkeypatch.setattr(export_tables, "code_digest", lambda *names: "other")
    assert campaign.changed() == "a b c"
