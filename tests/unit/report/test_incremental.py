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
from tests.fakes.results import SITE, Fake, make_results

pytestmark = pytest.mark.slow


class Results:
    """A results folder with three experiments, of which the plan says what is there."""

    def __init__(self, root: Path) -> None:
        of_ranks = [Fake(name, {"ranks": [1, 2]}, "weak", repeats=2) for name in "ab"]
        make_results(root, [*of_ranks, Fake("c", {"mode": ["x", "y"]}, repeats=2)])
        self.root, self.runs, self.plan = root, root / "runs" / SITE, root / "plan.json"
        assert self.changed() == "a b c" and self.changed() == ""

    def changed(self, change: Callable[[dict[str, Any]], object] = lambda plan: None) -> str:
        """The experiments whose file changes if the plan changes so, or something has happened."""
        before = {path: path.read_bytes() for path in self.root.glob("plan/*")}
        plan = json.loads(self.plan.read_text())
        change(plan)
        for run in (run for entry in plan["experiments"] for run in entry["runs"]):
            run["status"] = self.status(run["run_id"])
        self.plan.write_text(json.dumps(plan))
        summary = build_summary([*self.runs.glob("*/record.json")])
        export_tables.note_inputs(summary, read_plan(self.plan), self.runs, self.root)
        new = [at for at in self.root.glob("plan/*") if before.get(at) != at.read_bytes()]
        return " ".join(sorted(path.stem for path in new))

    def status(self, run_id: str) -> str:
        there = {path.stem for path in (self.runs / run_id).glob("*.json")}
        return "done" if "record" in there else "failed" if "failure" in there else "new"


def test_runs_come_go_and_fail(tmp_path: Path) -> None:
    results = Results(tmp_path / "results")
    first = {entry["name"]: results.runs / entry["runs"][0]["run_id"]
             for entry in read_plan(results.plan)["experiments"]}  # fmt: skip
    for here, there in ((first["b"], tmp_path / "away"), (tmp_path / "away", first["b"])):
        here.rename(there)
        assert results.changed() == "b"
    shutil.rmtree(first["c"])
    assert results.changed() == "c"
    first["c"].mkdir()
    (first["c"] / "failure.json").write_text("{}")
    assert results.changed() == "c"


def test_the_campaign_and_the_code_are_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = Results(tmp_path)

    def texts(plan: dict[str, Any]) -> None:
        plan |= {"description": "Another one.", "created": "2026-03-11T12:00:00+00:00"}
        for entry in plan["experiments"]:
            entry["wall_s"] = 1.0
            for place, run in enumerate(entry["runs"]):
                run |= {"position": 50 - place, "reused": place == 1, "to_run": False}

    assert results.changed(texts) == ""
    unit = {"unit": "m"}
    assert results.changed(lambda p: p["experiments"][2]["parameters"]["mode"].update(unit)) == "c"
    for name in ("tables", "figures"):
        (tmp_path / name / "b").mkdir(parents=True, exist_ok=True)
    removed: list[Any] = []
    assert results.changed(lambda plan: removed.append(plan["experiments"].pop(1))) == ""
    assert not any((tmp_path / at).exists() for at in ("plan/b.json", "tables/b", "figures/b"))
    assert results.changed(lambda plan: plan["experiments"].append(removed[0])) == "b"
    monkeypatch.setattr(export_tables, "code_digest", lambda *names: "other")
    assert results.changed() == "a b c"
