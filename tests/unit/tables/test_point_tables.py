"""Tables: runs and points over their repeats, sources, holes, heat maps and their files."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scalesweep.analysis import stats
from scalesweep.aspects.make_tables import make_tables
from scalesweep.core.errors import UserError
from scalesweep.tables.summary import build_summary
from tests.fakes.epoch_study import Study


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(tmp_path)


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
    interval = stats.mean_of(means)
    assert row["total_throughput_low_later"] == interval.low
    assert row["total_throughput_high_later"] == interval.high
    assert (row["repeats"], row["planned"], row["samples"]) == (3, 3, 60)


def test_points_say_what_is_stale_and_how_full_nodes_are(study: Study) -> None:
    for ranks in (1, 2):
        for repeat in range(2):
            study.run({"ranks": ranks}, 10.0 + repeat)
    stale = study.experiment["runs"][3]
    stale.update(status="stale", cause="parameters changed", detail="size was 1, is 2")
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
    assert (hole["repeats"], hole["planned"]) == (0, 1)
    assert hole["source"] is None
    assert pd.isna(hole["samples"])
    assert math.isnan(hole["total_time_mean_later"])
    runs = tables["runs"].set_index("run_id")
    assert runs.loc[failed, "cause"] == "TIMEOUT"
    assert math.isnan(runs.loc[failed, "total_time_mean_later"])
    assert "scaling" in tables


def test_a_plan_and_a_summary_that_do_not_belong_together(study: Study) -> None:
    run_id = study.run({"ranks": 1}, 5.0)
    with pytest.raises(
        UserError, match=f"{run_id} is done in the plan but missing from the summary"
    ):
        make_tables(build_summary([]), {"experiments": [study.experiment]})


def test_outliers_are_named_in_runs(study: Study) -> None:
    ids = [study.run({"ranks": 1}, 5.0 + i / 100) for i in range(6)]
    odd = study.run({"ranks": 1}, 9.0)
    runs = study.tables()["runs"].set_index("run_id")
    assert "above" in runs.loc[odd, "outlier"]
    assert all(runs.loc[run_id, "outlier"] is None for run_id in ids)
    assert study.tables()["points"].iloc[0]["repeats"] == 7
