"""Importing what Hugging Face's Trainer leaves."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scalesweep.importers import TABLE
from scalesweep.importers.detect_logs import read_items, read_source
from scalesweep.importers.imported_run import ImportedRun, NotRead, Refusal
from scalesweep.importers.rank_map import RankMap
from scalesweep.importers.which_importer import kind_of
from tests.fakes.mllog import values

# The last entry of trainer_state.json of NukumizuKazuhiko/ab-verifier-qwen2.5-0.5b 801c45d1.
LAST = {"epoch": 3.0, "step": 120, "total_flos": 597695573409792.0, "train_loss": 0.1191,
        "train_runtime": 80.2776, "train_samples_per_second": 23.917,
        "train_steps_per_second": 1.495}  # fmt: skip


def state(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    history = [{"epoch": 0.1, "loss": 1.2, "step": 5}, *(entries or (LAST,))]
    return {"global_step": 120, "train_batch_size": 8, "log_history": history, **more}


def write(folder: Path, **files: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=2))
    return folder


def one_of(folder: Path, ranks: int | None = None) -> ImportedRun:
    (run,), refusals, others = read_source(folder, ranks)
    assert (refusals, others) == ([], [])
    return run


def test_three_files_of_one_training_are_one_run(tmp_path: Path) -> None:
    results = {key: value for key, value in LAST.items() if key != "step"}
    folder = write(
        tmp_path / "qwen_run_3" / "output",
        trainer_state=state(), train_results=results, all_results={**results, "eval_loss": 0.2},
    )  # fmt: skip
    run = one_of(folder)
    assert run.file.name == "trainer_state.json"
    assert run.point == {"ranks": 1, "training": "qwen", "per_device_batch_size": 8}
    assert run.variant == {"ranks": "not stated"}
    # The steps are known whole, the printed rate has three decimals.
    assert values(run) == pytest.approx({
        "run_time": 80.2776, "final_loss": 0.1191, "steps_per_second": 120 / 80.2776,
        "samples_per_second": 23.917,
    })  # fmt: skip
    assert one_of(folder, 4).point["ranks"] == 4 and not one_of(folder, 4).variant


def test_results_count_where_the_state_is_of_a_checkpoint_or_damaged(tmp_path: Path) -> None:
    results = {key: value for key, value in LAST.items() if key != "step"}
    folder = write(tmp_path / "a", trainer_state={"log_history": []}, all_results=results)
    runs, _, others = read_source(folder)
    assert [run.file.name for run in runs] == ["all_results.json"]
    assert values(runs[0])["steps_per_second"] == 1.495
    assert [path.name for path in others] == ["trainer_state.json"]


def test_old_versions_counted_steps_and_called_them_samples(tmp_path: Path) -> None:
    """As train_results.json of rnpcs/philschmid-bart-large-cnn-samsum 79540ca0 shows: 14,732
    samples in 3 epochs of 363.7 s are 121.5 a second."""
    old = {"epoch": 3.0, "train_runtime": 363.7124, "train_samples": 14732,
           "train_samples_per_second": 1.905}  # fmt: skip
    run = one_of(write(tmp_path / "old", train_results=old))
    assert set(run.metrics) == {"run_time"}
    assert "counted steps; left out" in run.notes["samples_per_second"]
    right = {**old, "train_samples_per_second": 121.51}
    assert (
        values(one_of(write(tmp_path / "r", train_results=right)))["samples_per_second"] == 121.51
    )


def test_a_resumed_training_has_no_rates(tmp_path: Path) -> None:
    run = one_of(write(tmp_path, trainer_state=state({**LAST, "step": 60}, LAST)))
    assert set(run.metrics) == {"run_time"}
    assert run.unfinished.startswith("the training was resumed (1 earlier calls)")


def test_logged_losses_with_times_are_no_trainings(tmp_path: Path) -> None:
    """As transformers 5.17 writes them with include_num_input_tokens_seen."""
    logged = [
        {"loss": 6.95, "step": 5, "num_input_tokens_seen": 81920, "train_runtime": 1.6497,
         "train_tokens_per_second": 49656.123},
        {"loss": 6.9, "step": 120, "train_runtime": 3.2, "train_tokens_per_second": 298006.812},
    ]  # fmt: skip
    run = one_of(write(tmp_path, trainer_state=state(*logged, {**LAST, "train_loss": 6.9})))
    assert (run.unfinished, values(run)["run_time"]) == ("", 80.2776)
    assert values(run)["samples_per_second"] == 23.917
    cut = write(tmp_path / "cut", trainer_state=state(*logged))  # not ended
    assert read_source(cut)[0] == []


def test_a_resumed_training_is_known_by_its_losses(tmp_path: Path) -> None:
    """As CoralReefFish/whisper-tiny-nbaiLab 975bb203: train_loss is the sum of the last part's
    losses over all steps."""
    logged = [{"loss": 2.0, "step": 40}, {"loss": 1.0, "step": 80}, {"loss": 0.5, "step": 120}]
    whole = {"log_history": [*logged, {**LAST, "train_loss": 3.5 / 3}]}
    assert one_of(write(tmp_path / "whole", trainer_state=whole)).unfinished == ""
    part = {"log_history": [*logged, {**LAST, "train_loss": 1.5 / 3}]}
    run = one_of(write(tmp_path / "part", trainer_state=part))
    assert set(run.metrics) == {"run_time"}
    assert run.notes["resumed"] == "train_loss is 0.5, the mean of the logged losses 1.167"
    # A loss that is none tells nothing, and is no reason to refuse the times.
    nan = float("nan")
    torn = {"log_history": [{"loss": nan, "step": 40}, {**LAST, "train_loss": nan}]}
    run = one_of(write(tmp_path / "torn", trainer_state=torn))
    assert (run.unfinished, "final_loss" in run.metrics) == ("", False)
    assert values(run)["steps_per_second"] == pytest.approx(120 / 80.2776)


def test_coarse_rates_are_named(tmp_path: Path) -> None:
    slow = {"train_runtime": 642.2711, "train_samples_per_second": 0.249,
            "train_steps_per_second": 0.016}  # fmt: skip
    run = one_of(write(tmp_path, all_results=slow))
    assert run.notes["rounded"].endswith(": steps_per_second")


def test_a_table_with_such_a_column_stays_a_table(tmp_path: Path) -> None:
    table = tmp_path / "runs.jsonl"
    table.write_text("".join(f"{json.dumps({**LAST, 'ranks': n})}\n" for n in (1, 2)))
    assert kind_of(table) == TABLE


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"train_runtime": 0.0}, "train_runtime 0 is not above 0"),
        ({"train_runtime": "1"}, "train_runtime '1' is not a number"),
        ({"train_runtime": 1.0, "train_loss": [1]}, "train_loss '[1]' is not a number"),
        ({"train_runtime": None}, "no train_runtime"),
    ],
)
def test_what_is_refused(tmp_path: Path, content: dict[str, Any], reason: str) -> None:
    runs, (refusal,), _ = read_source(write(tmp_path, train_results=content))
    assert runs == [] and reason in refusal.reason


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "train_results.json"
    file.write_text(json.dumps(LAST, indent=2)[:-20])
    runs, (refusal,), _ = read_source(tmp_path)
    assert runs == [] and refusal.reason.startswith("not JSON")


def test_other_files_that_repeat_it_are_not_read(tmp_path: Path) -> None:
    write(tmp_path, train_results=LAST)
    (tmp_path / "report.md").write_text(f"result: {json.dumps(LAST)}\n")
    runs, refusals, others = read_source(tmp_path)
    assert (len(runs), refusals, [path.name for path in others]) == (1, [], ["report.md"])


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damage_never_stops_the_reader(tmp_path: Path, data: st.DataObject) -> None:
    text = json.dumps(state(), indent=1).encode()
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 100)))
    damaged = text[:begin] + data.draw(st.binary(max_size=12)) + text[end:]
    (tmp_path / "trainer_state.json").write_bytes(damaged)
    for item in read_items(tmp_path, RankMap({}, None)):
        assert isinstance(item, ImportedRun | Refusal | NotRead)
        if isinstance(item, ImportedRun):
            assert all(abs(value) < 1e300 for value in values(item).values())
