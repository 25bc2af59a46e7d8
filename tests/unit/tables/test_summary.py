"""Summaries: the published numbers, refusals, and what is left out."""

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
    pd.testing.assert_frame_equal(again, frame, check_dtype=False, check_exact=True)


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


def test_a_metric_with_the_name_of_a_quantity_is_left_out(tmp_path: Path) -> None:
    metrics = {"speed": _metric(1.0), "speed_eff": _metric(2.0), "total_time": _metric(2.0, "ms")}
    frame = summary.build_summary([write_run(tmp_path, "a", {}, metrics=metrics)])
    assert frame["speed_mean_run"].tolist() == [1.0]
    for lost in ("speed_eff", "total_time"):
        assert f"{lost}_mean_run" not in frame
        assert f"metric '{lost}' is left out" in frame["warnings"][0]


# Runs that cannot be summarised: their arrays, and why.
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "cut": (times(), "the record is not whole JSON"),
    "changed": (times(), "samples.npz was changed: checksum differs"),
    "gone": (times(), "record.json is missing"),
    "edited": (times(), "the record was changed after it was written (digest differs)"),
    "of_another": (times(), "the record is of run 'good'"),
    "objects": ({"local_times": np.array([[None, {}]])}, "cannot be read"),
    "different_shapes": (times(LOCAL[:4], GLOBAL), "different shapes"),
    "nan": ({"global_times": np.array([[1.0, math.nan]])}, "epoch 0, rank 1 is nan"),
    "zero": (times(np.zeros((5, 2))), "local_times of epoch 0"),
    "other_ranks": ({"loss": np.ones((2, 3))}, "holds 3 ranks, the point has 2"),
    "too_long": ({"global_times": np.full((2, 2), 1e200)}, "not a positive time"),
    "no_shape": ({"step_times": np.array(3.0), "warmup_step_times": np.array("x")}, ""),
}


def test_runs_that_cannot_be_summarised_are_named_and_take_no_other_along(tmp_path: Path) -> None:
    good = write_run(tmp_path, "good", times())
    paths = {name: write_run(tmp_path, name, arrays) for name, (arrays, _) in BAD.items()}
    paths["cut"].write_bytes(paths["cut"].read_bytes()[:100])
    samples = paths["changed"].with_name("samples.npz")
    samples.write_bytes(samples.read_bytes()[:-1])
    paths["gone"].unlink()
    paths["edited"].write_bytes(paths["edited"].read_bytes().replace(b"200.5", b"200.6"))
    paths["of_another"].write_bytes(good.read_bytes())
    broken: dict[str, str] = {}
    frame = summary.build_summary([good, *paths.values()], broken=broken)
    assert frame["run_id"].tolist() == ["good"] and broken.keys() == BAD.keys()
    for name, why in broken.items():
        assert BAD[name][1] in why and "\n" not in why, name
    with pytest.raises(UserError, match=r"^cut: .*; changed: .*; and 9 more$"):
        summary.build_summary([good, *paths.values()])


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
