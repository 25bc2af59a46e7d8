"""Efficiency and speedup: published ones, the base, series, and what is missing."""

import math
from pathlib import Path

import numpy as np
import pytest

from scalesweep.analysis.factors import series_parameters
from tests.fakes.epoch_study import Study


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(tmp_path)


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
