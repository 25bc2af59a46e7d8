"""Points of a figure of Plotly that was saved as a page."""

import json
from pathlib import Path
from typing import Any

import pytest

from scalesweep.core.errors import UserError
from scalesweep.gallery.plotly_points import points_as_csv
from tests.fakes.gallery import plotly_page

PATTERNS = {"model": "^panel: (.*)", "nodes": "^Nodes: *([0-9]+)", "rate": "^tok/s: *([0-9,]+)"}


def test_texts_of_points_become_rows(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text(plotly_page({
        "1B": ["<b>Configuration:</b><br>Nodes: 1<br>tok/s:\t 321,200", "Nodes: 2<br/>MFU: nan%"],
        "8B": ["Nodes: 4<br>tok/s: 1 &lt;b&gt;"],
    }))  # fmt: skip
    assert points_as_csv(page, None, {**PATTERNS, "rate": r"^tok/s:\s*([0-9,]+)"}).splitlines() == [
        "model,nodes,rate", "1B,1,321200", "1B,2,", "8B,4,1",
    ]  # fmt: skip
    assert points_as_csv(page, "^panel: 8B$", PATTERNS).count("\n") == 2
    with pytest.raises(UserError, match="the figure has no point with a text"):
        points_as_csv(page, "^panel: 3B$", PATTERNS)


@pytest.mark.parametrize(
    "text",
    ["", "<html>", "Plotly.newPlot('a', [{", "Plotly.newPlot('a', [1, 2]", "Plotly.newPlot(" * 9],
)
def test_what_is_no_figure_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.html").write_text(text)
    with pytest.raises(UserError, match=r"a.html: has no figure of Plotly that can be read"):
        points_as_csv(tmp_path / "a.html", None, PATTERNS)


@pytest.mark.parametrize("traces", [[1], [{"text": "x"}], [{"text": []}], [{}], [None]])
def test_traces_without_texts(tmp_path: Path, traces: list[Any]) -> None:
    page = f"Plotly.newPlot('a', {json.dumps(traces)}, {{}}, {{}})"
    (tmp_path / "a.html").write_text(page)
    with pytest.raises(UserError, match="the figure has no point with a text"):
        points_as_csv(tmp_path / "a.html", None, PATTERNS)
    (tmp_path / "a.html").write_text(page.replace("{}, {}", '{"annotations": 1}, {}'))
    with pytest.raises(UserError, match="no point"):
        points_as_csv(tmp_path / "a.html", None, PATTERNS)
