"""Figures of training runs: accuracy over time and energy, losses, phases and power."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scalesweep.aspects.phases import LOOKS, looks_of
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import Drawing
from tests.fakes.drawn import figures_of
from tests.fakes.training import mae, nt3, study_of


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResults:
    return study_of(tmp_path_factory.mktemp("figures"), nt3())


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
    panel: Any = named(
        study_of(tmp_path / "a", mae(fixed={"target_mae": 0.08})), "accuracy-time"
    ).panels[0]
    assert (panel.y.label, dict(panel.y.marks)) == ("Validation MAE", {"target 0.08": 0.08})
    fake = mae()
    fake.axes = {"ranks": [1, 2], "input": ["tfrecords", "dummy"]}
    study = study_of(tmp_path / "b", fake)
    assert means_of(study, "accuracy-time")["series"].nunique() == 2
    assert "dummy input are left out" in named(study, "accuracy-time").caption
    assert named(study, "phases-time").panels[0].frame["label"].nunique() == 4


def test_phases_add_up_and_look_the_same_everywhere(study: ExperimentResults) -> None:
    panel: Any = named(study, "phases-time").panels[0]
    table = study.tables["phases"]
    sums = panel.frame.groupby("label", sort=False)["value"].sum()
    assert sums.tolist() == pytest.approx(table.groupby("ranks")["seconds"].sum().tolist())
    assert panel.x.label == "Time [s]"
    looks = looks_of(["training", "mine", "other"])
    assert looks["training"] == LOOKS["training"] and looks["mine"] != looks["other"]


def test_power_has_a_panel_a_run_with_phases_behind(study: ExperimentResults) -> None:
    drawing = named(study, "power-time")
    assert [panel.title for panel in drawing.panels] == ["1 rank", "4 ranks", "16 ranks"]
    four: Any = drawing.panels[1]
    assert set(four.frame["series"]) == {"total", "core (not counted)"}
    assert four.frame.groupby("series")["y"].max()["total"] == pytest.approx(800)
    assert len(four.spans) == 3 + 2 * 4 + 1
