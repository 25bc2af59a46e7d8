"""Values of one parameter side by side, scaling over devices, and the same runs on two sites."""

import itertools
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.analysis.factors import fold_axes, series_parameters
from scalesweep.aspects.comparisons.findings import best_value
from scalesweep.aspects.draw import draw
from scalesweep.aspects.find import find
from scalesweep.aspects.make_tables import make_tables
from scalesweep.core.record import write_record
from scalesweep.experiment.results import ExperimentResults
from scalesweep.report.export_tables import summaries_elsewhere
from scalesweep.tables.pairwise import compared_parameters
from scalesweep.tables.summary import build_summary

MAIN = "images_rate"
Point = dict[str, Any]


class Campaign:
    """A made-up experiment over devices whose runs report a plain rate and a model size."""

    def __init__(self, root: Path, site: str = "here") -> None:
        self.root, self.site = root, site
        self.records: list[Path] = []
        self.experiment: dict[str, Any] = {
            "name": "e", "benchmark": "cnn", "version": 1, "scaling": "none", "work": [],
            "linked": [], "metrics": {},
            "scale": "devices", "scale_parameters": ["devices_per_rank", "ranks"], "axes": [],
            "main_metric": MAIN, "fixed": {"ranks": 1}, "runs": [], "excluded": [],
            "profiles": [], "points": 0,
            "parameters": {
                "model": {"default": "a", "unit": None, "workload": True},
                "layout": {"default": "NHWC", "unit": None},
                "mode": {"default": "one", "unit": None},
            },
        }  # fmt: skip

    def add(self, point: Mapping[str, Any], rates: list[float], **changes: Any) -> None:
        """Add a point with one run per rate; none: all of its runs are pending."""
        whole = {"ranks": 1, "devices_per_rank": 1, **point}
        whole["devices"] = whole["ranks"] * whole["devices_per_rank"]
        runs = self.experiment["runs"]
        for repeat, rate in enumerate(rates or [0.0]):
            run_id = f"cnn-r{whole['ranks']}-{len(runs):012x}"
            runs.append({
                "run_id": run_id, "repeat": repeat, "point": whole, "cause": "", "detail": "",
                "status": "done" if rates else "new", "reused": False,
            })  # fmt: skip
            if rates:
                self._record(run_id, whole, repeat, rate, changes)
        names = [n for n in whole if any(run["point"][n] != whole[n] for run in runs)]
        axes = {*names, *self.experiment["axes"]}
        self.experiment["axes"] = sorted(axes, key=lambda n: (n != "devices", n))

    def _record(
        self, run_id: str, point: Point, repeat: int, rate: float, changes: dict[str, Any]
    ) -> None:
        sizes = {"a": 1000.0, **dict.fromkeys("bcdefgh", 5e6)}
        metrics = {
            "size_first": {"value": 1.0, "unit": "1", "better": "lower", "scope": "rank"},
            MAIN: {"value": rate, "unit": "images/s", "better": "higher", "scope": "total"},
            "rank_rate": {"value": rate, "unit": "images/s", "better": "higher", "scope": "rank"},
            "model_parameters": {
                "value": sizes[point.get("model", "a")], "unit": "parameters",
                "better": "lower", "scope": "rank",
            },
        }  # fmt: skip
        record = {
            "run_id": run_id, "benchmark": "cnn", "version": 1, "repeat": repeat,
            "point": {k: v for k, v in point.items() if k != "devices"}, "site": self.site,
            "source": "measured", "started": "2024-01-01", "ended": "2024-01-01", "wall_s": 1.0,
            "attempt": 1, "phases": {}, "metrics": metrics, "work": {}, "resources": {},
            "environment": {}, "notes": {}, "git": None, "command": [], **changes,
        }  # fmt: skip
        self.records.append(write_record(self.runs / run_id, record))

    @property
    def runs(self) -> Path:
        return self.root / "runs" / self.site

    @property
    def plan(self) -> dict[str, Any]:
        return {"site": self.site, "experiments": [self.experiment]}

    def tables(self, elsewhere: Mapping[str, pd.DataFrame] | None = None) -> dict[str, Any]:
        return make_tables(build_summary(self.records), self.plan, elsewhere)["e"]

    def study(self, elsewhere: Mapping[str, pd.DataFrame] | None = None) -> ExperimentResults:
        return ExperimentResults(self.experiment, self.tables(elsewhere))


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return Campaign(tmp_path)


def around(mean: float, spread: float = 0.01) -> list[float]:
    return [mean * (1 - spread), mean, mean * (1 + spread)]


def texts(study: ExperimentResults, rule: str) -> list[tuple[str, str]]:
    return [(f.level, f.text) for f in find(study) if f.rule == rule]


def best_values(study: ExperimentResults) -> list[tuple[str, str]]:
    """Of the rule alone: where the rule on the best point answers the same, ``find`` keeps that."""
    assert "best value" not in {one.rule for one in find(study)}
    return [(one.level, one.text) for one in best_value(study)]


def test_devices_scale_whether_they_are_ranks_or_not(campaign: Campaign) -> None:
    """Two devices of one rank and two ranks of one device are both twice the base."""
    for mode, two in (("one", {"devices_per_rank": 2}), ("two", {"ranks": 2})):
        campaign.add({"mode": mode}, around(100))
        campaign.add({"mode": mode, **two}, around(150))
    assert series_parameters(campaign.experiment) == ["mode"]
    assert fold_axes(campaign.experiment)[0] == ["devices", "mode"]
    scaling = campaign.tables()["scaling"]
    assert scaling["devices"].tolist() == [1, 2, 1, 2]
    assert scaling[f"{MAIN}_eff_run"].tolist() == pytest.approx([1, 0.75, 1, 0.75])
    assert scaling[f"{MAIN}_speedup_run"].tolist() == pytest.approx([1, 1.5, 1, 1.5])
    # A rank with two devices should do twice as much; a rank among two no more than alone.
    per_rank = campaign.tables()["scaling"]["rank_rate_eff_run"].tolist()
    assert per_rank == pytest.approx([1, 0.75, 1, 1.5])
    study = campaign.study()
    assert "Number of devices" in {
        ax.get_xlabel() for d in draw(study) if d.name == "overview-run" for ax in d.figure.axes
    }
    assert any("2 devices reach 75" in t for _, t in texts(study, "verdict"))


def test_two_ways_to_the_same_number_of_devices_are_two_series(campaign: Campaign) -> None:
    for ranks, devices in itertools.product((1, 2), (1, 2)):
        campaign.add({"ranks": ranks, "devices_per_rank": devices}, [100.0 * ranks])
    assert series_parameters(campaign.experiment) == ["devices_per_rank"]
    scaling = campaign.tables()["scaling"]
    assert scaling["devices_per_rank"].tolist() == [1, 1, 2, 2]
    # The second begins at two devices, where the first has its own efficiency.
    expected = [1, 1, math.nan, 1]
    assert scaling[f"{MAIN}_eff_run"].tolist() == pytest.approx(expected, nan_ok=True)
    assert scaling["base_devices"].tolist() == [1, 1, 2, 2]


def test_ratio_over_the_default_with_its_interval(campaign: Campaign) -> None:
    for model, gain in (("a", 1.726), ("b", 1.0)):
        campaign.add({"model": model, "layout": "NHWC"}, around(2000))
        campaign.add({"model": model, "layout": "NCHW"}, around(2000 * gain))
    table = campaign.tables()["comparisons"]
    assert table["parameter"].tolist() == ["layout", "layout"]
    first, _ = table.to_dict("records")
    assert (first["value"], first["reference"], first["model"]) == ("NCHW", "NHWC", "a")
    assert first["ratio"] == pytest.approx(1.726)
    assert 1.6 < first["low"] < 1.726 < first["high"] < 1.8
    study = campaign.study()
    levels = dict(texts(study, "ratio"))
    assert (
        "NCHW over NHWC (layout): 1.73 [" in levels["confirmed"]
        and "at model a" in levels["confirmed"]
    )
    assert "no difference" in levels["open"] and "at model b" in levels["open"]
    # Which model is fastest is not a question; which layout is, model by model.
    assert compared_parameters(campaign.experiment) == [("layout",)]
    best = [text for _, text in texts(study, "best")]
    assert len(best) == 2 and "of model a" in best[0] and "layout NCHW" in best[0]
    names = [drawing.name for drawing in draw(study)]
    assert names == ["heatmap", "compare-layout-run", "ratio-layout-run"]


@pytest.mark.parametrize(
    ("gains", "level", "told"),
    [
        ([1.4, 1.5, 1.73, 1.6, 1.5, 1.4, 1.45, 1.4], "confirmed",
         "from 1.40 times the images rate at model a to 1.73 times at model c, from single "
         "runs; higher in 8 of 8 pairs (sign test, p = 0.0078)."),
        ([0.5, 0.6, 0.7, 0.8, 0.9, 0.5], "open",
         "lower in 6 of 6 pairs (sign test, p = 0.031)"),
        ([1.4, 1.5, 1.6], "open", "higher in 3 of 3 pairs (sign test, p = 0.25); not confirmed."),
        ([1.4, 1.5, 1.6, 0.9, 1.2, 0.8, 1.3, 0.7], "open", "higher in 5 of 8 pairs"),
        ([1.4], "open", "(layout): 1.40 times the images rate, from single runs; not"),
    ],
)  # fmt: skip
def test_single_runs_have_a_ratio_and_a_test_over_pairs(
    campaign: Campaign, gains: list[float], level: str, told: str
) -> None:
    for model, gain in zip("abcdefgh", gains, strict=False):
        campaign.add({"model": model, "layout": "NHWC"}, [1000.0])
        campaign.add({"model": model, "layout": "NCHW"}, [1000.0 * gain])
    (found,) = texts(campaign.study(), "ratio")
    assert found[0] == level and told in found[1] and "no difference" not in found[1]


def test_several_scales_of_one_model_are_one_pair(campaign: Campaign) -> None:
    for devices in (1, 2, 3, 4, 5, 6, 7, 8):
        campaign.add({"devices_per_rank": devices, "layout": "NHWC"}, [1000.0 * devices])
        campaign.add({"devices_per_rank": devices, "layout": "NCHW"}, [1500.0 * devices])
    ((level, text),) = texts(campaign.study(), "ratio")
    assert level == "open" and "pairs" not in text


@pytest.mark.parametrize(
    ("rates", "reason"),
    [
        ([[200.0], around(100), around(90)], "the best value has no interval (one repeat)"),
        ([around(200), [100.0], around(90)], "the next value has no interval (one repeat)"),
        ([around(101), around(100), around(99)], "do not tell the best from the next"),
        ([around(200), around(100), [90.0]], "another value has no interval, or cannot be told"),
    ],
)
def test_why_the_best_is_not_identified(
    campaign: Campaign, rates: list[list[float]], reason: str
) -> None:
    for mode, values in zip(("x", "y", "z"), rates, strict=True):
        campaign.add({"mode": mode}, values)
    ((level, text),) = best_values(campaign.study())
    assert level == "open" and reason in text


def test_the_best_is_named_only_where_it_is_clear(campaign: Campaign) -> None:
    for model, rates in (("a", (100, 200, 110)), ("b", (100, 101, 99))):
        for mode, rate in zip(("one", "two", "three"), rates, strict=True):
            campaign.add({"model": model, "mode": mode}, around(rate))
        campaign.add({"model": model, "mode": "four"}, [])
    table = campaign.tables()["best"].set_index("model")
    assert table.loc["a", "best"] == "two" and table.loc["a", "next"] == "three"
    assert bool(table.loc["a", "clear"]) and not bool(table.loc["b", "clear"])
    told = best_values(campaign.study())
    assert [level for level, _ in told] == ["confirmed", "open"]
    assert told[0][1].startswith("Best mode at model a: two with 200")
    assert told[0][1].endswith(" images/s; mode four has no result.")
    assert "model b" in told[1][1] and "two" not in told[1][1]
    figure = next(d for d in draw(campaign.study()) if d.name == "compare-mode-run")
    words = [t.get_text() for ax in figure.figure.axes for t in ax.texts]
    assert sum("best" in word for word in words) == 1


def test_one_repeat_makes_nothing_clear(campaign: Campaign) -> None:
    for mode, rate in (("one", 100.0), ("two", 500.0), ("three", 90.0)):
        campaign.add({"mode": mode}, [rate])
    assert not campaign.tables()["best"]["clear"].any()
    assert campaign.tables()["comparisons"]["low"].isna().all()


def test_what_follows_another_parameter_is_not_compared(campaign: Campaign) -> None:
    for mode, reduce in (("one", "ring"), ("two", "tree")):
        campaign.add({"mode": mode, "all_reduce": reduce}, around(100))
    assert compared_parameters(campaign.experiment) == [("all_reduce",)]


def test_efficiency_by_size_of_the_model(campaign: Campaign) -> None:
    for model, eff in (("a", 0.5), ("b", 0.9)):
        campaign.add({"model": model}, around(100))
        campaign.add({"model": model, "ranks": 2}, around(200 * eff))
    drawing = next(d for d in draw(campaign.study()) if d.name == "size-run")
    ax = drawing.figure.axes[0]
    assert ax.get_xscale() == "log" and "parameters" in ax.get_xlabel()
    marks = [
        (line.get_xdata()[0], round(line.get_ydata()[0], 3))
        for line in ax.get_lines()
        if len(line.get_xdata()) == 1
    ]
    assert marks == [(1000.0, 0.5), (5e6, 0.9)]


def test_the_same_runs_on_two_sites(tmp_path: Path) -> None:
    here, there = Campaign(tmp_path), Campaign(tmp_path, "there")
    for ranks in (1, 2):
        here.add({"ranks": ranks}, around(100.0 * ranks))
        there.add({"ranks": ranks}, around(440.0 * ranks))
    shutil.rmtree(there.runs / there.records[-1].parent.name)
    ids = [run["run_id"] for run in here.experiment["runs"]]
    elsewhere = summaries_elsewhere(here.runs, ids)
    assert list(elsewhere) == ["there"] and len(elsewhere["there"]) == 5
    table = here.tables(elsewhere)["sites"]
    assert table["site"].tolist() == ["here", "there"] * 2
    assert table["ratio"].tolist()[:2] == pytest.approx([1, 4.4])
    assert table["repeats"].tolist() == [3, 3, 3, 2]
    assert np.isnan(table["ratio_low"][0]) and table["ratio_low"][1] > 4
    study = here.study(elsewhere)
    assert "sites-run" in [drawing.name for drawing in draw(study)]
    assert "4.4" in texts(study, "sites")[0][1]
    assert "sites" not in here.tables({})
    # Of another site only what was measured at the points that are planned now is compared.
    for run in here.experiment["runs"][3:]:
        run["point"] = {**run["point"], "devices_per_rank": 4}
    table = here.tables(elsewhere)["sites"]
    assert sorted(zip(table["ranks"], table["site"], strict=True)) == [(1, "here"), (1, "there")]


def test_linked_parameters_are_one_choice(campaign: Campaign) -> None:
    """A server on the CPU, one on the GPU, and a ring without any compete with one another."""
    campaign.experiment["linked"] = ["mode", "server", "ranks"]
    for mode, server, rate in (("ps", "cpu", 100), ("ps", "gpu", 300), ("ring", "cpu", 200)):
        campaign.add({"mode": mode, "server": server}, around(rate))
    assert compared_parameters(campaign.experiment) == [("mode", "server")]
    (row,) = campaign.tables()["best"].to_dict("records")
    assert (row["best"], row["next"], row["clear"]) == ("ps, gpu", "ring, cpu", True)
    assert row["parameter"] == "mode, server" and row["compared"] == 3
    assert [d.name for d in draw(campaign.study()) if "compare" in d.name] == [
        "compare-mode--server-run"
    ]
