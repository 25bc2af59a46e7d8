"""Importing histories of Keras's CSVLogger."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.core.record import read_record
from scalesweep.importers.detect_logs import read_source
from scalesweep.importers.imported_run import ImportedRun, Refusal
from tests.fakes.imported_runs import import_runs

Read = Callable[..., tuple[list[ImportedRun], list[Refusal]]]
OLD = "epoch,acc,loss,val_acc,val_loss\n"
ROWS = "0,0.5,0.7,0.55,0.69\n1,0.625,0.6,0.75,0.5\n"


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write texts into a history each and read them."""

    def reader(*texts: str, ranks: int | None = None, name: str = "training_") -> Any:
        for number, text in enumerate(texts):
            (tmp_path / f"{name}{number}.log").write_text(text)
        return read_source(tmp_path, ranks)[:2]

    return reader


SAME = {
    "as Keras 2.2 names them": OLD + ROWS,
    "as Keras 2.3 names them": "epoch,accuracy,loss,val_accuracy,val_loss\n" + ROWS,
    "semicolons": (OLD + ROWS).replace(",", ";"),
    "tabs": (OLD + ROWS).replace(",", "\t"),
    "quotes, a mark and Windows line ends": "\ufeff"
    + (OLD + ROWS).replace(",", '","').replace("epoch", '"epoch').replace("\n", '"\r\n')
    .replace("\n0", '\n"0').replace("\n1", '\n"1'),
    "another order": "epoch,val_loss,loss,acc,val_acc\n0,0.69,0.7,0.5,0.55\n1,0.5,0.6,0.625,0.75\n",
    "more columns": "epoch,acc,loss,time,val_acc,val_loss\n"
    "0,0.5,0.7,12.5,0.55,0.69\n1,0.625,0.6,x,0.75,0.5\n",
    "blank lines": OLD + "\n" + ROWS.replace("\n", "\n\n"),
}  # fmt: skip


@pytest.mark.parametrize("kind", SAME)
def test_what_a_history_tells(read: Read, kind: str) -> None:
    ((run,), refusals) = read(SAME[kind])
    assert refusals == []
    assert run.benchmark == "keras_history"
    # Whose history it is only its name says, and how many epochs it has is what came of the run.
    assert run.point == {"ranks": 1, "history": "training_0"}
    assert run.variant == {"ranks": "not stated"}
    assert {name: metric["value"] for name, metric in run.metrics.items()} == {
        "epochs_run": 2,
        "final_loss": 0.6,
        "final_validation_loss": 0.5,
        "final_accuracy": 0.625,
        "final_validation_accuracy": 0.75,
    }  # above all no time, which a history does not tell
    expected = {
        "loss": [0.7, 0.6], "validation_loss": [0.69, 0.5],
        "accuracy": [0.5, 0.625], "validation_accuracy": [0.55, 0.75],
    }  # fmt: skip
    assert set(run.samples) == set(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(run.samples[name], np.array(values)[:, None])
    assert run.phases == {} and run.phase_spans == ()
    assert ("columns_not_read" in run.notes) == (kind == "more columns")


def test_ranks(read: Read) -> None:
    ((run,), _) = read(OLD + ROWS, ranks=4)
    assert run.point == {"ranks": 4, "history": "training_0"} and run.variant == {}
    assert "one" in read(OLD + ROWS)[0][0].notes["assumed"]["ranks"]


def test_missing_values_stay_missing(read: Read) -> None:
    rows = "0,0.5,NA,0.55,0.69,1e-3\n1,,nan,0.75,inf,0.0005\n"
    ((run,), _) = read(OLD.replace("\n", ",lr\n") + rows)
    assert "loss" not in run.samples and "final_accuracy" not in run.metrics
    np.testing.assert_array_equal(run.samples["accuracy"][:, 0], [0.5, np.nan])
    np.testing.assert_array_equal(run.samples["learning_rate"][:, 0], [1e-3, 5e-4])
    assert "final_validation_loss" not in run.metrics
    assert run.metrics["final_validation_accuracy"]["value"] == 0.75


def test_a_history_that_was_appended_to(read: Read) -> None:
    runs, refusals = read(OLD + ROWS + "0,0.4,0.8,0.45,0.7\n" + OLD + ROWS.replace("7", "8"))
    assert refusals == []
    assert [run.metrics["epochs_run"]["value"] for run in runs] == [2, 1, 2]
    assert [run.line for run in runs] == [2, 4, 6]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (OLD, 1, "a header without an epoch"),
        (OLD + "0,0.7,0.5\n" + ROWS, 2, "3 fields, not 5"),
        (OLD + ROWS + "2,0.7,0.5,0.8,0.4x\n", 4, "val_loss '0.4x' is not a number"),
        (OLD + ROWS + "3,0.7,0.5,0.8,0.4\n", 4, "epoch 3 where 2 is expected"),
        (OLD + "5,0.7,0.5,0.8,0.4\n", 2, "epoch 5 where 0 is expected"),
        (OLD + "x,0.7,0.5,0.8,0.4\n", 2, "epoch 'x' is not a whole number"),
        ("epoch,acc,accuracy\n0,0.5,0.5\n", 2, "a column is named twice"),
        (OLD + "0,,,,\n", 2, "no loss and no accuracy in any epoch"),
        ("note\n" + OLD + ROWS, 1, "not CSV with a header"),
    ],
)
def test_what_is_refused(read: Read, text: str, line: int, reason: str) -> None:
    runs, (refusal,) = read(text)
    assert runs == [] and refusal.line == line and reason in refusal.reason


def test_what_is_no_history(tmp_path: Path) -> None:
    (tmp_path / "history.csv").write_text("epoch,local_times,global_times\n0,[1.0],[1.0]\n")
    (tmp_path / "model.txt").write_text("[Global_Params]\nloss = 'mse'\nepochs = 400\n")
    (tmp_path / "training.log").write_text(OLD + ROWS)
    # Lightning's CSVLogger: several rows in an epoch, most without a validation.
    (tmp_path / "metrics.csv").write_text("epoch,step,train_loss,val_loss\n0,49,2.6,\n0,99,,2.4\n")
    runs, refusals, others = read_source(tmp_path)
    assert len(runs) == 1 and refusals == []
    assert [file.name for file in others] == ["history.csv", "metrics.csv", "model.txt"]


def test_records(read: Read, tmp_path: Path) -> None:
    runs, _ = read(OLD + ROWS, OLD + ROWS.replace("0.7,", "0.71,"), OLD + ROWS, name="nt3_seed")
    written, refused = import_runs(runs, tmp_path / "runs" / "imported")
    assert [entry.repeat for entry in written] == [0, 1]
    assert "the same run as in" in refused[0].reason
    (record, _) = (read_record(path) for path in tmp_path.glob("runs/imported/*/record.json"))
    assert record["wall_s"] is None and record["phases"] == {}
    assert "phase_spans" not in record
    assert record["work"]["samples_per_epoch"] is None  # a history does not tell its data


# A history of digits that are classified: what it is of, the file does not say. iterative/dvc.org,
# content/docs/command-reference/plots/show.md, logs.csv.
DIGITS = """\
epoch,accuracy,loss,val_accuracy,val_loss
0,0.9418667,0.19958884770199656,0.9679,0.10217399864746257
1,0.9763333,0.07896138601688048,0.9768,0.07310650711813942
2,0.98375,0.05241111190887168,0.9788,0.06665669009438716
"""


def test_a_history_states_nothing_of_its_program(read: Read, tmp_path: Path) -> None:
    runs, refusals = read(DIGITS)
    assert refusals == []
    assert runs[0].metrics["final_validation_loss"]["value"] == 0.06665669009438716
    written, _ = import_runs(runs, tmp_path / "runs" / "imported")
    (record,) = (read_record(path) for path in tmp_path.glob("runs/imported/*/record.json"))
    assert record["benchmark"] == "keras_history"
    assert set(record["point"]) == {"ranks", "ranks_per_node", "history"}  # no NT3, no filters
    assert written[0].benchmark.main_metric == "final_validation_loss"


def test_histories_of_other_names_are_no_repeats(tmp_path: Path) -> None:
    for place, name in enumerate(
        ("resnet_50.csv", "vgg16.csv", "vgg16_run2.csv", "vgg16.run3.csv")
    ):
        (tmp_path / name).write_text(OLD + ROWS.replace("0.7,", f"0.7{place},"))
    runs, _, _ = read_source(tmp_path)
    written, refused = import_runs(runs, tmp_path / "runs" / "imported")
    assert refused == []
    found = sorted((str(run.point["history"]), run.repeat) for run in written)
    assert found == [("resnet_50", 0), ("vgg16", 0), ("vgg16", 1), ("vgg16", 2)]
