"""``plan/<experiment>.json`` changes with what its tables are made of, and only then."""

import json
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

    def run(self, experiment: str, place: int) -> Path:
        entries = read_plan(self.root / "plan.json")["experiments"]
        (entry,) = [each for each in entries if each["name"] == experiment]
        return self.runs / entry["runs"][place]["run_id"]

    def changed(self) -> str:
        """The experiments whose file has changed by what has happened."""

        def look(plan: dict[str, Any]) -> None:
            for run in (run for entry in plan["experiments"] for run in entry["runs"]):
                folder = self.runs / run["run_id"]
                failed, done = (
                    (folder / f"{name}.json").exists() for name in ("failure", "record")
                )
                run["status"] = "done" if done else "failed" if failed else "new"
                run["cause"] = "TIMEOUT" if failed else ""

        def inputs() -> dict[str, int]:
            return {path.stem: path.stat().st_mtime_ns for path in self.root.glob("plan/*")}

        before = inputs()
        self.edit(look)
        records = [path / "record.json" for path in self.runs.iterdir()]
        summary = build_summary([path for path in records if path.exists()])
        export_tables.note_inputs(summary, read_plan(self.root / "plan.json"), self.runs, self.root)
        return " ".join(sorted(name for name, at in inputs().items() if before.get(name) != at))


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """Three experiments: power in the first, names in the last."""
    unpowered: dict[str, Any] = {"repeats": 2, "watts": lambda point, repeat: None}
    make_training(
        tmp_path,
        Training({"ranks": [1, 2]}, "a", repeats=2),
        Training({"ranks": [1, 2]}, "b", **unpowered),
        Training({"mode": ["x", "y"]}, "c", **unpowered),
    )
    made = Campaign(tmp_path)
    assert made.changed() == "a b c" and made.changed() == ""
    return made


@pytest.mark.slow
def test_runs_come_go_and_fail(campaign: Campaign, tmp_path: Path) -> None:
    run, away = campaign.run("b", -1), tmp_path / "away"
    for here, there in ((run, away), (away, run)):
        here.rename(there)
        assert campaign.changed() == "b"
    gone = campaign.run("c", 0)
    shutil.rmtree(gone)
    assert campaign.changed() == "c"
    gone.mkdir()
    (gone / "failure.json").write_text(json.dumps({"cause": "TIMEOUT", "detail": "made up"}))
    assert campaign.changed() == "c"


@pytest.mark.slow
def test_the_campaign_and_the_code_are_edited(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def texts(plan: dict[str, Any]) -> None:
        plan |= {"description": "Another one.", "created": "2026-03-11T12:00:00+00:00"}
        for entry in plan["experiments"]:
            entry["wall_s"] = 1.0
            for place, run in enumerate(entry["runs"]):
                run |= {"position": 50 - place, "reused": place == 1, "to_run": False}

    campaign.edit(texts)
    assert campaign.changed() == ""
    campaign.edit(lambda plan: plan["experiments"][2]["parameters"]["mode"].update(unit="m"))
    assert campaign.changed() == "c"
    for name in ("tables", "figures"):
        (campaign.root / name / "b").mkdir(parents=True, exist_ok=True)
    removed: list[Any] = []
    campaign.edit(lambda plan: removed.append(plan["experiments"].pop(1)))
    assert campaign.changed() == ""
    left = [campaign.root / name for name in ("plan/b.json", "tables/b", "figures/b")]
    assert not any(path.exists() for path in left)
    campaign.edit(lambda plan: plan["experiments"].append(removed[0]))
    assert campaign.changed() == "b"
    monkeypatch.setattr(export_tables, "code_digest", lambda *names: "other")
    assert campaign.changed() == "a b c"
