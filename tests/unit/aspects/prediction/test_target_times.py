"""Time to a target at counts that were not measured: epochs by global batch, never assumed."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scalesweep.aspects.prediction.section import prediction_section
from scalesweep.aspects.prediction.target_findings import predicted_target_times
from scalesweep.experiment.results import ExperimentResults
from tests.fakes.training import Point, Training, make_training

RANKS = [1, 2, 4, 8, 16]


def epochs(point: Point) -> int:
    """More for larger global batches."""
    return int(math.log2(point["ranks"] * point.get("batch_size", 64 // point["ranks"]))) + 1


def epoch_s(point: Point) -> float:
    return 100 / point["ranks"] + 2


def training(**changes: Any) -> Training:
    words: dict[str, Any] = {
        "axes": {"ranks": RANKS, "batch_size": [4, 8]}, "fixed": {"target_accuracy": 0.88},
        "epochs": epochs, "epoch_s": epoch_s, "noise": 0.001, "watts": lambda point, repeat: None,
        "predict": [16, 32, 100_000],
    }  # fmt: skip
    return Training(**{**words, **changes})


def table(study: ExperimentResults) -> pd.DataFrame:
    found = study.tables["target_times"]
    assert found is not None
    return found


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResults:
    return make_training(tmp_path_factory.mktemp("target"), training())["train"]


def test_epochs_are_those_of_the_same_global_batch(study: ExperimentResults) -> None:
    rows = table(study)
    assert rows[["batch_size", "ranks"]].to_numpy().tolist() == [
        [4, 32], [4, 100_000], [8, 32], [8, 100_000],
    ]  # fmt: skip
    near = rows.iloc[0]
    # 32 x 4 samples, as 16 x 8 had: 8 epochs. The barrier takes 1 % of each, validation 20 %.
    assert (near["global_batch"], near["epochs"], near["epochs_at"]) == (128, 8, "16")
    assert near["runs"] == 3
    epoch = 1.21 * epoch_s({"ranks": 32})
    assert near["epoch_seconds"] == pytest.approx(epoch, rel=0.1)
    assert near["time"] == pytest.approx(near["epochs"] * near["epoch_seconds"])
    assert near["time_low"] < 8 * epoch < near["time_high"]
    assert set(rows["source"]) == {"predicted"} and set(rows["based_on"]) == {"measured"}


def test_another_global_batch_is_refused_with_what_to_measure(study: ExperimentResults) -> None:
    rows = table(study)
    assert rows["time"].notna().tolist() == [True, False, False, False]
    assert rows["refused"].tolist()[2] == (
        "epochs to the target were not measured at a global batch of 256, that of 32 ranks, and "
        "are never assumed to be those of another: measure them at 16 ranks with batches of 16"
    )


def test_findings_say_what_the_epochs_rest_on(study: ExperimentResults) -> None:
    texts = [one.sentence for one in predicted_target_times(study)]
    assert len(texts) == 2
    assert texts[0].startswith("Predicted for batch_size 4: time to the target at 32 ranks: ")
    assert "8.0 [7.5, 8.5] epochs, as measured at a global batch of 128 (16 ranks)" in texts[0]
    assert texts[1].startswith("Predicted for batch_size 8: no time to the target at 32 ranks: ")


def test_the_page_has_them_with_refusals(study: ExperimentResults) -> None:
    section = prediction_section(study, 10)
    assert section is not None and section.targets is not None
    texts = [[cell.text for cell in row] for row in section.targets["rows"]]
    assert [row[:2] for row in texts[::2]] == [["batch_size 4", "32"], ["batch_size 8", "32"]]
    assert texts[0][3] == "8.0 [7.5,\N{NO-BREAK SPACE}8.5]" and texts[0][-1] == ""
    assert texts[2][2] == "–" and texts[2][-1].startswith("epochs to the target were not measured")


def test_a_global_batch_that_stays_needs_no_other_series(tmp_path: Path) -> None:
    axes = {"ranks": RANKS}
    fixed = {"target_accuracy": 0.88, "global_batch_size": 64}
    study = make_training(tmp_path, training(axes=axes, fixed=fixed))["train"]
    row = table(study).iloc[0]
    assert (row["global_batch"], row["epochs"]) == (64, 7)
    assert row["epochs_at"] == "1, 2, 4, 8 and 16"
    assert row["time_low"] < 7 * 1.21 * epoch_s({"ranks": 32}) < row["time_high"]


def test_runs_that_missed_the_target_have_no_epochs_to_it(tmp_path: Path) -> None:
    late = training(
        axes={"ranks": RANKS}, fixed={"target_accuracy": 0.88, "global_batch_size": 64},
        end=lambda point: 0.9 if point["ranks"] < 4 else 0.8, predict=[32],
    )  # fmt: skip
    assert table(make_training(tmp_path, late)["train"])["epochs_at"].tolist() == ["1 and 2"]


def test_an_epoch_that_grows_with_the_ranks_does_not_compare(tmp_path: Path) -> None:
    weak = training(
        axes={"ranks": RANKS}, fixed={"target_accuracy": 0.88, "global_batch_size": 64},
        scaling="weak", samples=lambda point: 100 * point["ranks"], predict=[32],
    )  # fmt: skip
    (refused,) = table(make_training(tmp_path, weak)["train"])["refused"]
    assert refused.startswith("the samples of an epoch grow with the ranks")


def test_without_a_target_there_is_no_table(tmp_path: Path) -> None:
    study = make_training(tmp_path, training(axes={"ranks": RANKS}, fixed={}))["train"]
    assert study.tables["target_times"] is None
    assert predicted_target_times(study) == []
