"""Medians over series: of what, of how many, and what they leave out."""

import statistics
from pathlib import Path
from typing import Any

import pytest

from scalesweep.aspects.medians.findings import medians_over_series
from scalesweep.aspects.medians.table import Median
from scalesweep.experiment.results import ExperimentResults
from tests.fakes.imported_table import imported

# By model: rates with NHWC at 1, 2 and 4 GPUs, and NCHW over NHWC.
RATES = {
    "a": ((100.0, 190.0, 300.0), 1.5),
    "b": ((10.0, 18.0, 40.0), 1.2),
    "c": ((50.0, 100.0, 180.0), 1.4),
    "d": ((20.0, 30.0, 50.0), 2.0),
    "late": ((None, 7.0, 12.0), 1.0),  # not measured on one GPU
}
MAP: dict[str, Any] = {
    "name": "layouts", "scale": "gpus", "scaling": "weak",
    "parameters": {
        "ranks": {"column": "gpus"}, "model": {"column": "model", "workload": True},
        "layout": {"column": "layout"},
    },
    "metrics": {
        "rate": {"unit": "images/s", "better": "higher", "scope": "total", "column": "rate"}
    },
}  # fmt: skip


def results_of(folder: Path, models: str) -> ExperimentResults:
    text = "model,gpus,layout,rate\n" + "".join(
        f"{model},{gpus},{layout},{rate * times}\n"
        for model in models.split()
        for gpus, rate in zip((1, 2, 4), RATES[model][0], strict=True)
        if rate is not None
        for layout, times in (("NHWC", 1.0), ("NCHW", RATES[model][1]))
    )
    _, entry, tables = imported(folder, text, MAP)
    return ExperimentResults(entry, tables)


def test_medians_of_speedups_and_ratios(tmp_path: Path) -> None:
    results = results_of(tmp_path, "a b c d late")
    rows = {(row.kind, row.value): row for row in results.of(Median)}
    for place, count in ((1, "2"), (2, "4")):
        # Both layouts are series; a model without its smallest count is none.
        speedups = [rates[place] / rates[0] for m, (rates, _) in RATES.items() if m != "late"]
        row = rows["speedup", count]
        assert row.median == pytest.approx(statistics.median(speedups))
        assert (row.series, row.reference, row.parameter) == (8, "1", "gpus")
        assert (row.lowest, row.highest) == pytest.approx((min(speedups), max(speedups)))
        share = rows["efficiency", count].median
        assert share == pytest.approx(statistics.median(speedups) / int(count))
    ratio = rows["ratio", "NCHW"]
    # Each count of a model is a pair of points: three of four models, two of one.
    pairs = [times for m, (_, times) in RATES.items() for _ in range(2 if m == "late" else 3)]
    assert (ratio.series, ratio.reference) == (14, "NHWC")
    assert ratio.median == pytest.approx(statistics.median(pairs)) == 1.4

    speedup, layouts = medians_over_series(results)
    assert speedup.level == layouts.level == "note" and not speedup.claims
    assert speedup.text.startswith(
        "Imported: Median speedup over series, against 1 gpu: 1.85 times at 2 gpus "
        "(92.5 % of the ideal, 8 series, 1.50 to 2.00 times)"
    )
    assert "layout: NCHW over NHWC 1.40 times (1.00 to 2.00, 14 pairs of points)." in layouts.text


def test_two_series_have_no_median(tmp_path: Path) -> None:
    rows = results_of(tmp_path, "a b").of(Median)
    # Of two models with two layouts each: four series, six pairs.
    assert {row.series for row in rows} == {4, 6}
    (tmp_path / "one").mkdir()
    one = results_of(tmp_path / "one", "a").of(Median)
    assert {row.kind for row in one} == {"ratio"} and {row.series for row in one} == {3}


def test_what_is_not_positive_has_no_ratio(tmp_path: Path) -> None:
    """Of watts above idle, -5 over 10 is no "times": pairs of them are left out."""
    rates = {("a", "p"): 10, ("a", "q"): 20, ("b", "p"): 10, ("b", "q"): 30, ("c", "p"): 10}
    rates |= {("c", "q"): 40, ("d", "p"): 10, ("d", "q"): -5, ("e", "p"): -5, ("e", "q"): 10}
    text = "model,layout,rate\n" + "".join(f"{m},{x},{r}\n" for (m, x), r in rates.items())
    names = {"model": {"column": "model", "workload": True}, "layout": {"column": "layout"}}
    metrics = {"rate": {"unit": "W", "better": "lower", "scope": "total", "column": "rate"}}
    content = {"name": "t", "parameters": {"ranks": {"value": 1}, **names}, "metrics": metrics}
    _, entry, tables = imported(tmp_path, text, content)
    (row,) = ExperimentResults(entry, tables).of(Median)
    assert (row.series, row.median, row.lowest) == (3, 3.0, 2.0)
    assert sorted(tables["comparisons"]["ratio"]) == [2.0, 3.0, 4.0]
