"""The report's sections on accuracy, phases and energy."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scalesweep.aspects.draw import write_figures
from scalesweep.aspects.energy.section import energy_lines
from scalesweep.aspects.phases.section import phase_table
from scalesweep.aspects.training.section import accuracy_table
from scalesweep.core.plan_format import read_plan
from scalesweep.core.record import read_record
from scalesweep.experiment.results import ExperimentResults
from scalesweep.report.experiment_part import shown_sections
from scalesweep.report.page import render_report
from scalesweep.tables.provenance import RunFacts, run_facts
from tests.fakes.training import SITE, Training, make_training, nt3

HOSTILE = "<script>alert(1)</script>&"


def render(root: Path, *fakes: Training) -> str:
    studies = list(make_training(root, *fakes).values())
    for study in studies:
        write_figures(study, root / "figures", ("svg",))
    return render_report(
        read_plan(root / "plan.json"), studies, pd.read_parquet(root / "summary.parquet"),
        root / "tables", root / "figures", root / "runs" / SITE, root / "report.html",
    )  # fmt: skip


def one(root: Path, fake: Training) -> tuple[ExperimentResults, dict[str, RunFacts]]:
    study = make_training(root, fake)[fake.name]
    facts = {
        path.parent.name: run_facts(read_record(path))
        for path in (root / "runs" / SITE).glob("*/record.json")
    }
    return study, facts


@pytest.mark.slow
def test_sections_of_a_training_experiment(tmp_path: Path) -> None:
    page = render(tmp_path, nt3())
    page = re.sub(r"<h3 [^>]*>", "<h3>", page)
    heads = re.findall(r"<h3>(.*?)</h3>", page)
    assert [h for h in heads if h in ("Accuracy", "Phases", "Energy")] == [
        "Accuracy", "Phases", "Energy",
    ]  # fmt: skip
    after = page.split("<h3>Energy</h3>")[1].split("</details>")[0]
    assert "Energy: measured in 9 of 9 runs with rapl, sampled every 1 s" in after
    assert "took 1.0 % of a core on each host" in after
    accuracy = page.split("<h3>Accuracy</h3>")[1].split("<h3>")[0]
    for heading in ("Training time [s]", "Final validation accuracy", "Energy [kJ]"):
        assert f">{heading}</th>" in accuracy
    assert 'href="./tables/train/accuracy.csv"' in page
    assert "<td>energy x wall time of the program</td>" in page


@pytest.mark.slow
def test_energy_that_is_not_there_is_said(tmp_path: Path) -> None:
    page = render(tmp_path, nt3(watts=lambda p, r: None))
    reason = "no RAPL, NVML, pm_counters or hwmon counter on host n0"
    assert f"Energy: not measured: {reason}." in page
    assert "Energy [" not in page


@pytest.mark.parametrize(
    ("fake", "lines"),
    [
        (
            nt3(watts=lambda p, r: None if r else 100.0),
            ["Energy: measured in 3 of 9 runs with rapl", "not measured in 6 of 9 runs: no RAPL"],
        ),
        (
            nt3(changes=lambda p, r: {"energy": None}, watts=lambda p, r: None),
            ["Energy: not measured: the records hold no energy data."],
        ),
        (nt3(fate=lambda p, r: "new"), []),
    ],
)
def test_energy_lines(tmp_path: Path, fake: Training, lines: list[str]) -> None:
    told = energy_lines(*one(tmp_path, fake))
    assert len(told) == len(lines)
    for line, part in zip(told, lines, strict=True):
        assert part in line


def test_experiments_that_do_not_train_are_not_asked_for_energy(tmp_path: Path) -> None:
    fake = nt3(changes=lambda p, r: {"energy": None, "metrics": {}}, watts=lambda p, r: None,
               arrays=lambda a, p, r: [a.pop(n) for n in list(a) if "_times" not in n])  # fmt: skip
    study, facts = one(tmp_path, fake)
    assert study.tables["accuracy"] is None
    assert energy_lines(study, facts) == []
    # Epochs become steady whatever they are of.
    assert [shown.title for shown in shown_sections(study, facts, 10)] == ["Warm-up"]


def test_accuracy_table_says_who_reached_the_target(tmp_path: Path) -> None:
    study, _ = one(tmp_path, nt3(fixed={"target_accuracy": 0.9}))
    table = accuracy_table(study, 2)
    assert table is not None
    headings = [column.heading for column in table.groups[0][1]]
    assert headings[:4] == [
        "Training time [s]", "Training samples per second [samples/s]", "Reached",
        "Time to target [s]",
    ]  # fmt: skip
    # Of loss and accuracy those of validation, but the training loss too.
    assert [h for h in headings if h.startswith("Final")] == [
        "Final loss", "Final validation loss", "Final validation accuracy",
    ]  # fmt: skip
    assert (len(table.head), table.left_out) == (2, 1)
    row = [cell.text for cell in table.rows[0]]
    assert row[:2] == ["1", "3/3"] and row[4] == "3/3"
    last = accuracy_table(study, 9)
    assert last is not None and last.rows[2][4].text == "0/3" and last.rows[2][4].bad
    assert last.rows[2][5].text == "–"


def test_tables_bear_what_is_missing(tmp_path: Path) -> None:
    fate = nt3(fate=lambda p, r: "TIMEOUT" if p["ranks"] == 4 else "done",
               watts=lambda p, r: 100.0 if r < 2 else None)  # fmt: skip
    study, _ = one(tmp_path, fate)
    table = accuracy_table(study, 9)
    assert table is not None
    assert table.rows[1][1].text == "0/3 TIMEOUT"
    assert {cell.text for cell in table.rows[1][2:]} == {"–"}
    assert any("(2 of 3 runs)" in cell.text for cell in table.rows[0])
    phases = phase_table(study, 9)
    assert phases is not None and len(phases.rows) == 2
    assert [one.heading for one in phases.groups[0][1][:3]] == [
        "import [s]",
        "init [s]",
        "data loading [s]",
    ]


@pytest.mark.slow
def test_names_are_escaped(tmp_path: Path) -> None:
    def change(point: dict[str, Any], repeat: int) -> dict[str, Any]:
        energy = {"joules": None, "missing": HOSTILE, "sources": [], "hosts": []}
        return {"energy": energy, "phases": {HOSTILE: 2.0, "import": 1.0}}

    page = render(
        tmp_path, nt3(axes={"ranks": [1], "mode": [HOSTILE, "b"]}, changes=change, repeats=1)
    )
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;alert(1)") > 3


def test_faulty_energy_in_a_record_costs_nothing() -> None:
    facts = run_facts({"energy": {"joules": "x", "interval_s": None, "hosts": None}})
    assert facts.energy is not None and facts.energy.joules is None
    assert run_facts({"energy": 3}).energy is None
