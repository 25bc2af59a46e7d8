"""Sections of the page: energy, accuracy, phases, steps."""

from pathlib import Path

import numpy as np
import pytest

from scalesweep.aspects.draw import draw
from scalesweep.aspects.energy.table import energy_lines
from scalesweep.aspects.training import accuracy_table
from scalesweep.core.record import read_record
from scalesweep.experiment.results import ExperimentResults
from scalesweep.report.experiment_part import shown_sections
from scalesweep.tables.provenance import RunFacts, run_facts
from tests.acceptance.faults import Program, every
from tests.fakes.planted_steps import planted_study
from tests.fakes.training import SITE, Training, make_training, nt3


def one(root: Path, fake: Training) -> tuple[ExperimentResults, dict[str, RunFacts]]:
    study = make_training(root, fake)[fake.name]
    facts = {
        path.parent.name: run_facts(read_record(path))
        for path in (root / "runs" / SITE).glob("*/record.json")
    }
    return study, facts


@pytest.mark.parametrize(
    ("fake", "lines"),
    [
        (nt3(), ["Energy: measured in 9 of 9 runs with rapl, sampled every 1 s"]),
        (nt3(watts=lambda p, r: None if r else 100.0),
         ["Energy: measured in 3 of 9 runs with rapl", "not measured in 6 of 9 runs: host n0 has"]),
        (nt3(changes=lambda p, r: {"energy": None}, watts=lambda p, r: None),
         ["Energy: not measured: the records hold no energy data."]),
        (nt3(fate=lambda p, r: "new"), []),
    ],
)  # fmt: skip
def test_energy_is_told_by_how_it_was_measured(
    tmp_path: Path, fake: Training, lines: list[str]
) -> None:
    told = energy_lines(*one(tmp_path, fake))
    for line, part in zip(told, lines, strict=True):
        assert part in line


def test_experiments_that_do_not_train_are_not_asked_for_energy(tmp_path: Path) -> None:
    fake = nt3(changes=lambda p, r: {"energy": None, "metrics": {}}, watts=lambda p, r: None,
               arrays=lambda a, p, r: [a.pop(n) for n in list(a) if "_times" not in n])  # fmt: skip
    study, facts = one(tmp_path, fake)
    assert energy_lines(study, facts) == []
    assert not shown_sections(study, facts, 10)


def test_accuracy_table_says_who_reached_the_target(tmp_path: Path) -> None:
    study, facts = one(tmp_path, nt3(fixed={"target_accuracy": 0.9}))
    titles = [shown["title"] for shown in shown_sections(study, facts, 10)]
    assert {"Accuracy", "Phases", "Energy"} <= {*titles}
    table = accuracy_table(study, 2)
    assert (len(table.head), table.left_out) == (2, 1)
    row = [cell.text for cell in table.rows[0]]
    assert row[:2] == ["1", "3/3"] and row[4] == "3/3"
    *_, reached, seconds = accuracy_table(study, 9).rows[2][:6]
    assert (reached.text, reached.bad, seconds.text) == ("0/3", True, "–")


def test_steps_have_quantiles_stalls_and_drift(tmp_path: Path) -> None:
    program = Program(faults={"compute": every(500, 25, 1), "input": lambda step, rank: step / 3})
    study = planted_study(tmp_path, program)
    (section,) = [one for one in shown_sections(study, {}, 10) if one["title"] == "Steps"]
    (row,) = section["table"]["rows"]
    cells = zip(section["table"]["headings"], row, strict=True)
    whole = {heading.text: cell.text for heading, cell in cells}
    assert whole["Stalls in a run"] == "2 (steps 25 and 50)"
    ends = []  # when the last rank is done, and what it then spends on the exchange
    for path in tmp_path.glob("runs/*/*-r2-*/samples.npz"):
        run = np.load(path)
        own = run["step_times"] + run["span_between"] - run["span_communication"]
        path_s = own.max(axis=1) + run["span_communication"].min(axis=1)
        ends.append(1e3 * np.quantile(path_s, (0.5, 0.95)))
    assert (float(whole["p50"]), float(whole["p95"])) == pytest.approx(np.median(ends, 0), rel=5e-3)
    assert float(whole["p99"]) > 400
    assert 15 < float(whole["Drift in a run"].split()[0]) < 25  # 13 ms of 66
    (drawing,) = [one for one in draw(study) if one.name == "warm-up"]
    longest = drawing.panels[-1].frame.query("series == 'longest'")  # of the most ranks
    assert longest.nlargest(2, "y")["x"].sort_values().tolist() == [25, 50]
