"""Small result files: Keras's and Lightning's CSV, Hugging Face's and DLIO's JSON."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.importers import TABLE
from scalesweep.importers.imported_run import ImportedRun
from scalesweep.importers.which_importer import kind_of
from tests.conftest import ROOT
from tests.fakes.imported_runs import read_source
from tests.fakes.mllog import values

FOLDER = ROOT / "tests" / "acceptance" / "imports" / "logs"
LIGHTNING = (FOLDER / "lightning" / "metrics.csv").read_text()
# Of one process, which prints no rates of all.
ALONE = re.sub("(?m),[^,]*,[^,]*$", "", LIGHTNING)
OLD = "epoch,acc,loss,val_acc,val_loss\n"
ROWS = "0,0.5,0.7,0.55,0.69\n1,0.625,0.6,0.75,0.5\n"
HF: dict[str, Any] = json.loads((FOLDER / "hf" / "trainer_state.json").read_text())
FIRST, LAST = HF["log_history"]
RESULTS = {key: value for key, value in LAST.items() if key != "step"}
# mlcommons/storage_results_v1.0 1c5efa73: U-Net's samples have 146,600,628 bytes.
HPE: dict[str, Any] = json.loads((FOLDER / "dlio" / "summary.json").read_text())


def written(folder: Path, **files: Any) -> Path:
    """A folder with files of JSON (or text) by their names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content, indent=2)
        ends = "csv" if isinstance(content, str) else "json"
        (folder / f"{name}.{ends}").write_text(text)
    return folder


def one_of(folder: Path, ranks: int | None = None) -> ImportedRun:
    """The only run of a folder."""
    (run,), *others = read_source(folder, ranks)
    assert others == [[], []]
    return run


FINAL = {"epochs_run": 2, "final_loss": 0.6, "final_validation_loss": 0.5, "final_accuracy": 0.625,
         "final_validation_accuracy": 0.75}  # fmt: skip
HISTORIES = {
    "quotes, a mark and Windows line ends": "\ufeff"
    + (OLD + ROWS).replace(",", '","').replace("epoch", '"epoch').replace("\n", '"\r\n')
    .replace("\n0", '\n"0').replace("\n1", '\n"1'),
    "more columns": "epoch,acc,loss,time,val_acc,val_loss\n"
    "0,0.5,0.7,12.5,0.55,0.69\n1,0.625,0.6,x,0.75,0.5\n",
    "a cut last row": OLD + ROWS + "2,0.7,0.5\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", HISTORIES)
def test_what_a_history_tells(tmp_path: Path, kind: str) -> None:
    (tmp_path / "training_0.log").write_text(HISTORIES[kind])
    run = one_of(tmp_path)
    # Whose history it is only its name says; it has neither program nor times.
    assert run.point == {"ranks": 1, "history": "training_0"}
    assert run.variant == {"ranks": "not stated"} and one_of(tmp_path, 4).point["ranks"] == 4
    assert values(run) == FINAL
    np.testing.assert_array_equal(run.samples["validation_loss"], [[0.69], [0.5]])


@pytest.mark.parametrize("mark", ["/", "|", "-"])
def test_rates_of_lightning(tmp_path: Path, mark: str) -> None:
    folder = tmp_path / "vit_run_2" / "lightning_logs" / "version_0"
    run = one_of(written(folder, metrics=LIGHTNING.replace("/", mark)))
    # The world size is told by the rates.
    assert run.point == {"ranks": 16, "training": "vit"} and run.variant == {}
    assert values(run)["samples_per_second"] == pytest.approx(3.9 * 8 * 16)
    written(folder, metrics=ALONE.replace("/", mark))
    assert one_of(folder).variant == {"ranks": "not stated"}
    assert values(one_of(folder, 4))["samples_per_second"] == pytest.approx(3.9 * 8 * 4)


def test_a_time_of_lightning_that_holds_evaluations_is_left_out(tmp_path: Path) -> None:
    """As Lightning 2.2 printed 8,951 s for a training of 50 s with three evaluations."""
    run = one_of(written(tmp_path, metrics=LIGHTNING.replace("17.51", "917.51")))
    assert "run_time" not in run.metrics
    assert values(run)["batches_per_second"] == pytest.approx(3.9)


def test_three_files_of_one_training_are_one_run(tmp_path: Path) -> None:
    folder = written(
        tmp_path / "qwen_run_3" / "output",
        trainer_state=HF, train_results=RESULTS, all_results={**RESULTS, "eval_loss": 0.2},
    )  # fmt: skip
    run = one_of(folder)
    assert run.point == {"ranks": 1, "training": "qwen", "per_device_batch_size": 8}
    # The steps are known whole, the printed rate has three decimals.
    assert values(run)["steps_per_second"] == pytest.approx(120 / 80.2776)
    # Results count where the state is of a checkpoint.
    written(folder, trainer_state={"log_history": []}, train_results={})
    runs, _, others = read_source(folder)
    assert [run.file.name for run in runs] == ["all_results.json"]
    assert values(runs[0])["steps_per_second"] == 1.495 and len(others) == 2


def test_old_versions_counted_steps_and_called_them_samples(tmp_path: Path) -> None:
    """As train_results.json of rnpcs/philschmid-bart-large-cnn-samsum 79540ca0 shows: 14,732
    samples in 3 epochs of 363.7 s are 121.5 a second."""
    old = {"epoch": 3.0, "train_runtime": 363.7124, "train_samples": 14732,
           "train_samples_per_second": 1.905}  # fmt: skip
    run = one_of(written(tmp_path, train_results=old))
    assert set(run.metrics) == {"run_time"}
    written(tmp_path, train_results={**old, "train_samples_per_second": 121.51})
    assert values(one_of(tmp_path))["samples_per_second"] == 121.51


def test_a_resumed_training_has_no_rates(tmp_path: Path) -> None:
    twice = {**HF, "log_history": [FIRST, {**LAST, "step": 60}, LAST]}
    run = one_of(written(tmp_path, trainer_state=twice))
    assert set(run.metrics) == {"run_time"}
    assert run.unfinished.startswith("the training was resumed")
    # As CoralReefFish/whisper-tiny-nbaiLab 975bb203: train_loss is the sum of the last part's
    # losses over all steps.
    logged = [{"loss": 2.0, "step": 40}, {"loss": 1.0, "step": 80}, {"loss": 0.5, "step": 120}]
    whole = {"log_history": [*logged, {**LAST, "train_loss": 3.5 / 3}]}
    assert one_of(written(tmp_path, trainer_state=whole)).unfinished == ""
    part = {"log_history": [*logged, {**LAST, "train_loss": 1.5 / 3}]}
    assert one_of(written(tmp_path, trainer_state=part)).unfinished
    # A loss that is none tells nothing, and is no reason to refuse the times.
    torn = {"log_history": [{"loss": math.nan, "step": 40}, {**LAST, "train_loss": math.nan}]}
    run = one_of(written(tmp_path, trainer_state=torn))
    assert (run.unfinished, "final_loss" in run.metrics) == ("", False)


def test_a_summary_of_dlio_without_means(tmp_path: Path) -> None:
    said = {key: value for key, value in HPE["metric"].items() if "mean" not in key}
    run = one_of(written(tmp_path, summary={**HPE, "metric": said}))
    assert values(run)["throughput"] == pytest.approx(58.56862936440517)
    assert "read_rate" not in run.metrics and "sample_bytes" not in run.point


FAR = {**HPE["metric"], "train_throughput_mean_samples_per_second": 1e6}
REFUSED: list[tuple[str, Any, str]] = [
    ("a", OLD, "a header without an epoch"),
    ("a", OLD + "0,0.7,0.5\n" + ROWS, "3 fields, not 5"),
    ("a", OLD + ROWS + "2,0.7,0.5,0.8,0.4x\n", "val_loss '0.4x' is not a number"),
    ("a", OLD + ROWS + "3,0.7,0.5,0.8,0.4\n", "epoch 3 is not the next"),
    ("metrics", "".join(LIGHTNING.splitlines(True)[:5]), "2 rates of ThroughputMonitor: too few"),
    ("metrics", ALONE.replace("\n0,1,", "\n0,", 1), "a cut line?"),
    ("metrics", LIGHTNING.replace(",64.0,", ",51.2,"), "14.359 ranks"),
    ("train_results", {"train_runtime": 0.0}, "train_runtime 0 is not above 0"),
    ("summary", {"train_au_mean_percentage": 1, **HPE, "metric": None}, "no rate of samples"),
    ("summary", {**HPE, "num_accelerators": None}, "no num_accelerators"),
    ("summary", {**HPE, "metric": FAR}, "the mean is 1e+06 in the file"),
]


@pytest.mark.parametrize(("name", "content", "reason"), REFUSED)
def test_what_is_refused(tmp_path: Path, name: str, content: Any, reason: str) -> None:
    runs, (refusal,), _ = read_source(written(tmp_path, **{name: content}))
    assert runs == [] and reason in refusal.reason


def test_what_is_none_of_these(tmp_path: Path) -> None:
    written(
        tmp_path, history="epoch,local_times,global_times\n0,[1.0],[1.0]\n",
        metrics="epoch,step,train_loss,val_loss\n0,49,2.6,\n0,99,,2.4\n", good=OLD + ROWS,
    )  # fmt: skip
    (tmp_path / "report.md").write_text(f"result: {json.dumps(LAST)}\n")
    runs, refusals, others = read_source(tmp_path)
    assert (len(runs), refusals) == (1, [])
    assert [file.name for file in others] == ["history.csv", "metrics.csv", "report.md"]
    table = tmp_path / "runs.jsonl"
    table.write_text("".join(f"{json.dumps({**LAST, 'ranks': n})}\n" for n in (1, 2)))
    assert kind_of(table) == TABLE
