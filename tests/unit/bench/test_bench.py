"""The table of `make bench`, and what its scripts share."""

import argparse
import json
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from bench import table
from bench.lib import projects
from bench.lib.made_runs import Made
from bench.lib.pairs import figure, within
from bench.lib.steps import step_words
from scalesweep.config.campaign import load_campaign
from tests.conftest import ROOT

# In the place of a benchmark.
SCRIPT = """
import json, sys
from pathlib import Path
assert sys.argv[1] == "--json"
Path(sys.argv[2]).write_text(json.dumps({{"rounds": 3, "figures": {figures}}}))
"""


@pytest.mark.parametrize(
    ("value", "bound", "better", "kept"),
    [(1.5, 1.5, "lower", True), (1.6, 1.5, "lower", False), (20, 20, "higher", True),
     (19, 20, "higher", False), (7, None, "lower", None)],
)  # fmt: skip
def test_a_bound_holds_on_its_own_side(
    value: float, bound: float | None, better: str, kept: bool | None
) -> None:
    row = figure("f", value, "s", bound, better)
    assert set(row) == {"name", "value", "unit", "bound", "better"}
    assert within(json.loads(json.dumps(row))) is kept


def test_one_table_of_all_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench, results = tmp_path / "bench", tmp_path / "results"
    bench.mkdir()
    rows = [figure("a ratio", 1.25, "x", 1.5), figure("too slow", 12345.6, "s", 2.0)]
    (bench / "one.py").write_text(SCRIPT.format(figures=json.dumps(rows).replace("null", "None")))
    (bench / "broken.py").write_text("raise SystemExit(3)")
    rows = [figure("speed", 21.0, "x", 20.0, "higher"), figure("for information", 3, "MB")]
    (bench / "two.py").write_text(SCRIPT.format(figures=json.dumps(rows).replace("null", "None")))
    monkeypatch.setattr(table, "ROOT", tmp_path)
    monkeypatch.setattr(table, "RESULTS", results)
    monkeypatch.setattr(table, "SCRIPTS", ("one", "broken", "two"))
    busy = iter((3.0, 55.0, 4.0, 2.0))
    monkeypatch.setattr(table.psutil, "cpu_percent", lambda seconds: next(busy))

    def main(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["table.py", *words])
        return table.main()

    assert main() == 1  # one has failed; the others have run
    said = capsys.readouterr()
    told = [re.split(r"\s{2,}", line) for line in said.out.splitlines() if "  " in line]
    assert told == [
        ["figure", "measured", "unit", "bound", "within", "script"],
        ["a ratio", "1.25", "x", "<= 1.5", "yes", "one"],
        ["too slow", "12,346", "s", "<= 2", "NO", "one"],
        ["speed", "21", "x", ">= 20", "yes", "two"],
        ["for information", "3", "MB", "two"],
    ]
    assert "2 of 3 bounds are kept" in said.out
    assert "failed: broken" in said.err
    assert "other work was going on before: broken\n" in said.out
    kept = json.loads((results / "table.json").read_text())
    assert kept["failed"] == ["broken"]
    assert [(row["name"], row["within"], row["script"]) for row in kept["figures"]] == [
        ("a ratio", True, "one"), ("too slow", False, "one"), ("speed", True, "two"),
        ("for information", None, "two"),
    ]  # fmt: skip
    assert main("one") == 0  # a bound that is missed is told, and no failure
    assert "1 of 2 bounds are kept" in capsys.readouterr().out


def test_every_script_gives_figures() -> None:
    for name in table.SCRIPTS:
        text = (ROOT / "bench" / f"{name}.py").read_text()
        assert "figure(" in text and '"figures"' in text and "--json" in text, name


def test_ids_do_not_depend_on_how_many_repeats_are_asked_for(toy: Path, tmp_path: Path) -> None:
    name = projects.campaign(tmp_path, "c.yaml", points=100, repeats=3, site="toy")
    (experiment,) = load_campaign(tmp_path / name).experiments
    assert len({run.run_id for run in experiment.runs}) == 300
    for run in experiment.runs[::37]:
        assert run.run_id == experiment.benchmark.run_id(run.point, run.repeat)


def test_steps_are_called_in_words_that_their_scripts_know(tmp_path: Path) -> None:
    made = Made(tmp_path, "c.yaml", tmp_path / "results" / "runs" / "here", [], [])
    words = step_words(made)
    assert list(words) == ["inventory", "summarise", "accounting", "tables", "figures", "page"]
    for name, some in words.items():
        parser = argparse.ArgumentParser()
        import_module(f"scalesweep.commands.{name}").add_arguments(parser)
        parser.parse_args(some)  # exits where a word is unknown
