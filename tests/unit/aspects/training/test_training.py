"""Training: epochs, phases and power as tables and figures; what is said of accuracy and input."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.aspects.find import find
from scalesweep.aspects.phases import LOOKS, looks_of
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import Drawing
from scalesweep.tables.comparisons import Comparison
from tests.fakes.drawn import figures_of
from tests.fakes.training import mae, nt3, study_of


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResults:
    return study_of(tmp_path_factory.mktemp("nt3"), nt3())


def test_epochs_table(study: ExperimentResults) -> None:
    table = study.tables["epochs"]
    assert len(table) == 3 * (16 + 4 + 1)
    run = table[(table["ranks"] == 4) & (table["repeat"] == 1)]
    assert run["epoch"].tolist() == [0, 1, 2, 3]
    ends = np.cumsum(run["global_times"] + run["validation_times"])
    assert run["epoch_ends"].tolist() == pytest.approx(ends)
    assert table.attrs["units"]["validation_accuracy"]["better"] == "higher"


def test_phases_table(tmp_path: Path) -> None:
    skipped = {"import": 3.0, "data_loading": 9.0, "odd": 1.0}

    def change(point: dict[str, Any], repeat: int) -> dict[str, Any]:
        return {"phases": skipped} if repeat == 2 and point["ranks"] == 1 else {}

    table = study_of(tmp_path, nt3(axes={"ranks": [1, 4]}, changes=change)).tables["phases"]
    first = table[table["ranks"] == 1].set_index("phase")
    assert list(first.index[:3]) == ["import", "init", "data_loading"]
    assert first.index[-1] == "odd"
    loading = first.loc["data_loading"]
    assert (loading["seconds"], loading["runs"]) == (pytest.approx((5 + 5 + 9) / 3), 3)
    assert loading["seconds_low"] < loading["seconds"] < loading["seconds_high"]
    # A phase that one repeat did not have is a mean over the others.
    assert (first.loc["init", "runs"], first.loc["init", "seconds"]) == (2, 1.0)
    assert first.loc["odd", "energy_runs"] == 0 and math.isnan(first.loc["odd", "energy"])
    assert loading["energy"] == pytest.approx(500.0)
    assert table.attrs["units"]["energy"]["unit"] == "J"


def named(study: ExperimentResults, name: str) -> Drawing:
    return next(drawing for drawing in figures_of(study) if drawing.name == name)


def means_of(study: ExperimentResults, name: str) -> pd.DataFrame:
    frame = named(study, name).panels[0].frame
    return frame[frame["style"].isin(["", "dots"]) & frame["y"].notna()]


def test_accuracy_over_time_is_drawn_by_point_and_repeat(study: ExperimentResults) -> None:
    frame = means_of(study, "accuracy-time")
    assert frame.groupby("series", sort=False).size().to_dict() == {
        "1 rank": 16, "4 ranks": 4, "16 ranks": 1,
    }  # fmt: skip
    epochs = study.tables["epochs"]
    last = epochs[(epochs["ranks"] == 4) & (epochs["epoch"] == 3)]
    end = frame[frame["series"] == "4 ranks"].iloc[-1]
    assert end["x"] == pytest.approx(last["epoch_ends"].mean())
    assert end["y"] == pytest.approx(last["validation_accuracy"].mean())
    # Each of the three repeats is a thin line of its own.
    thin = named(study, "accuracy-time").panels[0].frame.query("style == 'thin'")
    assert thin["y"].isna().sum() == 3 * 3


def test_error_has_its_target_and_dummy_input_learns_nothing(tmp_path: Path) -> None:
    reached = study_of(tmp_path / "a", mae(fixed={"target_mae": 0.08}))
    panel: Any = named(reached, "accuracy-time").panels[0]
    assert (panel.y.label, dict(panel.y.marks)) == ("Validation MAE", {"target 0.08": 0.08})
    axes = {"ranks": [1, 2], "input": ["tfrecords", "dummy"]}
    study = study_of(tmp_path / "b", mae(axes=axes))
    assert means_of(study, "accuracy-time")["series"].nunique() == 2
    assert "dummy input are left out" in named(study, "accuracy-time").caption
    assert named(study, "phases-time").panels[0].frame["label"].nunique() == 4


def test_phases_add_up_and_look_the_same_everywhere(study: ExperimentResults) -> None:
    panel: Any = named(study, "phases-time").panels[0]
    table = study.tables["phases"]
    sums = panel.frame.groupby("label", sort=False)["value"].sum()
    assert sums.tolist() == pytest.approx(table.groupby("ranks")["seconds"].sum().tolist())
    looks = looks_of(["training", "mine", "other"])
    assert looks["training"] == LOOKS["training"] and looks["mine"] != looks["other"]


def test_power_has_a_panel_a_run_with_phases_behind(study: ExperimentResults) -> None:
    drawing = named(study, "power-time")
    assert [panel.title for panel in drawing.panels] == ["1 rank", "4 ranks", "16 ranks"]
    four: Any = drawing.panels[1]
    ends = four.frame.groupby("series")["x"].agg(["min", "max"]).T
    assert {name: [*ends[name]] for name in ends} == {
        "total": [1, 40],
        "core (not counted)": [1, 40],
    }
    assert four.frame.groupby("series")["y"].max()["total"] == pytest.approx(800)
    assert len(four.spans) == 3 + 2 * 4 + 1


def rows(study: ExperimentResults, question: str) -> list[Comparison]:
    """What is compared on a question, but for efficiencies."""
    return [
        row
        for row in study.of(Comparison)
        if row.question == question and row.quantity == "ratio" and not row.statistic
    ]


def told(study: ExperimentResults, rule: str, words: str) -> list[tuple[str, str]]:
    return [(f.state, f.sentence) for f in find(study) if f.rule == rule and words in f.sentence]


def test_the_fastest_to_the_target(tmp_path: Path) -> None:
    ((level, text),) = told(study_of(tmp_path / "a", mae()), "best", "target")
    assert level == "clear"
    assert text.startswith("Best is ranks 2; time to target over that of 1: 0.")
    ((level, text),) = told(study_of(tmp_path / "b", mae(repeats=1)), "best", "target")
    assert level == "open" and text.startswith("Lowest time to target measured, with ranks 2")
    # Points of other targets do not compete.
    apart = mae(axes={"ranks": [1], "target_mae": [0.1, 0.2]}, fixed={})
    assert rows(study_of(tmp_path / "c", apart), "time to target") == []


def test_final_accuracy_over_the_scale(study: ExperimentResults, tmp_path: Path) -> None:
    (row,) = rows(study, "scaling")
    assert (row.metric, row.value, row.base_value) == ("final_validation_accuracy", "16", "1")
    assert row.ratio and row.ratio.high and row.ratio.high < 1
    ((level, text),) = told(study, "ratio", "accuracy")
    assert level == "clear" and text.startswith("16 over 1 (ranks), ")
    assert rows(study_of(tmp_path / "b", mae(fixed={"input": "dummy"})), "scaling") == []


@pytest.mark.slow
def test_accuracy_is_compared_only_after_the_same_training(tmp_path: Path) -> None:
    # Ranks that train on samples of their own train on more in all, unless to a target.
    more: dict[str, Any] = {"planned": lambda p: 100 * p["ranks"], "scaling": "weak"}
    target = nt3(**more, fixed={"target_accuracy": 0.5})
    fakes = [nt3(compare=None), nt3(compare="never"), nt3(**more), target]
    fakes.append(nt3(**more, compare="always"))
    found = [rows(study_of(tmp_path / str(i), fake), "scaling") for i, fake in enumerate(fakes)]
    assert [len(each) for each in found] == [0, 0, 0, 1, 1]


def test_input_cost_is_the_ratio_to_dummy_input(tmp_path: Path) -> None:
    def against(other: str) -> ExperimentResults:
        seconds = {"tfrecords": 15.0, other: 10.0}
        axes = {"ranks": [1], "input": [*seconds]}
        return study_of(tmp_path / other, mae(axes=axes, epoch_s=lambda p: seconds[p["input"]]))

    study = against("dummy")
    first, _ = rows(study, "input")
    assert (first.value, first.base_value, first.metric) == ("tfrecords", "dummy", "total_time")
    assert first.ratio and first.ratio.value == pytest.approx(1.5, abs=0.05)
    ((level, text), _) = told(study, "ratio", "over dummy")
    assert level == "clear" and text.startswith("tfrecords over dummy (input), ")
    assert "(first epoch)" in text
    assert rows(against("other"), "input") == []
