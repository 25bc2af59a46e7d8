"""The table of findings: what a test or a user reads instead of the page."""

import json
import math
from pathlib import Path

import pandas as pd

from scalesweep.analysis.table_io import read_table, write_tables
from scalesweep.aspects.find import find
from scalesweep.core.plan_format import read_plan
from scalesweep.findings.base import CLEAR, Finding, number_of
from scalesweep.findings.table import COLUMNS, findings_in, findings_table
from scalesweep.report.export_tables import write_all
from tests.fakes.results import SITE, Fake, make_results, studies_of

WEAK = {"ranks": [1, 2, 4]}


def test_the_rule_tables_writes_the_findings_that_the_report_shows(tmp_path: Path) -> None:
    make_results(tmp_path, [Fake("e", WEAK, "weak", repeats=5, speed=lambda p: p["ranks"] ** -0.5)])
    plan, tables = read_plan(tmp_path / "plan.json"), tmp_path / "tables"
    write_all(read_table(tmp_path / "summary.parquet"), plan, tmp_path / "runs" / SITE, tables)
    csv = pd.read_csv(tables / "e" / "findings.csv")
    assert tuple(csv.columns) == COLUMNS
    (entry,) = plan["experiments"]
    study = studies_of(tmp_path)["e"]
    assert findings_in(study) == find(study)
    row = csv[csv["rule"] == "verdict"].iloc[0]
    (point,) = [row for row in study.scaling if row["ranks"] == 2]
    named = {each["name"]: each for each in json.loads(row["numbers"])}
    later, limit = named["efficiency"], named["efficient up to"]
    assert (limit["value"], limit["unit"], limit["low"]) == (1, "ranks", None)
    assert later["value"] == point["total_eff_later"] and later["unit"] == "1"
    assert later["low"] <= later["value"] <= later["high"]
    assert f"{100 * later['value']:.0f}" in row["sentence"] and row["table"] == "scaling"
    assert json.loads(row["row"]) == {"ranks": 2, "source": "simulated"}
    runs = [run["run_id"] for run in entry["runs"] if run["point"]["ranks"] == 2]
    assert json.loads(row["runs"]) == runs


def test_what_is_not_finite_is_missing_and_survives_the_file(tmp_path: Path) -> None:
    study = studies_of(make_results(tmp_path, [Fake("e", WEAK, "weak")]))["e"]
    numbers = (number_of("a", math.nan, "s"), number_of("b", 2.0, "1", 1.0, math.inf))
    said = Finding("e", "r", CLEAR, "Said.", {"x": math.inf, "t": (1,)}, numbers)
    frame = findings_table(study, [said, Finding("e", "r", CLEAR, "Bare.")])
    write_tables({"e": {"findings": frame}}, tmp_path / "tables")
    first, second = findings_in(studies_of(tmp_path)["e"]) or []
    assert first.numbers == numbers and first.numbers[0].value is None
    assert first.numbers[1].low is None
    assert first.evidence == {"x": None, "t": [1]}
    assert second.numbers == () and second.evidence == {}
