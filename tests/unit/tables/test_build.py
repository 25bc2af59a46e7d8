"""Tables: published efficiencies, series, repeats, sources and holes."""

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from scalesweep.analysis import stats
from scalesweep.analysis.factors import series_parameters
from scalesweep.analysis.table_io import remove_stale, write_tables
from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import read_plan
from scalesweep.core.record import write_record
from scalesweep.tables.build import make_tables
from scalesweep.tables.summary import build_summary
from tests.fakes.plan import whole_plan
from tests.fakes.scripts import run_script

# Weak scaling on Piz Daint, later epochs: ranks -> throughput per rank, total throughput and
# their efficiencies, as printed by cosmoflow-benchmark, notebooks/DataBenchmark.ipynb at
# b93a54a. (Its row of 1024 ranks was computed from three of them.)
PUBLISHED = {
    1: (49.457012, 49.321757, 1.0, 1.0),
    2: (48.843115, 97.100322, 0.987587, 0.984356),
    4: (48.190793, 190.202862, 0.974398, 0.964092),
    64: (49.503954, 3058.711587, 1.000949, 0.968992),
    512: (41.896833, 18971.588413, 0.847136, 0.751269),
}


class Study:
    """A made-up campaign: runs with constant or given epoch times, and their plan."""

    def __init__(self, root: Path, name: str = "io", scaling: str = "weak") -> None:
        self.root = root
        self.experiment: dict[str, Any] = {
            "name": name, "benchmark": "data_loading", "version": 1, "scaling": scaling,
            "scale": "ranks", "scale_parameters": ["ranks"], "work": [], "main_metric": None,
            "metrics": {}, "linked": [],
            "axes": [], "fixed": {}, "parameters": {}, "runs": [], "excluded": [],
            "profiles": [], "points": 0,
        }  # fmt: skip
        self.records: list[Path] = []

    def run(
        self,
        point: dict[str, Any],
        seconds: float | None,
        *,
        samples: int | None = None,
        arrays: dict[str, Any] | None = None,
        **changes: Any,
    ) -> str:
        """Add a run whose epochs take ``seconds`` (None: it failed); returns its id."""
        runs = self.experiment["runs"]
        run_id = f"{self.experiment['name']}-{len(runs)}"
        repeat = sum(run["point"] == point for run in runs)
        done = seconds is not None or arrays is not None
        runs.append({
            "run_id": run_id, "repeat": repeat, "point": point, "detail": "", "reused": False,
            "status": "done" if done else "failed", "cause": "" if done else "TIMEOUT",
        })  # fmt: skip
        names = [n for n in point if any(r["point"][n] != point[n] for r in runs)]
        axes = set(names) | set(self.experiment["axes"])
        self.experiment["axes"] = sorted(axes, key=lambda n: (n != "ranks", n))
        if not done:
            return run_id
        if arrays is None:
            same = np.full((2, point["ranks"]), seconds)
            arrays = {"local_times": same, "global_times": same}
        record = {
            "run_id": run_id, "benchmark": "data_loading", "version": 1, "point": point,
            "repeat": repeat, "site": "here", "source": "measured", "started": "2024-01-01",
            "ended": "2024-01-01", "wall_s": 1.0, "attempt": 1, "phases": {}, "metrics": {},
            "work": {"samples_per_epoch": samples or 100 * point["ranks"]}, "resources": {},
            "environment": {}, "notes": {}, "git": None, "command": [], **changes,
        }  # fmt: skip
        np.savez(self.root / "samples.npz", **arrays)
        path = write_record(self.root / "runs" / run_id, record, self.root / "samples.npz")
        self.records.append(path)
        return run_id

    def tables(self) -> dict[str, pd.DataFrame]:
        return make_tables(build_summary(self.records), {"experiments": [self.experiment]})[
            self.experiment["name"]
        ]


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(tmp_path)


def test_published_efficiencies(study: Study) -> None:
    for ranks, (local, total, _, _) in PUBLISHED.items():
        samples = 320 * ranks
        arrays = {
            "local_times": np.full((2, ranks), samples / (ranks * local)),
            "global_times": np.full((2, ranks), samples / total),
        }
        study.run({"ranks": ranks}, None, samples=samples, arrays=arrays)
    scaling = study.tables()["scaling"].set_index("ranks")
    for ranks, (local, total, local_eff, total_eff) in PUBLISHED.items():
        row = scaling.loc[ranks]
        assert row["local_eff_later"] == pytest.approx(local_eff, abs=6e-7)
        assert row["total_eff_later"] == pytest.approx(total_eff, abs=6e-7)
        assert row["local_ideal_later"] == pytest.approx(49.457012)
        assert row["total_ideal_later"] == pytest.approx(ranks * 49.321757)
        assert row["total_speedup_later"] == pytest.approx(total / 49.321757)
        assert row["local_throughput_mean_later"] == pytest.approx(local)
    assert scaling.loc[2, "total_ideal_later"] == pytest.approx(98.643514, abs=6e-7)


def test_statistics_over_repeats_equal_naive_arithmetic(study: Study) -> None:
    generator = np.random.default_rng(2)
    every = [generator.uniform(5, 7, (4, 2)) for _ in range(3)]
    for array in every:
        study.run(
            {"ranks": 2}, None, samples=60, arrays={"local_times": array, "global_times": array}
        )
    row = study.tables()["points"].iloc[0]
    rates = [60 / array[1:] for array in every]
    means = [rate.mean() for rate in rates]
    assert row["total_throughput_mean_later"] == pytest.approx(np.mean(means))
    assert row["total_throughput_median_later"] == pytest.approx(np.median(means))
    assert row["total_throughput_std_later"] == pytest.approx(np.concatenate(rates).std())
    assert row["total_throughput_cv_later"] == pytest.approx(np.std(means, ddof=1) / np.mean(means))
    interval = stats.mean_interval(means)
    assert row["total_throughput_low_later"] == interval.low
    assert row["total_throughput_high_later"] == interval.high
    assert (row["repeats"], row["planned"], row["samples"]) == (3, 3, 60)


def test_one_repeat_has_its_own_spread_and_no_interval(study: Study) -> None:
    array = np.array([[5.0, 6.0], [7.0, 8.0]])
    study.run({"ranks": 2}, None, arrays={"local_times": array, "global_times": array})
    row = study.tables()["points"].iloc[0]
    assert row["total_time_std_init"] == 0.5
    for stat in ("low", "high", "cv"):
        assert math.isnan(row[f"total_time_{stat}_init"])


def test_base_is_the_smallest_finished_count_and_exactly_one(study: Study) -> None:
    study.run({"ranks": 1}, None)
    for ranks, seconds in ((4, 12.0), (2, 10.0)):
        for repeat in range(3):
            study.run({"ranks": ranks}, seconds + repeat / 10)
    scaling = study.tables()["scaling"]
    assert scaling["ranks"].tolist() == [1, 2, 4]
    assert scaling["repeats"].tolist() == [0, 3, 3]
    missing, base, top = (scaling.iloc[i] for i in range(3))
    assert math.isnan(missing["total_eff_init"]) and math.isnan(missing["total_ideal_init"])
    assert base["total_eff_init"] == 1.0
    assert base["total_speedup_init"] == 1.0
    assert math.isnan(base["total_eff_low_init"]) and math.isnan(base["total_speedup_high_init"])
    rates = [np.array([100 * ranks / (s + r / 10) for r in range(3)]) for ranks, s in
             ((4, 12.0), (2, 10.0))]  # fmt: skip
    assert top["total_eff_init"] == pytest.approx(rates[0].mean() / (2 * rates[1].mean()))
    bounds = stats.ratio_interval(rates[0], rates[1])
    assert top["total_eff_low_init"] == pytest.approx(bounds.low / 2)
    assert top["total_speedup_high_init"] == pytest.approx(bounds.high)
    assert top["total_eff_low_init"] < top["total_eff_init"] < top["total_eff_high_init"]


def test_missing_base_metric_means_missing_efficiency(study: Study) -> None:
    work = {"work": {"samples_per_epoch": None}}
    study.run({"ranks": 1}, 5.0, **work)
    study.run({"ranks": 2}, 5.0)
    scaling = study.tables()["scaling"]
    assert scaling["total_eff_init"].isna().all()
    assert scaling["total_ideal_init"].isna().all()
    assert scaling["total_time_mean_init"].tolist() == [5.0, 5.0]


def test_series_keep_other_parameters_and_sources_apart(study: Study) -> None:
    for batch, slow in ((4, 1.0), (8, 2.0)):
        for ranks in (1, 2):
            study.run({"ranks": ranks, "batch": batch, "mode": None}, 10 * slow * ranks**0.5)
    study.run({"ranks": 2, "batch": 8, "mode": None}, 1.0, source="simulated")
    tables = study.tables()
    assert series_parameters(study.experiment) == ["batch"]
    points = tables["points"]
    assert points["source"].tolist() == ["measured"] * 4 + ["simulated"]
    assert points["planned"].tolist() == [1, 1, 1, 2, 2]
    scaling = tables["scaling"]
    assert scaling["batch"].tolist() == [4, 4, 8, 8, 8]
    assert scaling["ranks"].tolist() == [1, 2, 1, 2, 2]
    # A series with nothing to compare with stays, but has no efficiency.
    expected = [1.0, 2**-0.5, 1.0, 2**-0.5, math.nan]
    assert scaling["total_eff_later"].tolist() == pytest.approx(expected, nan_ok=True)
    assert scaling["source"].tolist()[-1] == "simulated"
    assert scaling["base_ranks"].tolist() == [1, 1, 1, 1, 2]


def test_a_series_without_the_smallest_scale_has_no_efficiency_at_its_own_base(
    study: Study,
) -> None:
    times = {("a", 1): 8.0, ("a", 2): 10.0, ("b", 2): 9.0, ("b", 4): 12.0, ("c", 2): 7.0}
    for (mode, ranks), seconds in times.items():
        study.run({"ranks": ranks, "batch": 4, "mode": mode}, seconds)
    scaling = study.tables()["scaling"].set_index(["mode", "ranks"])
    efficiency = scaling["total_eff_later"].to_dict()
    assert efficiency["a", 1] == 1.0 and 0 < efficiency["a", 2] < 1
    # 100 % next to what a has at 2 would be of b's own making; c has nothing smaller.
    assert math.isnan(efficiency["b", 2]) and math.isnan(efficiency["c", 2])
    assert math.isnan(scaling["total_speedup_later"].to_dict()["b", 2])
    assert 0 < efficiency["b", 4] < 1 and scaling["base_ranks"].to_dict()["b", 4] == 2


def test_parameters_that_follow_the_ranks_do_not_split_a_series(tmp_path: Path) -> None:
    study = Study(tmp_path, scaling="strong")
    for ranks in (1, 2, 4):
        study.run({"ranks": ranks, "samples_per_rank": 400 // ranks}, 8 / ranks, samples=400)
    scaling = study.tables()["scaling"]
    assert scaling["total_eff_later"].tolist() == pytest.approx([1, 1, 1])
    assert scaling["total_speedup_later"].tolist() == pytest.approx([1, 2, 4])


def test_strong_series_of_two_sizes_are_told_apart_by_their_work(tmp_path: Path) -> None:
    study = Study(tmp_path, scaling="strong")
    study.experiment["work"] = ["samples_per_rank"]
    for size in (400, 800):
        for ranks in (1, 2):
            point = {"ranks": ranks, "samples_per_rank": size // ranks}
            study.run(point, size / 100 / ranks, samples=size)
    scaling = study.tables()["scaling"]
    assert scaling["samples"].tolist() == [400, 400, 800, 800]
    assert scaling["total_speedup_later"].tolist() == pytest.approx([1, 2, 1, 2])


def test_failed_points_are_holes(study: Study) -> None:
    study.run({"ranks": 1}, 5.0)
    failed = study.run({"ranks": 2}, None)
    tables = study.tables()
    hole = tables["points"].iloc[1]
    assert (hole["repeats"], hole["planned"]) == (0, 1)
    assert hole["source"] is None
    assert pd.isna(hole["samples"])
    assert math.isnan(hole["total_time_mean_later"])
    runs = tables["runs"].set_index("run_id")
    assert runs.loc[failed, "cause"] == "TIMEOUT"
    assert math.isnan(runs.loc[failed, "total_time_mean_later"])
    assert "scaling" in tables and "threads" not in tables


def test_nothing_finished_still_makes_every_column(study: Study) -> None:
    for ranks in (1, 2):
        study.run({"ranks": ranks, "inter": ranks, "intra": 3 * ranks}, None)
    tables = study.tables()
    assert set(tables) == {"runs", "points", "scaling", "threads"}
    assert tables["points"]["total_throughput_mean_later"].isna().all()
    assert tables["scaling"]["total_eff_init"].isna().all()


def test_a_plan_and_a_summary_that_do_not_belong_together(study: Study) -> None:
    run_id = study.run({"ranks": 1}, 5.0)
    with pytest.raises(
        UserError, match=f"{run_id} is done in the plan but missing from the summary"
    ):
        make_tables(build_summary([]), {"experiments": [study.experiment]})


def test_heat_map_in_long_form(study: Study) -> None:
    for inter in (0, 2):
        for intra in (6, 12, 24):
            point = {"ranks": 1, "inter_threads": inter, "intra_threads": intra}
            study.run(point, 1.0 + inter + intra / 100)
    tables = study.tables()
    assert "scaling" not in tables
    threads = tables["threads"]
    chosen = threads[(threads["metric"] == "total_time") & (threads["phase"] == "later")]
    assert len(chosen) == 6
    for row in chosen.to_dict("records"):
        seconds = 1.0 + row["inter_threads"] + row["intra_threads"] / 100
        assert row["mean"] == pytest.approx(seconds)
        assert (row["unit"], row["better"], row["repeats"]) == ("s", "lower", 1)
    assert len(threads) == 6 * 5 * 2


def test_plain_metrics_get_points_and_scaling(study: Study) -> None:
    for ranks, values in ((1, (10.0, 12.0)), (4, (33.0,))):
        for value in values:
            described = {"unit": "images/s", "better": "higher", "scope": "total"}
            loss = {"value": 0.5, "unit": "1", "better": "lower", "scope": "total"}
            metrics = {"speed": {"value": value, **described}, "loss": loss}
            study.run({"ranks": ranks}, None, arrays={"x": np.ones(1)}, metrics=metrics)
    tables = study.tables()
    points = tables["points"]
    assert points["speed_mean_run"].tolist() == [11.0, 33.0]
    assert points["speed_std_run"].tolist()[0] == 1.0
    assert math.isnan(points["speed_std_run"].tolist()[1])
    assert "total_time_mean_later" not in points
    scaling = tables["scaling"]
    assert scaling["speed_eff_run"].tolist() == pytest.approx([1.0, 0.75])
    assert scaling["speed_speedup_run"].tolist() == pytest.approx([1.0, 3.0])
    assert "loss_eff_run" not in scaling
    units = scaling.attrs["units"]
    assert units["speed_mean_run"]["unit"] == "images/s"
    assert units["speed_eff_low_run"]["unit"] == "1"
    assert units["speed_ideal_run"]["unit"] == "images/s"
    assert units["speed_cv_run"]["unit"] == "1"


def test_outliers_are_named_in_runs(study: Study) -> None:
    ids = [study.run({"ranks": 1}, 5.0 + i / 100) for i in range(6)]
    odd = study.run({"ranks": 1}, 9.0)
    runs = study.tables()["runs"].set_index("run_id")
    assert "above" in runs.loc[odd, "outlier"]
    assert all(runs.loc[run_id, "outlier"] is None for run_id in ids)
    assert study.tables()["points"].iloc[0]["repeats"] == 7


def test_list_and_mixed_parameters(study: Study) -> None:
    study.run({"ranks": 1, "layers": [1, 2], "threads": "auto"}, 5.0)
    study.run({"ranks": 1, "layers": [3], "threads": 2}, 6.0)
    points = study.tables()["points"]
    assert points["layers"].tolist() == ["[1,2]", "[3]"]
    assert points["threads"].tolist() == ['"auto"', "2"]


def test_files_keep_all_digits_and_units(study: Study, tmp_path: Path) -> None:
    for ranks in (1, 2):
        study.run({"ranks": ranks}, 1 / 3 + ranks)
    tables = study.tables()
    out = tmp_path / "tables"
    write_tables({"io": tables}, out)
    for name, frame in tables.items():
        parquet = pd.read_parquet(out / "io" / f"{name}.parquet")
        pd.testing.assert_frame_equal(parquet, frame, check_dtype=False)
        text = pd.read_csv(out / "io" / f"{name}.csv", float_precision="round_trip")
        assert list(text.columns) == list(frame.columns)
        for column in frame.select_dtypes("float64"):
            np.testing.assert_array_equal(text[column], frame[column])
    field = pq.read_schema(out / "io" / "scaling.parquet").field("total_throughput_mean_later")
    assert field.metadata[b"unit"] == b"samples/s"
    assert field.metadata[b"better"] == b"higher"


def test_tables_of_yesterday_are_removed_and_nothing_else(study: Study, tmp_path: Path) -> None:
    study.run({"ranks": 1}, 5.0)
    tables = study.tables()
    out = tmp_path / "tables"
    write_tables({"io": tables, "old": tables, "kept": tables}, out)
    (out / "io" / "scaling.csv").write_text("stale")
    (out / "io" / "scaling.tex").write_text("stale")
    (out / "kept" / "notes.txt").write_text("mine")
    remove_stale(out, write_tables({"io": tables}, out))
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*")) == [
        "io", "io/points.csv", "io/points.parquet", "io/runs.csv", "io/runs.parquet",
        "kept", "kept/notes.txt",
    ]  # fmt: skip
    for name in ("../up", "a/b", "", ".."):
        with pytest.raises(UserError, match="cannot name a folder"):
            write_tables({name: tables}, out)


def test_scripts_from_plan_to_tables(study: Study, tmp_path: Path) -> None:
    for ranks in (1, 2):
        study.run({"ranks": ranks}, 5.0)
    study.run({"ranks": 4}, None)
    plan = tmp_path / "plan.json"
    experiments = [study.experiment, study.experiment]
    plan.write_text(json.dumps(whole_plan({"campaign": "c", "experiments": experiments})))
    summary, out = tmp_path / "summary.parquet", tmp_path / "tables"
    arguments = ("--plan", plan, "--runs", tmp_path / "runs", "--out", summary)
    done = run_script("summarise.py", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(pd.read_parquet(summary)) == 2
    # Snakemake deletes the output first; what is unchanged must still not be read again.
    summary.unlink()
    for path in study.records:
        samples = path.parent / "samples.npz"
        status = samples.stat()
        samples.write_bytes(b"x" * status.st_size)
        os.utime(samples, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert run_script("summarise.py", *arguments).returncode == 0
    inputs = ("--plan", plan, "--summary", summary, "--runs", tmp_path / "runs")
    done = run_script("tables.py", *inputs, "--out", out)
    # The table of ranks reads samples again, of runs of more than one.
    left_out = "samples.npz was changed: checksum differs: left out of the table of ranks"
    assert (done.returncode, done.stderr) == (0, f"warning: io-1: {left_out}\n")
    assert len(pd.read_csv(out / "io" / "points.csv")) == 3
    for path in study.records:
        path.write_text("{")
    done = run_script("summarise.py", *arguments)
    assert done.returncode == 0
    assert done.stdout.startswith(
        "2 records cannot be trusted and were set aside: io-0 (the record is not whole JSON"
    )
    assert {run["cause"] for run in read_plan(plan)["experiments"][0]["runs"]} >= {"BAD_RECORD"}
    assert all((path.parent / "record.json.broken").is_file() for path in study.records)
    summary.write_text("no")
    done = run_script("tables.py", *inputs, "--out", out)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr
