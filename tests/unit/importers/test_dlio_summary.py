"""Importing DLIO's summaries (MLPerf Storage)."""

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

# mlcommons/storage_results_v1.0 1c5efa73, Closed/HPE/results/Cray_C500_4xHDR200_3hosts/
# unet3d_h100/run-1/summary.json: what is read of it. U-Net's samples have 146,600,628 bytes
# (storage-conf/workload/unet3d_h100.yaml of mlcommons/storage).
HPE: dict[str, Any] = {
    "start": "2024-08-21T04:23:00.990348", "num_accelerators": 6, "num_hosts": 3,
    "hostname": "c-lmo1017",
    "metric": {
        "train_au_percentage": [91.12638990366979, 90.780716522704, 90.53686582427487,
                                90.40833415896918, 90.71047476721816],
        "train_au_mean_percentage": 90.7125562353672,
        "train_au_meet_expectation": "success",
        "train_throughput_samples_per_second": [58.63440271751043, 58.65038275332279,
                                                58.5279052815344, 58.41667494006104,
                                                58.613781129597214],
        "train_throughput_mean_samples_per_second": 58.56862936440517,
        "train_io_mean_MB_per_second": 8188.436361237563,
    },
    "num_files_train": 28000, "num_files_eval": 0, "num_samples_per_file": 1, "epochs": 5,
    "end": "2024-08-21T05:02:59.449583",
}  # fmt: skip


def write(folder: Path, content: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(content, indent=4))
    return folder


def test_a_summary(tmp_path: Path) -> None:
    (run,), refusals, _ = read_source(write(tmp_path, HPE))
    assert refusals == []
    assert run.benchmark == "dlio_training"
    assert run.point == {
        "ranks": 6, "ranks_per_node": 2, "sample_bytes": 146_600_628, "data_files": 28000,
        "samples_per_file": 1,
    }  # fmt: skip
    assert values(run) == pytest.approx({
        "throughput": 58.56862936440517, "read_rate": 8188.436361237563 * 2**20,
        "utilisation": 90.7125562353672, "run_time": 2398.459235,
    })  # fmt: skip
    assert run.samples["throughput_by_epoch"].shape == (5, 1)
    assert run.notes["expectation"] == "success"


def test_means_come_from_the_epochs_where_they_are_not_stated(tmp_path: Path) -> None:
    said = {key: HPE["metric"][key] for key in HPE["metric"] if "mean" not in key}
    (run,), _, _ = read_source(write(tmp_path, {**HPE, "metric": said}))
    assert values(run)["throughput"] == pytest.approx(58.56862936440517)
    assert "read_rate" not in run.metrics and "sample_bytes" not in run.point
    said = {**HPE["metric"], "train_au_mean_percentage": 99.0}
    (run,), _, _ = read_source(write(tmp_path, {**HPE, "metric": said}))
    assert "the mean of its epochs is 90.7" in run.notes["train_au_mean_percentage"]
    # A mean that is far from its epochs would make up the bytes of a sample, too.
    said = {**HPE["metric"], "train_throughput_mean_samples_per_second": 1e6}
    runs, (refusal,), _ = read_source(write(tmp_path, {**HPE, "metric": said}))
    assert runs == [] and "is 1e+06 in the file; the mean of its epochs is 58.5" in refusal.reason


def test_files_of_macos_are_named_and_left_out(tmp_path: Path) -> None:
    folder = write(tmp_path / "run1", HPE)
    (folder / "._summary.json").write_bytes(b"\0\5\x16\7" + b"\0" * 60)
    (run,), (refusal,), _ = read_source(tmp_path)
    assert run.point["ranks"] == 6
    assert refusal.file.name == "._summary.json" and "macOS" in refusal.reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"metric": None}, "no object 'metric'"),
        ({"num_accelerators": None}, "no num_accelerators"),
        ({"num_accelerators": 2.5}, "num_accelerators 2.5 is not a whole number"),
        ({"start": "today"}, "start 'today' is no date"),
        ({"metric": {"train_au_mean_percentage": 9.0}}, "neither train_throughput_mean"),
    ],
)
def test_what_is_refused(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    folder = write(tmp_path, {"train_au_mean_percentage": 1, **HPE, **change})
    runs, (refusal,), _ = read_source(folder)
    assert runs == [] and reason in refusal.reason


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damage_never_stops_the_reader(tmp_path: Path, data: st.DataObject) -> None:
    text = json.dumps(HPE, indent=1).encode()
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 100)))
    damaged = text[:begin] + data.draw(st.binary(max_size=12)) + text[end:]
    (tmp_path / "summary.json").write_bytes(damaged)
    for item in read_items(tmp_path, RankMap({}, None)):
        assert isinstance(item, ImportedRun | Refusal | NotRead)
        if isinstance(item, ImportedRun):
            assert all(abs(value) < 1e300 for value in values(item).values())
