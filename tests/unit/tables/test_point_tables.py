"""Tables of runs, points and scaling: repeats, sources, holes, the base, series."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scalesweep.analysis import stats
from scalesweep.analysis.factors import series_parameters
from scalesweep.aspects.make_tables import make_tables
from scalesweep.core.errors import UserError
from scalesweep.tables.summary import build_summary
from tests.fakes.epoch_study import Study
from tests.fakes.records import times


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(tmp_path)


def test_statistics_over_repeats_equal_naive_arithmetic(study: Study) -> None:
    generator = np.random.default_rng(2)
    every = [generator.uniform(5, 7, (4, 2)) for _ in range(3)]
    for array in every:
        study.run({"ranks": 2}, None, samples=60, arrays=times(array, array))
    row = study.tables()["points"].iloc[0]
    rates = [60 / array[1:] for array in every]
    means = [rate.mean() for rate in rates]
    interval = stats.mean_of(means)
    expected = {
        "mean": np.mean(means), "median": np.median(means), "std": np.concatenate(rates).std(),
        "cv": np.std(means, ddof=1) / np.mean(means), "low": interval.low, "high": interval.high,
    }  # fmt: skip
    told = {name: row[f"total_throughput_{name}_later"] for name in expected}
    assert told == pytest.approx(expected)
    assert (row["repeats"], row["planned"], row["samples"]) == (3, 3, 60)


def test_points_say_what_is_stale_and_how_full_nodes_are(study: Study) -> None:
    for ranks in (1, 2):
        for repeat in range(2):
            study.run({"ranks": ranks}, 10.0 + repeat)
    study.experiment["runs"][3] |= {"status": "stale", "cause": "parameters changed"}
    for run in study.experiment["runs"]:
        run["threads_per_core"] = run["point"]["ranks"] / 1.0
    points = study.tables()["points"]
    assert points["repeats"].tolist() == [2, 1] and points["planned"].tolist() == [2, 2]
    assert points["stale"].tolist() == [0, 1] and points["threads_per_core"].tolist() == [1, 2]
    assert points["total_time_mean_later"].tolist() == [10.5, 10.0]


def test_failed_points_are_holes(study: Study) -> None:
    study.run({"ranks": 1}, 5.0)
    failed = study.run({"ranks": 2}, None)
    tables = study.tables()
    hole = tables["points"].iloc[1]
    assert (hole["repeats"], hole["planned"], hole["source"]) == (0, 1, None)
    assert pd.isna(hole["samples"]) and math.isnan(hole["total_time_mean_later"])
    run = tables["runs"].set_index("run_id").loc[failed]
    assert run["cause"] == "TIMEOUT" and math.isnan(run["total_time_mean_later"])
    assert "scaling" in tables


def test_a_plan_and_a_summary_that_do_not_belong_together(study: Study) -> None:
    study.run({"ranks": 1}, 5.0)
    with pytest.raises(UserError, match="io-0 is done in the plan but missing from the summary"):
        make_tables(build_summary([]), {"experiments": [study.experiment]})


def test_outliers_are_named_in_runs(study: Study) -> None:
    ids = [study.run({"ranks": 1}, 5.0 + i / 100) for i in range(6)]
    odd = study.run({"ranks": 1}, 9.0)
    runs = study.tables()["runs"].set_index("run_id")
    assert "above" in runs.loc[odd, "outlier"]
    assert all(runs.loc[run_id, "outlier"] is None for run_id in ids)
    assert study.tables()["points"].iloc[0]["repeats"] == 7


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
    assert base["total_eff_init"] == base["total_speedup_init"] == 1.0
    assert math.isnan(base["total_eff_low_init"]) and math.isnan(base["total_speedup_high_init"])
    four, two = (np.mean([1 / (s + repeat / 10) for repeat in range(3)]) for s in (12.0, 10.0))
    assert top["total_eff_init"] == pytest.approx(four / two)
    assert top["total_eff_low_init"] == pytest.approx(top["total_speedup_low_init"] / 2)
    assert top["total_eff_low_init"] < top["total_eff_init"] < top["total_eff_high_init"]


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


def test_a_series_without_the_smallest_scale_has_no_efficiency_at_its_base(study: Study) -> None:
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
