"""Summaries: the published numbers, refusals, and what is left out."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.analysis.metrics import quantities_of
from scalesweep.analysis.table_io import write_parquet
from scalesweep.core.errors import UserError
from scalesweep.core.rank_columns import by_column
from scalesweep.tables import summary
from tests.fakes.records import GLOBAL, LOCAL, make_record, times, write_run


def summarise_run(record: dict[str, Any], samples: dict[str, Any]) -> dict[str, Any]:
    """What the summary says of one run: {column: value}; raises what it says of one of no use."""
    row = summary.row_of(record, samples)
    return {**row.identity, **row.epochs, **row.plain}


def _metric(value: float | None, unit: str = "images/s") -> dict[str, Any]:
    return {"value": value, "unit": unit, "better": "higher", "scope": "total"}


def test_summary_file_round_trip_and_types(tmp_path: Path) -> None:
    first = write_run(tmp_path, "a", times(), metrics={"images": _metric(1.5)})
    point = {"ranks": 2, "batch_size": 4, "layers": [1, 2], "mode": "x"}
    second = write_run(tmp_path, "b", times(), point=point, benchmark="other")
    frame = summary.build_summary([first, second])
    assert frame["run_id"].tolist() == ["a", "b"]
    assert frame["batch_size"].dtype == np.int64
    assert frame["layers"].tolist() == [None, "[1,2]"]
    assert frame["mode"].tolist() == [None, "x"]
    assert frame["shard"].isna().tolist() == [False, True]
    assert quantities_of(frame, "data_loading")["images"].unit == "images/s"
    assert "images" not in quantities_of(frame, "other")
    out = tmp_path / "summary.parquet"
    write_parquet(frame, out, {})
    again = pd.read_parquet(out)
    assert again.attrs == frame.attrs
    pd.testing.assert_frame_equal(again, frame, check_dtype=False)
    assert again["total_time_mean_later"].tolist() == frame["total_time_mean_later"].tolist()


def test_bad_records_are_all_named(tmp_path: Path) -> None:
    good = write_run(tmp_path, "good", times())
    cut = write_run(tmp_path, "cut", times())
    cut.write_bytes(cut.read_bytes()[:100])
    changed = write_run(tmp_path, "changed", times())
    samples = changed.parent / "samples.npz"
    content = bytearray(samples.read_bytes())
    content[300] ^= 1
    samples.write_bytes(content)
    zero = write_run(tmp_path, "zero", times(np.zeros((5, 2))))
    gone = tmp_path / "gone" / "record.json"
    alien = write_run(tmp_path, "alien", times())
    alien.write_text(json.dumps(make_record("somebody")))
    with pytest.raises(UserError) as caught:
        summary.build_summary([good, cut, changed, zero, gone, alien])
    message = str(caught.value)
    broken: dict[str, str] = {}
    frame = summary.build_summary([good, cut, changed, gone, alien], broken=broken)
    assert frame["run_id"].tolist() == ["good"]
    assert sorted(broken) == ["alien", "changed", "cut", "gone"]
    assert broken["changed"] == "samples.npz was changed: checksum differs"
    assert broken["gone"] == "record.json is missing"
    assert "cut: the record is not whole JSON" in message
    assert "changed: samples.npz was changed" in message
    assert "zero: local_times of epoch 0" in message
    assert message.endswith("; and 2 more")


def test_only_runs_whose_files_were_touched_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [write_run(tmp_path, name, times(), metrics={"speed": _metric(1.0)}) for name in "ab"]
    kept, every = tmp_path / summary.ROWS, summary.build_summary(paths)
    read: list[str] = []
    really = summary.read_rows

    def reading(paths: list[Path]) -> Any:
        read.extend(path.parent.name for path in paths)
        return really(paths)

    monkeypatch.setattr(summary, "read_rows", reading)
    for touched, again in ((None, ["a", "b"]), (None, []), ("b", ["b"])):
        read.clear()
        if touched:
            samples = tmp_path / touched / "samples.npz"
            samples.write_bytes(samples.read_bytes())
        frame = summary.build_summary(paths, remember=kept)
        assert read == again
        pd.testing.assert_frame_equal(frame, every)
        assert frame.attrs == every.attrs
    samples.write_bytes(samples.read_bytes()[:-9])
    broken: dict[str, str] = {}
    assert summary.build_summary(paths, broken, remember=kept)["run_id"].tolist() == ["a"]
    assert "b" in broken


def test_a_metric_that_means_something_else_is_left_out_of_that_run(tmp_path: Path) -> None:
    paths = [
        write_run(tmp_path, name, {}, metrics={"speed": _metric(1.0, unit), "other": _metric(2.0)})
        for name, unit in (("a", "GB/s"), ("b", "MB/s"), ("c", "MB/s"), ("d", "MB/s"))
    ]
    frame = summary.build_summary(paths)
    assert np.isnan(frame["speed_mean_run"]).tolist() == [True, False, False, False]
    assert frame["other_mean_run"].tolist() == [2.0] * 4
    (warning,) = frame["warnings"].dropna()
    assert warning == (
        "metric 'speed' is left out: it is in 'GB/s', higher is better, of all ranks, in most "
        "runs in 'MB/s', higher is better, of all ranks"
    )
    assert frame.attrs["metrics"]["data_loading"]["speed"]["unit"] == "MB/s"
    # Of as many the first counts.
    alone = summary.build_summary(paths[:2])
    assert np.isnan(alone["speed_mean_run"]).tolist() == [False, True]


@pytest.mark.parametrize(
    ("metrics", "left", "lost"),
    [
        ({"speed": _metric(1.0), "speed_eff": _metric(2.0)}, "speed", "speed_eff"),
        ({"x": _metric(1.0), "total_time": _metric(2.0, "ms")}, "x", "total_time"),
    ],
)
def test_a_metric_with_the_name_of_a_quantity_is_left_out(
    tmp_path: Path, metrics: dict[str, Any], left: str, lost: str
) -> None:
    frame = summary.build_summary([write_run(tmp_path, "a", {}, metrics=metrics)])
    assert frame[f"{left}_mean_run"].tolist() == [metrics[left]["value"]]
    assert f"{lost}_mean_run" not in frame
    assert f"metric '{lost}' is left out" in frame["warnings"][0]


BAD_ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "objects": ({"local_times": np.array([[None, {}]])}, "cannot be read"),
    "different shapes": (times(LOCAL[:4], GLOBAL), "different shapes"),
    "nan": ({"global_times": np.array([[1.0, math.nan]])}, "epoch 0, rank 1 is nan"),
    "other ranks": ({"loss": np.ones((2, 3))}, "holds 3 ranks, the point has 2"),
    "too long": ({"global_times": np.full((2, 2), 1e200)}, "not a positive time"),
    "steps of no shape": (
        {"step_times": np.array(3.0), "warmup_step_times": np.array("x")}, "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_a_run_that_cannot_be_summarised_takes_no_other_with_it(tmp_path: Path, name: str) -> None:
    arrays, why = BAD_ARRAYS[name]
    paths = [write_run(tmp_path, i, times() if i == "a" else arrays) for i in ("a", "b")]
    broken: dict[str, str] = {}
    frame = summary.build_summary(paths, broken=broken)
    assert frame["run_id"].tolist() == ["a"] and list(broken) == ["b"]
    assert why in broken["b"] and "\n" not in broken["b"]
    with pytest.raises(UserError, match=r"^b: "):
        summary.build_summary(paths)


def test_steps_that_become_steady_after_the_declared_warmup_are_told() -> None:
    steady = np.full((40, 2), 0.1) + np.random.default_rng(1).normal(0, 0.001, (40, 2))
    slow = np.vstack([np.linspace(0.5, 0.2, 6)[:, None] * np.ones(2), steady[6:]])
    drifts = steady * np.linspace(2, 1, 40)[:, None]
    epochs = np.full((12, 2), 6.0)
    epochs[:2] = [[150.0], [60.0]]
    warm_up = np.full((4, 2), 1.0)
    for samples, warnings in (
        ({"warmup_step_times": warm_up, "step_times": steady}, None),
        ({"warmup_step_times": warm_up, "step_times": slow},
         "steps are steady only from 10 on; let the first 10 steps warm up"),
        ({"warmup_step_times": warm_up, "step_times": drifts}, "; run more steps"),
        (times(epochs, epochs), "warm-up declared: 1, but epochs are steady only from 2 on; raise"),
    ):  # fmt: skip
        told = summarise_run(make_record(notes={}), samples)["warnings"]
        assert told is None if warnings is None else warnings in told


def test_what_was_noted_of_a_log_is_in_the_table_of_runs() -> None:
    """Ranks that disagree on a total were told in a terminal only."""
    said = {"warning": "2 ranks disagree: 5684 to 38473, using 5684", "file": "stdout.log"}
    notes = {"extract": {"metrics": {"total": said, "other": {"file": "stdout.log"}}}}
    row = summarise_run(by_column(make_record(notes=notes)), {})
    assert row["warnings"] == f"metric 'total': {said['warning']}"
