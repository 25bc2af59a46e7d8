"""The distribution of steps in the report: a table and a small chart."""

from pathlib import Path

import pytest

from scalesweep.aspects.draw import draw
from scalesweep.report.experiment_part import shown_sections
from scalesweep.report.page_data import table_data
from tests.acceptance.faults import Program, every
from tests.fakes.planted_steps import planted_study
from tests.fakes.ranks import ranked, steady, study_of


def test_quantiles_stalls_and_drift_of_steps_and_ranks(tmp_path: Path) -> None:
    program = Program(faults={"compute": every(500, 25, 1), "input": lambda step, rank: step / 3})
    study = planted_study(tmp_path, program)
    (section,) = [one for one in shown_sections(study, {}, 10) if one.title == "Steps"]
    assert section.table is not None
    headings = [
        *section.table.lead,
        *(c.heading for _, group in section.table.groups for c in group),
    ]
    rows = [dict(zip(headings, (cell.text for cell in row), strict=True))
            for row in section.table.rows]  # fmt: skip
    assert [row["Of"] for row in rows] == ["steps", "rank 0", "rank 1"]
    whole, quick, slow = rows
    assert whole["ranks"] == "2" and whole["Runs"] == "3/3"
    assert whole["Stalls in a run"] == slow["Stalls in a run"] == "2 (steps 25 and 50)"
    assert quick["Stalls in a run"] == "0"
    assert 70 < float(whole["p50"]) < 80 < float(whole["p95"]) < 100
    assert float(whole["p99"]) > 400
    assert 15 < float(whole["Drift in a run"].split()[0]) < 25  # 13 ms of 66
    # What the page sorts by and exports are the numbers that it shows.
    raw = {c["name"]: c["values"] for c in table_data(study, section.table, 1000)["raw"]}
    assert raw["rank"] == [None, 0, 1] and raw["stalls"] == [2, 0, 2]
    for name in ("p50", "p95", "p99"):
        assert raw[name] == pytest.approx([float(row[name]) for row in rows], rel=0.01)
    assert all(isinstance(value, float) for name in ("max", "drift") for value in raw[name])


def test_the_chart_marks_the_stalls_of_each_run(tmp_path: Path) -> None:
    study = planted_study(tmp_path, Program(faults={"compute": every(500, 25, 1)}))
    (drawing,) = [one for one in draw(study) if one.name == "steps"]
    (ax,) = drawing.figure.axes
    marks = [line for line in ax.get_lines() if line.get_marker() == "^"]
    assert [list(line.get_xdata()) for line in marks] == [[25, 50] * 3]
    assert len([line for line in ax.get_lines() if len(line.get_xdata()) == 60]) == 3


def test_step_times_alone_have_a_distribution_and_no_causes(tmp_path: Path) -> None:
    study = study_of(tmp_path, ranked(steady(50, 0.05)))
    assert study.tables["causes"] is None
    whole = [
        row for row in study.rows("steps") if row["rank"] is None or row["rank"] != row["rank"]
    ]
    assert len(whole) == 3 and all(100 < row["p50"] < 120 for row in whole)
