"""Importing golden values of Megatron-LM's functional tests."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scalesweep.importers.detect_logs import read_items, read_source
from scalesweep.importers.imported_run import ImportedRun, NotRead, Refusal
from scalesweep.importers.rank_map import RankMap
from tests.fakes.mllog import values

CONFIG = """ENV_VARS:
  CUDA_DEVICE_MAX_CONNECTIONS: 1
MODEL_ARGS:
  --micro-batch-size: 4
  --global-batch-size: 32
  --seq-length: 1024
  --rampup-batch-size: "[384 384 97656250]"
  --tensor-model-parallel-size: 2
  --pipeline-model-parallel-size: 2 # a comment
  --min-lr: 1.0e-5
TEST_TYPE: regular
"""
TIMES = {"2": 6.03813, "10": 0.2902, "3": 0.31674, "4": 0.29154, "5": "nan"}


def golden(times: Any) -> dict[str, Any]:
    series = {"start_step": 1, "end_step": 50, "step_interval": 1}
    memory = {"1": 757802496.0, "2": 935253504.0, "3": 935253504.0}
    return {
        "lm loss": {**series, "values": {"1": 10.9, "2": 10.5, "10": 9.1}},
        "mem-max-allocated-bytes": {**series, "values": memory},
        "iteration-time": times,
    }


def write(folder: Path, content: Any, name: str = "golden_values_dev_dgx_h100.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(content, indent=4))
    return folder


def test_a_mean_alone_is_refused(tmp_path: Path) -> None:
    content = {**golden(None), "iteration_timing_avg": 0.3}
    del content["iteration-time"]
    runs, (refusal,), _ = read_source(write(tmp_path / "old", content, "golden_values_dev.json"))
    assert runs == []
    assert "only their mean (iteration_timing_avg), as until September 2024" in refusal.reason


@pytest.mark.parametrize(
    "times",
    [
        {"start_step": 1, "values": TIMES},
        {"start_step": 0, "values": [6.03813, 0.31674, 0.29154, "nan", 0.2902]},
        TIMES,
    ],
)
def test_a_case_and_its_configuration(tmp_path: Path, times: Any) -> None:
    folder = write(tmp_path / "gpt3_tp2_pp2", golden(times))
    (folder / "model_config.yaml").write_text(CONFIG)
    (run,), refusals, others = read_source(folder)
    assert (refusals, others) == ([], [])
    assert run.point == {
        "ranks": 1, "case": "gpt3_tp2_pp2", "tp": 2, "pp": 2, "micro_batch_size": 4,
        "global_batch_size": 32, "sequence_length": 1024,
    }  # fmt: skip
    assert run.variant == {"platform": "dev_dgx_h100", "ranks": "not stated"}
    assert values(run) == pytest.approx(
        {"step_time": (0.31674 + 0.29154) / 2, "peak_memory": 935253504.0, "final_loss": 9.1}
    )
    assert run.samples["iteration_times"][:, 0].tolist() == [6.03813, 0.31674, 0.29154, 0.2902]


def test_bare_numbers_and_no_configuration(tmp_path: Path) -> None:
    (run,), _, _ = read_source(write(tmp_path, {"iteration-time": 0.5, "lm loss": 3.0}), 8)
    assert values(run) == {"step_time": 0.5, "final_loss": 3.0}
    assert run.point["ranks"] == 8 and run.variant == {"platform": "dev_dgx_h100"}
    assert run.notes["configuration"] == "no model_config.yaml beside it"


def test_a_damaged_configuration_is_noted(tmp_path: Path) -> None:
    folder = write(tmp_path, golden(TIMES))
    (folder / "model_config.yaml").write_text("MODEL_ARGS: [")
    (run,), _, _ = read_source(folder)
    assert "model_config.yaml is not read" in run.notes["configuration"]


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        ({"values": {"1": 0.0}}, "no times above 0"),
        ({"values": {"1": "nan"}}, "no times above 0"),
        ({"values": {"one": 1.0}}, "'one' is no iteration"),
        ({"values": {"1": [1.0]}}, "'[1.0]' is not a number"),
    ],
)
def test_what_is_refused(tmp_path: Path, times: Any, reason: str) -> None:
    runs, (refusal,), _ = read_source(write(tmp_path, golden(times)))
    assert runs == [] and reason in refusal.reason


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damage_never_stops_the_reader(tmp_path: Path, data: st.DataObject) -> None:
    files = {"golden_values_dev.json": json.dumps(golden(TIMES), indent=1).encode(),
             "model_config.yaml": CONFIG.encode()}  # fmt: skip
    damaged = data.draw(st.sampled_from(sorted(files)))
    for name, text in files.items():
        begin = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(begin, min(len(text), begin + 100)))
        middle = data.draw(st.binary(max_size=12))
        (tmp_path / name).write_bytes(
            text[:begin] + middle + text[end:] if name == damaged else text
        )
    for item in read_items(tmp_path, RankMap({}, None)):
        assert isinstance(item, ImportedRun | Refusal | NotRead)
        if isinstance(item, ImportedRun):
            assert all(abs(value) < 1e300 for value in values(item).values())
