"""Comparisons of values that are not positive, as a derived metric may have."""

from pathlib import Path
from typing import Any

from scalesweep.aspects.find import find
from scalesweep.experiment.results import ExperimentResults
from tests.fakes.imported_table import imported

WATTS = {"unit": "W", "better": "lower", "scope": "total", "column": "rate"}


def imported_rows(folder: Path, rows: list[tuple[Any, ...]], *names: str) -> Any:
    text = "\n".join(",".join(map(str, row)) for row in [(*names, "rate"), *rows])
    columns = {name: {"column": name} for name in names}
    content = {"name": "t", "parameters": {"ranks": {"value": 1}, **columns}}
    return imported(folder, text, {**content, "metrics": {"rate": WATTS}})


def test_what_is_not_positive_has_no_ratio(tmp_path: Path) -> None:
    """Of watts above idle, -5 over 10 is no "times"."""
    rates = {"a": (10, 20), "b": (10, 30), "c": (10, 40), "d": (10, -5), "e": (-5, 10)}
    rows = [(m, x, r) for m, pair in rates.items() for x, r in zip("pq", pair, strict=True)]
    _, _, tables = imported_rows(tmp_path, rows, "model", "layout")
    ratios = tables["comparisons"].query("parameter == 'layout'")["ratio"]
    assert sorted(ratios) == [2.0, 3.0, 4.0]


def test_the_best_of_negative_values_says_why_it_is_not_confirmed(tmp_path: Path) -> None:
    rows = [(x, -r) for x in "pq" for r in (5, 6.5, 7 + (x == "q"))]
    _, entry, tables = imported_rows(tmp_path, rows, "layout")
    texts = [finding.text for finding in find(ExperimentResults(entry, tables))]
    assert any("against 1 point with values that are not positive (layout p)" in t for t in texts)
