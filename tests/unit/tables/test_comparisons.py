"""What the table of comparisons holds, and what is said of it; scaling over devices."""

import itertools
import math
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
PARAMETERS = {
    "model": {"default": "a", "workload": True}, "layout": {"default": "NHWC"},
    "mode": {"default": "one"},
}  # fmt: skip
Points = list[tuple[dict[str, Any], list[float]]]


def study(points: Points, **entry: Any) -> ExperimentResults:
    """An experiment over devices: of each point a run per rate, or none if it is pending, which
    report a plain rate and a model size."""
    rows = []
    for point, rates in points:
        whole = {"ranks": 1, "devices_per_rank": 1, **point}
        whole["devices"] = whole["ranks"] * whole["devices_per_rank"]
        size = 1000.0 if point.get("model", "a") == "a" else 5e6
        values = [zip(METRICS, (rate, rate, size), strict=True) for rate in rates]
        rows.append((whole, [{f"{name}_mean_run": value for name, value in of} for of in values]))
    axes = [name for name, value in rows[0][0].items() if any(p[name] != value for p, _ in rows)]
    axes.sort(key=lambda name: (name != "devices", name))
    return study_of(
        rows, METRICS, axes=axes, scale="devices", scale_parameters=["devices_per_rank", "ranks"],
        main_metric=MAIN, fixed={"ranks": 1}, parameters=PARAMETERS, **entry,
    )  # fmt: skip


def around(mean: float, spread: float = 0.01) -> list[float]:
    return [mean * (1 - spread), mean, mean * (1 + spread)]


def said(results: ExperimentResults, rule: str) -> list[tuple[str, str]]:
    return [(f.state, f.sentence) for f in find(results) if f.rule == rule]


def rows(results: ExperimentResults, query: str) -> pd.DataFrame:
    table: Any = results.tables["comparisons"]
    return table[table["statistic"].isna()].query(query)


def test_devices_scale_whether_they_are_ranks_or_not() -> None:
    """Two devices of one rank and two ranks of one device are both twice the base."""
    points: Points = []
    for mode, two in (("one", {"devices_per_rank": 2}), ("two", {"ranks": 2})):
        points += [({"mode": mode}, around(100)), ({"mode": mode, **two}, around(150))]
    made = study(points)
    assert series_parameters(made.entry) == ["mode"]
    assert fold_axes(made.entry)[0] == ["devices", "mode"]
    # Repeats of another import may go before.
    made.entry["runs"] = [{**run, "repeat": 3} for run in made.entry["runs"]]
    assert fold_axes(made.entry)[0] == ["devices", "mode"]
    scaling: Any = made.tables["scaling"]
    assert scaling["devices"].tolist() == [1, 2, 1, 2]
    assert scaling[f"{MAIN}_eff_run"].tolist() == pytest.approx([1, 0.75, 1, 0.75])
    assert scaling[f"{MAIN}_speedup_run"].tolist() == pytest.approx([1, 1.5, 1, 1.5])
    # A rank with two devices should do twice as much; a rank among two no more than alone.
    assert scaling["rank_rate_eff_run"].tolist() == pytest.approx([1, 0.75, 1, 1.5])
    assert "Number of devices" in {
        ax.get_xlabel() for d in draw(made) if d.name == "scaling-run" for ax in d.figure.axes
    }
    assert any("2 devices: 75" in t for _, t in said(made, "verdict"))


def test_ratio_over_the_default_with_its_interval() -> None:
    made = study([
        ({"model": model, "layout": layout}, around(2000 * gain))
        for model, layout, gain in zip("aabb", ("NHWC", "NCHW") * 2, (1, 1.726, 1, 1), strict=True)
    ])  # fmt: skip
    table = rows(made, "parameter == 'layout' and against == 'reference'")
    first, _ = table.to_dict("records")
    assert (first["value"], first["base_value"], first["model"]) == ("NCHW", "NHWC", "a")
    assert first["ratio"] == pytest.approx(1.726)
    assert 1.6 < first["low"] < 1.726 < first["high"] < 1.8
    levels = dict(said(made, "ratio"))
    assert "NCHW over NHWC (layout), images rate at model a: 1.73 [" in levels["clear"]
    assert "at model b" in levels["open"]
    # Which model is fastest is not a question; which layout is, model by model.
    assert compared_parameters(made.entry) == [("layout",)]
    names = [drawing.name for drawing in draw(made)]
    assert names == ["heatmap", "compare-layout-run", "ratio-layout-run"]


@pytest.mark.parametrize(
    ("gains", "level", "told"),
    [
        ([1.4, 1.5, 1.73, 1.6, 1.5, 1.4, 1.45, 1.4], "clear", "rate at model c: 1.73 times."),
        ([1.4, 1.5, 1.6, 0.9, 1.2, 0.8, 1.3, 0.7], "open", ": 1.6 times."),
        ([1.4], "open", "(layout), images rate: 1.4 times."),
    ],
)
def test_single_runs_are_tested_over_pairs(gains: list[float], level: str, told: str) -> None:
    made = study([
        ({"model": model, "layout": layout}, [1000.0 * (gain if layout == "NCHW" else 1)])
        for model, gain in zip("abcdefgh", gains, strict=False) for layout in ("NHWC", "NCHW")
    ])  # fmt: skip
    ((found, text),) = [each for each in said(made, "ratio") if each[0] != "note"]
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
    rates: list[list[float]], level: str, told: str
) -> None:
    made = study([({"mode": mode}, values) for mode, values in zip("xyz", rates, strict=True)])
    ((found, text),) = said(made, "best")
    assert found == level and told in text, text


def test_values_without_a_result_are_named_beside_the_best() -> None:
    points: Points = []
    for model, rates in (("a", (100, 200, 110)), ("b", (100, 101, 99))):
        for mode, rate in zip(("one", "two", "three"), rates, strict=True):
            points.append(({"model": model, "mode": mode}, around(rate)))
        points.append(({"model": model, "mode": "four"}, []))
    made = study(points)
    best = rows(made, "against == 'best' and model == 'a'")
    assert set(best["value"]) == {"two"} and best["base_value"].tolist() == ["three", "one"]
    assert set(best["lacking"]) == {"four"}
    told = said(made, "best")
    assert [level for level, _ in told] == ["clear", "open"]
    assert told[0][1].startswith("Best at model a is mode two; images rate over that of three: ")
    figure = next(d for d in draw(made) if d.name == "compare-mode-run")
    words = [t.get_text() for ax in figure.figure.axes for t in ax.texts]
    assert words.count("pending") == 2


def test_more_work_is_no_better_setting() -> None:
    """In weak scaling points of one scale compete; in strong scaling all do."""
    points: Points = [
        ({"devices_per_rank": devices, "mode": mode}, around(100.0 * devices + 30 * (mode == "b")))
        for devices, mode in itertools.product((1, 2), ("a", "b"))
    ]
    for scaling, compared in (("strong", {"mode", "devices, mode"}), ("weak", {"mode"})):
        made = study(points, scaling=scaling)
        assert set(rows(made, "against == 'best'")["parameter"]) == compared


def test_pairs_differ_in_one_parameter_and_skip_holes() -> None:
    """The better value depends on the other parameter: the mean says so by its range."""
    rates = {("a", 1): 100, ("a", 2): 110, ("b", 1): 200, ("b", 2): 100, ("c", 1): 150}
    points: Points = [
        ({"layout": layout, "size": size}, around(rate)) for (layout, size), rate in rates.items()
    ]
    made = study([*points, ({"layout": "c", "size": 2}, [])])
    table: Any = made.tables["comparisons"]
    (row,) = table.query("statistic == 'mean' and parameter == 'size'").to_dict("records")
    assert (row["value"], row["base_value"], row["pairs"]) == ("2", "1", 2)
    assert math.isnan(row["mean"]) and row["low"] < row["ratio"] < row["high"]
    shares = (row["ratio"], row["least"], row["most"])
    assert shares == pytest.approx((math.sqrt(1.1 * 0.5), 0.5, 1.1))
    notes = [text for state, text in said(made, "ratio") if state == "note"]
    assert notes[-1].startswith("2 over 1 (size), images rate, mean of 2 pairs of points: 0.74")
