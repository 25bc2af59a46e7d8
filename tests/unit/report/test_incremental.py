"""Tables, figures and findings of what has not changed are taken from the last call.

Whatever happens to a campaign, what is there afterwards is what making all of it again gives.
"""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from scalesweep.aspects import draw as figures
from scalesweep.aspects.energy import table as power
from scalesweep.aspects.phases.figure import phase_figures
from scalesweep.core.plan_format import read_plan
from scalesweep.core.record import BadRecordError
from scalesweep.experiment.load import load_results
from scalesweep.report import export_tables
from scalesweep.tables.summary import build_summary
from tests.fakes.training import SITE, Training, make_training

OUTPUTS = ("tables", "figures")
THERE = "there"  # another site


class Campaign:
    """A results folder, and what the last call had to make in it."""

    def __init__(self, root: Path, formats: Sequence[str] = ("svg",)) -> None:
        self.root = root
        self.formats = formats
        self.runs = root / "runs" / SITE
        self.made: dict[str, list[str]] = {}

    def edit(self, change: Callable[[dict[str, Any]], None]) -> None:
        plan = json.loads((self.root / "plan.json").read_text())
        change(plan)
        (self.root / "plan.json").write_text(json.dumps(plan))

    def ids(self, experiment: str) -> list[str]:
        plan = json.loads((self.root / "plan.json").read_text())
        (entry,) = [one for one in plan["experiments"] if one["name"] == experiment]
        return [run["run_id"] for run in entry["runs"]]

    def look(self) -> None:
        """Have the plan say what is there."""

        def states(plan: dict[str, Any]) -> None:
            for run in (run for entry in plan["experiments"] for run in entry["runs"]):
                folder = self.runs / run["run_id"]
                failed = (folder / "failure.json").exists()
                run["status"] = "failed" if failed else "new"
                run["status"] = "done" if (folder / "record.json").exists() else run["status"]
                run["cause"] = "TIMEOUT" if failed else ""

        self.edit(states)

    def step(self) -> dict[str, bytes]:
        """Make tables and figures, as the rules do; returns the content of all files."""
        for name in OUTPUTS:
            shutil.rmtree(self.root / name, ignore_errors=True)
        self.made = {"tables": [], "figures": [], "findings": []}
        plan = read_plan(self.root / "plan.json")
        runs = {r["run_id"]: r for e in plan["experiments"] for r in e["runs"]}
        done = [self.runs / i / "record.json" for i, r in runs.items() if r["status"] == "done"]
        summary = build_summary(done)
        tables, drawn = (self.root / name for name in OUTPUTS)
        export_tables.write_all(summary, plan, self.runs, tables)
        studies = [load_results(entry, tables) for entry in plan["experiments"]]
        figures.write_figures(studies, drawn, self.formats, tables=tables)
        return self.content()

    def content(self) -> dict[str, bytes]:
        found = [path for name in OUTPUTS for path in (self.root / name).rglob("*.*")]
        return {str(path.relative_to(self.root)): path.read_bytes() for path in found}

    def check(self, *made: str) -> dict[str, bytes]:
        """Make what has changed: of these experiments; returns the content of all files."""
        found = self.step()
        assert {name: sorted(set(names)) for name, names in self.made.items()} == {
            name: sorted(made) for name in self.made
        }
        return found

    def check_against_scratch(self, found: dict[str, bytes]) -> None:
        hidden = list(self.root.glob(".*.previous"))
        assert len(hidden) == 2
        for folder in hidden:
            folder.rename(folder.with_suffix(".away"))
        again = self.step()
        assert found.keys() == again.keys()
        assert [name for name in found if found[name] != again[name]] == []
        for folder in hidden:
            shutil.rmtree(folder)
            folder.with_suffix(".away").rename(folder)


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    """Three experiments: power in the first, names in the last; the second lacks its last run."""
    make_training(
        tmp_path,
        Training({"ranks": [1, 2]}, "a", repeats=2),
        Training({"ranks": [1, 2]}, "b", repeats=2, watts=lambda point, repeat: None),
        Training({"mode": ["x", "y"]}, "c", repeats=2, watts=lambda point, repeat: None),
    )
    made = Campaign(tmp_path)
    make_tables, write, find = export_tables.make_tables, figures._Work.write, export_tables.find

    def tables_spy(summary: Any, plan: Any, *rest: Any) -> Any:
        made.made["tables"].append(plan["experiments"][0]["name"])
        return make_tables(summary, plan, *rest)

    def figures_spy(work: Any, number: int) -> Any:
        made.made["figures"].append(work.parts[number].experiment)
        return write(work, number)

    def find_spy(study: Any) -> Any:
        made.made["findings"].append(study.name)
        return find(study)

    # Of each experiment one figure: all of them would take a minute.
    monkeypatch.setattr(figures, "_many", lambda study: [])
    monkeypatch.setattr(figures, "_few", lambda study: [phase_figures])
    monkeypatch.setattr(export_tables, "make_tables", tables_spy)
    monkeypatch.setattr(figures._Work, "write", figures_spy)
    # In this process, where the spies are.
    monkeypatch.setattr(
        figures, "shared_map", lambda do, work, items, *_: [do(work, i) for i in items]
    )
    monkeypatch.setattr(export_tables, "find", find_spy)
    last = made.runs / made.ids("b")[-1]
    last.rename(tmp_path / "kept-for-later")
    made.look()
    return made


@pytest.mark.slow
def test_runs_come_go_and_fail(campaign: Campaign) -> None:
    campaign.check("a", "b", "c")
    campaign.check()
    new = campaign.runs / campaign.ids("b")[-1]
    (campaign.root / "kept-for-later").rename(new)
    campaign.look()
    campaign.check("b")
    gone = campaign.runs / campaign.ids("c")[0]
    shutil.rmtree(gone)
    campaign.look()
    campaign.check("c")
    gone.mkdir()
    (gone / "failure.json").write_text(json.dumps({"cause": "TIMEOUT", "detail": "made up"}))
    campaign.look()
    campaign.check_against_scratch(campaign.check("c"))
    os.utime(campaign.runs / campaign.ids("a")[0] / "power.csv", (1, 1))
    campaign.step()
    # Its tables are equal.
    assert campaign.made == {"tables": ["a"], "figures": [], "findings": ["a"]}


@pytest.mark.slow
def test_other_sites(campaign: Campaign) -> None:
    campaign.check("a", "b", "c")
    there = campaign.root / "runs" / THERE
    for run_id in campaign.ids("b")[:2]:
        shutil.copytree(campaign.runs / run_id, there / run_id)
    campaign.check_against_scratch(campaign.check("b"))
    assert (campaign.root / "tables" / "b" / "sites.csv").exists()
    campaign.check()
    run_id = campaign.ids("b")[1]
    shutil.rmtree(there / run_id)
    campaign.check("b")
    shutil.rmtree(there)
    campaign.check_against_scratch(campaign.check("b"))
    assert not (campaign.root / "tables" / "b" / "sites.csv").exists()


@pytest.mark.slow
def test_the_campaign_is_edited(campaign: Campaign) -> None:
    campaign.check("a", "b", "c")

    def texts(plan: dict[str, Any]) -> None:
        plan |= {"description": "Another one.", "created": "2026-03-11T12:00:00+00:00"}
        plan["order"] = {"seed": 7, "of": 99}
        for entry in plan["experiments"]:
            entry["estimate"] = {"wall_s": 1.0, "core_hours": 2.0}
            for place, run in enumerate(entry["runs"]):
                run |= {"position": 50 - place, "reused": place == 1, "to_run": False}

    campaign.edit(texts)
    campaign.check()

    def parameters(plan: dict[str, Any]) -> None:
        plan["experiments"][2]["parameters"]["mode"]["unit"] = "m"

    campaign.edit(parameters)
    campaign.check("c")
    removed: list[Any] = []
    campaign.edit(lambda plan: removed.append(plan["experiments"].pop(1)))
    campaign.check()
    for name in ("tables", "figures"):
        for folder in (campaign.root / name, campaign.root / f".{name}.previous"):
            assert (folder / "c").is_dir() and not (folder / "b").exists()
    campaign.edit(lambda plan: plan["experiments"].append(removed[0]))
    campaign.check_against_scratch(campaign.check("b"))
    campaign.edit(lambda plan: plan.update(campaign="renamed"))
    campaign.step()
    made = ["a", "c", "b"]
    assert campaign.made == {"tables": made, "figures": [], "findings": made}  # for LaTeX


@pytest.mark.slow
def test_other_code_makes_everything_again(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign.step()
    monkeypatch.setattr(export_tables, "code_digest", lambda *names: "other")
    campaign.step()
    assert campaign.made["tables"] == ["a", "b", "c"] and not campaign.made["figures"]
    monkeypatch.setattr(figures, "code_digest", lambda *names: "other")
    campaign.check_against_scratch(campaign.step())


@pytest.mark.slow
def test_files_that_cannot_be_read_are_looked_at_again(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise BadRecordError("power.csv cannot be read (Input/output error)")

    with monkeypatch.context() as patched:
        patched.setattr(power, "read_power", fail)
        campaign.step()
        campaign.step()
        assert campaign.made["tables"] == ["a"]
        assert not (campaign.root / "tables" / "a" / "power.csv").exists()
    campaign.step()
    assert campaign.made["tables"] == ["a"]
    assert (campaign.root / "tables" / "a" / "power.csv").exists()
    campaign.check_against_scratch(campaign.check())


@pytest.mark.slow
def test_formats_are_taken_where_the_drawing_is_the_same(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign.formats = figures.FORMATS
    campaign.edit(lambda plan: plan["experiments"].pop(0))
    campaign.step()
    written: list[str] = []
    monkeypatch.setattr(figures, "write_pdf", _spy(figures.write_pdf, written))
    monkeypatch.setattr(figures, "write_png", _spy(figures.write_png, written))

    def version(plan: dict[str, Any]) -> None:  # part of no figure
        plan["experiments"][1]["version"] = 2

    campaign.edit(version)
    found = campaign.step()
    assert set(campaign.made["figures"]) == {"c"} and written == []
    assert [name for name in found if name.endswith(".pdf") and name.startswith("figures/c/")]
    campaign.check_against_scratch(found)


def _spy(write: Callable[[Any, Path], None], seen: list[str]) -> Callable[[Any, Path], None]:
    def spy(figure: Any, path: Path) -> None:
        seen.append(path.name)
        write(figure, path)

    return spy
