"""Heat maps of more values than are drawn, and of points that lack what is drawn."""

from pathlib import Path
from typing import Any

import pandas as pd

from scalesweep.core.plan_format import PlanExperiment
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.heatmap import MAX_SIDE, heat_planes, heatmap_figures
from scalesweep.figures.style import Drawing
from tests.fakes.imported_table import imported

RATE = {"unit": "images/s", "better": "higher", "scope": "total", "column": "rate"}


def tables_of(
    folder: Path, rows: list[tuple[Any, ...]], **parameters: str
) -> tuple[PlanExperiment, dict[str, pd.DataFrame]]:
    names = [*parameters, "rate"]
    text = "\n".join(",".join(map(str, row)) for row in [names, *rows])
    columns = {name: {"column": column} for name, column in parameters.items()}
    content = {"name": "t", "parameters": {"ranks": {"value": 1}, **columns}}
    _, entry, tables = imported(folder, text, {**content, "metrics": {"rate": RATE}})
    return entry, tables


def drawn(results: ExperimentResults) -> list[Drawing]:
    return [drawing for sketch in heatmap_figures(results) for drawing in sketch.draw()]


def test_the_best_of_many_values_may_not_be_drawn(tmp_path: Path) -> None:
    """The outlined cell is then the best of those that are drawn, not of all that were measured."""
    sides = range(1, MAX_SIDE + 2)
    rows = [(a, b, 10 * a + b) for a in sides for b in (1, 2)]
    (drawing,) = drawn(ExperimentResults(*tables_of(tmp_path, rows, a="a", b="b")))
    assert f"highest drawn {10 * MAX_SIDE + 2} images/s at a {MAX_SIDE}, b 2" in drawing.alt
    assert "outlined: the highest of those drawn, others may be better" in drawing.caption


def test_efficiencies_of_values_that_are_not_drawn(tmp_path: Path) -> None:
    """A panel without any number is left out; it ended the drawing."""
    counts = [(1,)] * MAX_SIDE + [(1, 2)] * 6
    rows = [(a, n, 100 * n) for a, of in enumerate(counts) for n in of]
    entry, tables = tables_of(tmp_path, rows, a="a", ranks="ranks")
    scaled: Any = {**entry, "scaling": "weak"}
    results = ExperimentResults(scaled, tables)
    assert [ax.get_title() for ax in drawn(results)[0].figure.axes[:1]] == ["whole run"]


def test_a_plane_without_the_metric_is_not_drawn(tmp_path: Path) -> None:
    """As of a formula that divides by zero there."""
    rows = [(c, a, b, 100 + a + b) for c in "xyz" for a in (1, 2) for b in (1, 2)]
    entry, tables = tables_of(tmp_path, rows, c="c", a="a", b="b")
    tables["points"].loc[tables["points"]["c"] == "x", "rate_mean_run"] = float("nan")
    results = ExperimentResults(entry, tables)
    planes, _ = heat_planes(results)
    assert [plane.words(results) for plane in planes[:2]] == ["c y", "c z"]
    assert len(drawn(results)) == 3
