"""What the table of comparisons holds, and what is said of it; scaling over devices."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest

from scalesweep.analysis.factors import fold_axes, series_parameters
from scalesweep.aspects.draw import draw
from scalesweep.aspects.find import find
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.comparisons import compared_parameters
from tests.fakes.rows import study_of

MAIN = "images_rate"
METRICS = {
    MAIN: ("images/s", "higher"), "rank_rate": ("images/s", "higher", "rank"),
    "model_parameters": ("parameters", "lower", "rank"),
}  # fmt: skip
Point = dict[str, Any]


class Campaign:
    """A made-up experiment over devices whose runs report a plain rate and a model size."""

    def __init__(self) -> None:
        self.points: list[tuple[Point, list[dict[str, float]]]] = []
        self.entry: dict[str, Any] = {
            "scale": "devices", "scale_parameters": ["devices_per_rank", "ranks"],
            "main_metric": MAIN, "fixed": {"ranks": 1},
            "parameters": {
                "model": {"default": "a", "workload": True}, "layout": {"default": "NHWC"},
                "mode": {"default": "one"},
            },
        }  # fmt: skip

    def add(self, point: Mapping[str, Any], rates: list[float]) -> None:
        """Add a point with one run per rate; none: it is pending."""
        whole = {"ranks": 1, "devices_per_rank": 1, **point}
        whole["devices"] = whole["ranks"] * whole["devices_per_rank"]
        size = 1000.0 if point.get("model", "a") == "a" else 5e6
        rows = [
            {f"{name}_mean_run": value for name, value in
             zip(METRICS, (rate, rate, size), strict=True)}
            for rate in rates
        ]  # fmt: skip
        self.points.append((whole, rows))

    def study(self) -> ExperimentResults:
        points = [point for point, _ in self.points]
        axes = [name for name in points[0] if any(p[name] != points[0][name] for p in points)]
        axes.sort(key=lambda name: (name != "devices", name))
        return study_of(self.points, METRICS, axes=axes, **self.entry)

    def tables(self) -> Any:
        return self.study().tables


@pytest.fixture
def campaign() -> Campaign:
    return Campaign()


def around(mean: float, spread: float = 0.01) -> list[float]:
    return [mean * (1 - spread), mean, mean * (1 + spread)]


def said(study: ExperimentResults, rule: str) -> list[tuple[str, str]]:
    return [(f.state, f.sentence) for f in find(study) if f.rule == rule]


def rows(campaign: Campaign, query: str) -> pd.DataFrame:
    table: pd.DataFrame = campaign.tables()["comparisons"]
    return table[table["statistic"].isna()].query(query)


def test_devices_scale_whether_they_are_ranks_or_not(campaign: Campaign) -> None:
    """Two devices of one rank and two ranks of one device are both twice the base."""
    for mode, two in (("one", {"devices_per_rank": 2}), ("two", {"ranks": 2})):
        campaign.add({"mode": mode}, around(100))
        campaign.add({"mode": mode, **two}, around(150))
    assert series_parameters(campaign.study().entry) == ["mode"]
    assert fold_axes(campaign.study().entry)[0] == ["devices", "mode"]
    scaling = campaign.tables()["scaling"]
    assert scaling["devices"].tolist() == [1, 2, 1, 2]
    assert scaling[f"{MAIN}_eff_run"].tolist() == pytest.approx([1, 0.75, 1, 0.75])
    assert scaling[f"{MAIN}_speedup_run"].tolist() == pytest.approx([1, 1.5, 1, 1.5])
    # A rank with two devices should do twice as much; a rank among two no more than alone.
    per_rank = campaign.tables()["scaling"]["rank_rate_eff_run"].tolist()
    assert per_rank == pytest.approx([1, 0.75, 1, 1.5])
    study = campaign.study()
    assert "Number of devices" in {
        ax.get_xlabel() for d in draw(study) if d.name == "scaling-run" for ax in d.figure.axes
    }
    assert any("2 devices: 75" in t for _, t in said(study, "verdict"))


def test_ratio_over_the_default_with_its_interval(campaign: Campaign) -> None:
    for model, gain in (("a", 1.726), ("b", 1.0)):
        campaign.add({"model": model, "layout": "NHWC"}, around(2000))
        campaign.add({"model": model, "layout": "NCHW"}, around(2000 * gain))
    table = rows(campaign, "parameter == 'layout' and against == 'reference'")
    first, _ = table.to_dict("records")
    assert (first["value"], first["base_value"], first["model"]) == ("NCHW", "NHWC", "a")
    assert first["ratio"] == pytest.approx(1.726)
    assert 1.6 < first["low"] < 1.726 < first["high"] < 1.8
    study = campaign.study()
    levels = dict(said(study, "ratio"))
    assert "NCHW over NHWC (layout), images rate at model a: 1.73 [" in levels["clear"]
    assert "at model b" in levels["open"]
    # Which model is fastest is not a question; which layout is, model by model.
    assert compared_parameters(campaign.study().entry) == [("layout",)]
    names = [drawing.name for drawing in draw(study)]
    assert names == ["heatmap", "compare-layout-run", "ratio-layout-run"]


@pytest.mark.parametrize(
    ("gains", "level", "told"),
    [
        ([1.4, 1.5, 1.73, 1.6, 1.5, 1.4, 1.45, 1.4], "clear",
         ", images rate at model c: 1.73 times."),
        ([1.4, 1.5, 1.6, 0.9, 1.2, 0.8, 1.3, 0.7], "open", ": 1.6 times."),
        ([1.4], "open", "(layout), images rate: 1.4 times."),
    ],
)  # fmt: skip
def test_single_runs_have_a_ratio_and_a_test_over_pairs(
    campaign: Campaign, gains: list[float], level: str, told: str
) -> None:
    for model, gain in zip("abcdefgh", gains, strict=False):
        campaign.add({"model": model, "layout": "NHWC"}, [1000.0])
        campaign.add({"model": model, "layout": "NCHW"}, [1000.0 * gain])
    ((found, text),) = [each for each in said(campaign.study(), "ratio") if each[0] != "note"]
    assert found == level and told in text


@pytest.mark.parametrize(
    ("rates", "level", "told"),
    [
        ([around(200), around(100), around(90)], "clear",
         "Best is mode x; images rate over that of y: 2.00 [1.96, 2.04] times."),
        ([[200.0], around(100), around(90)], "open", "mode x: 200 images/s."),
        ([around(101), around(100), around(99)], "open", "Highest images rate measured, with"),
        ([around(200), around(100), [90.0]], "open", "mode x: 200 images/s."),
    ],
)  # fmt: skip
def test_the_best_is_named_only_if_it_is_clear_of_each_other_one(
    campaign: Campaign, rates: list[list[float]], level: str, told: str
) -> None:
    for mode, values in zip(("x", "y", "z"), rates, strict=True):
        campaign.add({"mode": mode}, values)
    ((found, text),) = said(campaign.study(), "best")
    assert found == level and told in text, text


def test_values_without_a_result_are_named_beside_the_best(campaign: Campaign) -> None:
    for model, rates in (("a", (100, 200, 110)), ("b", (100, 101, 99))):
        for mode, rate in zip(("one", "two", "three"), rates, strict=True):
            campaign.add({"model": model, "mode": mode}, around(rate))
        campaign.add({"model": model, "mode": "four"}, [])
    best = rows(campaign, "against == 'best' and model == 'a'")
    assert set(best["value"]) == {"two"} and best["base_value"].tolist() == ["three", "one"]
    assert set(best["lacking"]) == {"four"}
    told = said(campaign.study(), "best")
    assert [level for level, _ in told] == ["clear", "open"]
    assert told[0][1].startswith("Best at model a is mode two; images rate over that of three: ")
    figure = next(d for d in draw(campaign.study()) if d.name == "compare-mode-run")
    words = [t.get_text() for ax in figure.figure.axes for t in ax.texts]
    assert words.count("pending") == 2


def test_more_work_is_no_better_setting(campaign: Campaign) -> None:
    """In weak scaling points of one scale compete; in strong scaling all do."""
    for devices, mode in itertools.product((1, 2), ("a", "b")):
        rate = around(100.0 * devices + 30 * (mode == "b"))
        campaign.add({"devices_per_rank": devices, "mode": mode}, rate)
    best = rows(campaign, "against == 'best'")
    assert set(best["parameter"]) == {"mode", "devices, mode"}
    campaign.entry["scaling"] = "weak"
    assert set(rows(campaign, "against == 'best'")["parameter"]) == {"mode"}


def test_pairs_differ_in_one_parameter_and_skip_holes(campaign: Campaign) -> None:
    """The better value depends on the other parameter: the mean says so by its range."""
    rates = {("a", 1): 100, ("a", 2): 110, ("b", 1): 200, ("b", 2): 100, ("c", 1): 150}
    for (layout, size), rate in rates.items():
        campaign.add({"layout": layout, "size": size}, around(rate))
    campaign.add({"layout": "c", "size": 2}, [])
    table = campaign.tables()["comparisons"].query("statistic == 'mean' and parameter == 'size'")
    (row,) = table.to_dict("records")
    assert (row["value"], row["base_value"]) == ("2", "1") and math.isnan(row["mean"])
    assert row["ratio"] == pytest.approx(math.sqrt(1.1 * 0.5))
    assert row["pairs"] == 2
    assert (row["least"], row["most"]) == (pytest.approx(0.5), pytest.approx(1.1))
    assert row["low"] < row["ratio"] < row["high"]
    notes = [text for state, text in said(campaign.study(), "ratio") if state == "note"]
    assert notes[-1].startswith("2 over 1 (size), images rate, mean of 2 pairs of points: 0.74")
