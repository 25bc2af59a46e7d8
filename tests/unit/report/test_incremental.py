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


def texts(plan: dict[str, Any]) -> None:
    """Change what no table says."""
    plan |= {"description": "Another one.", "created": "2026-03-11T12:00:00+00:00"}
    for entry in plan["experiments"]:
        entry["wall_s"] = 1.0
        for place, run in enumerate(entry["runs"]):
            run |= {"position": 50 - place, "reused": place == 1, "to_run": False}


@pytest.mark.slow
def test_only_what_changes_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = {"drop_page_cache": [True]}  # and nothing trains
    of_ranks = [Fake(name, {"ranks": [1, 2], **reads}, "weak", repeats=2) for name in "ab"]
    modes = Fake("c", {"mode": ["x", "y"], **reads}, repeats=2)
    root = make_results(tmp_path / "r", [*of_ranks, modes])
    runs, file = root / "runs" / SITE, root / "plan.json"

    def status(run_id: str) -> str:
        there = {path.stem for path in (runs / run_id).glob("*.json")}
        return "done" if "record" in there else "failed" if "failure" in there else "new"

    def changed(change: Callable[[dict[str, Any]], object] | None = None) -> str:
        """The experiments whose file changes if the plan changes so, or something has happened."""
        before = {path: path.read_bytes() for path in root.glob("plan/*")}
        plan = json.loads(file.read_text())
        if change:
            change(plan)
        for run in (run for entry in plan["experiments"] for run in entry["runs"]):
            run["status"] = status(run["run_id"])
        file.write_text(json.dumps(plan))
        summary = build_summary([*runs.glob("*/record.json")])
        export_tables.note_inputs(summary, read_plan(file), runs, root)
        new = [at for at in root.glob("plan/*") if before.get(at) != at.read_bytes()]
        return " ".join(sorted(path.stem for path in new))

    assert changed() == "a b c" and changed() == ""
    # Runs come, go and fail.
    _, second, third = (runs / entry["runs"][0]["run_id"]
                        for entry in read_plan(file)["experiments"])  # fmt: skip
    for here, there in ((second, tmp_path / "away"), (tmp_path / "away", second)):
        here.rename(there)
        assert changed() == "b"
    shutil.rmtree(third)
    assert changed() == "c"
    third.mkdir()
    (third / "failure.json").write_text("{}")
    assert changed() == "c"
    # The campaign and the code are edited.
    assert changed(texts) == ""
    unit = {"unit": "m"}
    assert changed(lambda plan: plan["experiments"][2]["parameters"]["mode"].update(unit)) == "c"
    removed: list[Any] = []
    assert changed(lambda plan: removed.append(plan["experiments"].pop(1))) == ""
    assert not any((root / at).exists() for at in ("plan/b.json", "tables/b", "figures/b"))
    assert changed(lambda plan: plan["experiments"].append(removed[0])) == "b"
    monkeypatch.setattr(export_tables, "code_digest", lambda *names: "other")
    assert changed() == "a b c"
